/* SPDX-License-Identifier: BSD-2-Clause */
#include "syscalls/result.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "syscalls/value.h"

uint32_t uni_sysc_clean_text(struct uni_sysc_log *log, const char *s, size_t len)
{
	char clean[UNI_TEXT_MAX];
	size_t n = uni_text_clean(clean, sizeof(clean), s, len);

	return uni_sysc_log_text(log, clean, n);
}

bool uni_sysc_parse_int(const char *s, size_t len, int64_t *ret)
{
	char buf[32];
	bool minus = len != 0 && s[0] == '-';
	uint64_t v;

	s += minus;
	len -= minus;
	if (len == 0 || len >= sizeof(buf))
		return false;
	memcpy(buf, s, len);
	buf[len] = '\0';
	if (!uni_parse_u64(buf, &v))
		return false;
	*ret = minus ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

static void set_failed(struct uni_sysc_entry *e, int error)
{
	e->end = UNI_SYSC_FAILED;
	e->value = error;
}

/* Unikraft: "No such file or directory (-2)". */
static bool unikraft_error(const char *s, size_t len, struct uni_sysc_entry *e)
{
	const char *open = strrchr(s, '(');
	int64_t v;
	int error;

	if (open == NULL || s[len - 1] != ')' ||
		!uni_sysc_parse_int(open + 1, (size_t)(s + len - 1 - open - 1), &v) ||
		!uni_sysc_is_error(v, &error))
		return false;
	set_failed(e, error);
	return true;
}

void uni_sysc_parse_result(struct uni_sysc_log *log, const char *s, struct uni_sysc_entry *e)
{
	size_t len = strlen(s), word = strcspn(s, " ");
	const char *colon = memchr(s, ':', word);
	int error = 0;
	int64_t v = 0;

	if (strcmp(s, "?") == 0) {
		e->end = UNI_SYSC_NO_RESULT;
	} else if (s[0] == '-' && s[1] == 'E') {
		error = uni_sysc_error_of(s + 1, word - 1);
		set_failed(e, uni_max(error, 0));
		e->result = error < 0 ? uni_sysc_clean_text(log, s, len) : 0;
	} else if (strncmp(s, "-1 E", 4) == 0) {
		error = uni_sysc_error_of(s + 3, strcspn(s + 3, " "));
		set_failed(e, uni_max(error, 0));
		e->result = error < 0 ? uni_sysc_clean_text(log, s, len) : 0;
	} else if (len != 0 && unikraft_error(s, len, e)) {
		return;
	} else if (strcmp(s, "OK") == 0 || strcmp(s, "NULL") == 0) {
		e->end = UNI_SYSC_OK;
	} else {
		const char *number = colon != NULL ? colon + 1 : s;
		size_t digits = word - (size_t)(number - s);

		e->end = UNI_SYSC_OK;
		if (!uni_sysc_parse_int(number, digits, &v))
			e->result = uni_sysc_clean_text(log, s, len);
		else if (uni_sysc_is_error(v, &error))
			set_failed(e, error);
		else
			e->value = v;
		e->shown = digits > 2 && number[1] == 'x' ? 'p' : 'd';
	}
}
