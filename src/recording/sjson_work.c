/* SPDX-License-Identifier: BSD-2-Clause */
/* session.json: the command that ran while the guests were recorded. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "recording/sjson_priv.h"

void uni_session_put_work(struct uni_json *j, const struct uni_record_work *w)
{
	if (w->command[0] == '\0')
		return;
	uni_json_key(j, "work");
	uni_json_object(j);
	uni_json_kv(str, j, "command", w->command);
	uni_json_kv(u64, j, "begin_ns", w->begin_ns);
	uni_json_kv(u64, j, "end_ns", w->end_ns);
	uni_json_kv(u64, j, "status", (uint64_t)w->status);
	uni_json_object_end(j);
}

const char *uni_session_parse_work(const json_t *root, struct uni_record_work *ret)
{
	const json_t *obj = json_object_get(root, "work");
	const char *command = json_string_value(json_object_get(obj, "command"));
	json_int_t begin, end, status;

	if (obj == NULL)
		return NULL;
	if (command == NULL || !uni_session_get_number(obj, "begin_ns", INT64_MAX, &begin) ||
		!uni_session_get_number(obj, "end_ns", INT64_MAX, &end) || end < begin ||
		!uni_session_get_number(obj, "status", 255, &status))
		return "work";
	(void)uni_text_clean(ret->command, sizeof(ret->command), command, strlen(command));
	ret->begin_ns = (uint64_t)begin;
	ret->end_ns = (uint64_t)end;
	ret->status = (int)status;
	return NULL;
}
