/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/sjson_priv.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

static const char *const held_words[] = {
	[UNI_HELD_NOT] = "", [UNI_HELD_SIGNAL] = "signal", [UNI_HELD_VMM] = "vmm"
};

void uni_record_put_gaps(struct uni_json *j, const struct uni_record_meta *m)
{
	if (m->nr_gap == 0)
		return;
	uni_json_key(j, "gaps");
	uni_json_array(j);
	for (uint32_t i = 0; i < m->nr_gap; i++) {
		uni_json_object(j);
		uni_json_kv(u64, j, "begin_ns", m->gap[i].begin_ns);
		uni_json_kv(u64, j, "end_ns", m->gap[i].end_ns);
		uni_json_kv(u64, j, "pid", (uint64_t)m->gap[i].pid);
		if (m->gap[i].back_ns != 0)
			uni_json_kv(u64, j, "clock_back_ns", m->gap[i].back_ns);
		if (m->gap[i].held != UNI_HELD_NOT)
			uni_json_kv(str, j, "held", held_words[m->gap[i].held]);
		if (m->gap[i].method[0] != '\0') {
			uni_json_kv(str, j, "method", m->gap[i].method);
			uni_json_kv(str, j, "why", m->gap[i].why);
			uni_json_kv(u64, j, "weight", m->gap[i].weight);
			uni_json_kv(u64, j, "pauses", m->gap[i].pauses);
		}
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

bool uni_session_get_number(const json_t *obj, const char *key, json_int_t max, json_int_t *ret)
{
	const json_t *v = json_object_get(obj, key);

	*ret = json_integer_value(v);
	return json_is_integer(v) && *ret >= 0 && *ret <= max;
}

/* Absent in sessions of older versions. False: it is there, and no text. */
static bool get_words(const json_t *obj, const char *key, char *ret, size_t cap)
{
	const json_t *v = json_object_get(obj, key);

	if (v == NULL)
		return true;
	if (!json_is_string(v))
		return false;
	(void)uni_text_clean(ret, cap, json_string_value(v), json_string_length(v));
	return true;
}

static bool get_part(const json_t *obj, struct uni_record_gap *ret)
{
	json_int_t weight, pauses;

	if (!get_words(obj, "method", ret->method, sizeof(ret->method)) ||
		!get_words(obj, "why", ret->why, sizeof(ret->why)))
		return false;
	if (ret->method[0] == '\0')
		return true;
	if (!uni_session_get_number(obj, "weight", INT64_MAX, &weight) ||
		!uni_session_get_number(obj, "pauses", INT64_MAX, &pauses))
		return false;
	ret->weight = (uint64_t)weight;
	ret->pauses = (uint64_t)pauses;
	return true;
}

/* Absent where another VMM began. */
static bool get_back(const json_t *obj, struct uni_record_gap *ret)
{
	json_int_t back;

	if (json_object_get(obj, "clock_back_ns") == NULL)
		return true;
	if (!uni_session_get_number(obj, "clock_back_ns", INT64_MAX, &back))
		return false;
	ret->back_ns = (uint64_t)back;
	return true;
}

/* Absent where nobody had stopped the VMM or the guest. */
static bool get_held(const json_t *obj, struct uni_record_gap *ret)
{
	char word[16];

	if (json_object_get(obj, "held") == NULL)
		return true;
	if (!get_words(obj, "held", word, sizeof(word)))
		return false;
	for (unsigned i = UNI_HELD_SIGNAL; i < uni_array_len(held_words); i++) {
		if (strcmp(word, held_words[i]) == 0) {
			ret->held = (enum uni_gap_held)i;
			return true;
		}
	}
	return false;
}

/* In the order of time, and none inside another. */
const char *uni_session_parse_gaps(const json_t *guest, struct uni_record_meta *ret)
{
	const json_t *list = json_object_get(guest, "gaps");
	json_int_t last = 0;

	if (list == NULL)
		return NULL;
	if (!json_is_array(list) || json_array_size(list) > UNI_GAPS_MAX)
		return "gaps";
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *obj = json_array_get(list, i);
		json_int_t begin, end, pid;

		if (!uni_session_get_number(obj, "begin_ns", INT64_MAX, &begin) || begin < last ||
			!uni_session_get_number(obj, "end_ns", INT64_MAX, &end) || end < begin ||
			!uni_session_get_number(obj, "pid", INT32_MAX, &pid))
			return "gaps";
		ret->gap[ret->nr_gap++] = (struct uni_record_gap){
			.begin_ns = (uint64_t)begin, .end_ns = (uint64_t)end, .pid = (int)pid
		};
		if (!get_part(obj, &ret->gap[ret->nr_gap - 1]) ||
			!get_back(obj, &ret->gap[ret->nr_gap - 1]) ||
			!get_held(obj, &ret->gap[ret->nr_gap - 1]))
			return "gaps";
		last = end;
	}
	return NULL;
}
