/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/csv/calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/line.h"
#include "base/text.h"

#define HEADER	   "function,tid,latency_us,latency_us_self"
#define NUMBER_MAX 40
#define US_MAX	   1e15 /* 30 years */
#define FIELDS	   4

bool uni_callcsv_is(const char *data, size_t size)
{
	const size_t n = sizeof(HEADER) - 1;

	return size >= n && memcmp(data, HEADER, n) == 0;
}

/* The next field, unquoted into buf; false at the end, or when the quotes are wrong. */
static bool next_field(struct uni_line *l, char buf[UNI_TEXT_MAX], size_t *len_ret)
{
	bool quoted = l->len != 0 && l->s[0] == '"';
	size_t i = quoted, n = 0;

	for (; i < l->len && (quoted || l->s[i] != ','); i++) {
		if (quoted && l->s[i] == '"') {
			if (i + 1 >= l->len || l->s[i + 1] != '"')
				break;
			i++;
		}
		if (n + 1 < UNI_TEXT_MAX)
			buf[n++] = l->s[i];
	}
	if (quoted && (i == l->len || l->s[i] != '"'))
		return false;
	i += quoted;
	if (i < l->len && l->s[i] != ',')
		return false;
	buf[n] = '\0';
	*len_ret = n;
	/* An end without a comma leaves nothing; a comma at the end leaves an empty field. */
	l->s += i < l->len ? i + 1 : l->len;
	l->len -= i < l->len ? i + 1 : l->len;
	return true;
}

static bool parse_us(const char *s, uint64_t *ns, bool *negative)
{
	char *end;
	double us;

	if (s[0] == '\0' || strlen(s) > NUMBER_MAX || strspn(s, "0123456789.eE+-") != strlen(s))
		return false;
	us = strtod(s, &end);
	if (*end != '\0' || !isfinite(us) || us > US_MAX || us < -US_MAX)
		return false;
	*ns = us > 0.0 ? (uint64_t)llround(us * 1000.0) : 0;
	*negative = *negative || us < -0.0005;
	return true;
}

static int read_row(struct uni_line l, struct uni_call_table *t, struct uni_callcsv_stats *st)
{
	char raw[UNI_TEXT_MAX], name[UNI_TEXT_MAX], number[FIELDS - 1][UNI_TEXT_MAX];
	struct uni_call_cell call = { .calls = 1 };
	bool negative = false;
	size_t len, n;

	if (!next_field(&l, raw, &len))
		return -UNI_EFORMAT;
	for (unsigned i = 0; i < FIELDS - 1; i++) {
		if (!next_field(&l, number[i], &n) || n == 0)
			return -UNI_EFORMAT;
	}
	if (l.len != 0 || !uni_parse_u64(number[0], &call.where) ||
		!parse_us(number[1], &call.ns, &negative) ||
		!parse_us(number[2], &call.self_ns, &negative))
		return -UNI_EFORMAT;
	len = uni_text_clean(name, sizeof(name), raw, len);
	st->rows++;
	st->negative += negative;
	return uni_call_table_add(t, name, len, &call);
}

int uni_callcsv_read(const char *data, size_t size, struct uni_call_table *t,
	struct uni_callcsv_stats *stats_ret, struct uni_err *err)
{
	struct uni_callcsv_stats st = { 0 };
	struct uni_line l;
	uint64_t line = 0;
	size_t pos = 0;

	while (uni_line_next(data, size, &pos, &l)) {
		int rc;

		line++;
		if (l.len == 0 || (line == 1 && uni_callcsv_is(l.s, l.len)))
			continue;
		rc = read_row(l, t, &st);
		if (rc == -UNI_ENOMEM)
			return uni_err_nomem(err);
		if (rc == 0)
			continue;
		st.bad_lines++;
		if (st.first_bad_line == 0)
			st.first_bad_line = line;
	}
	*stats_ret = st;
	/* In megabytes of anything there may be a line that looks like a row. */
	if (st.rows <= st.bad_lines && !uni_callcsv_is(data, size))
		return uni_err_set(err, UNI_EFORMAT, "no line of the form " HEADER "%s",
			size == 0 ? ": the input is empty" : "");
	return 0;
}
