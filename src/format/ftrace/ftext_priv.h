/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the parser of ftrace's texts: one line. */
#ifndef UNI_TRACE_FTEXT_PRIV_H
#define UNI_TRACE_FTEXT_PRIV_H

#include "base/line.h"
#include "format/ftrace/ftext.h"

enum uni_ftext_form {
	UNI_FTEXT_FORM_BAD,
	UNI_FTEXT_FORM_HEADER, /* a comment, a blank line, a ruler, or nothing that is a call */
	UNI_FTEXT_FORM_OUTSIDE,
	UNI_FTEXT_FORM_GRAPH,
	UNI_FTEXT_FORM_FUNCTION,
	UNI_FTEXT_FORM_LOST,
	UNI_FTEXT_FORM_NOMEM,
};

struct uni_ftext_line {
	struct uni_ftext_event event;
	bool unreadable; /* there is a duration, but not a number */
	bool seconds;	 /* FUNCTION: the time had a point */
};

/* Strings and threads are added to t, the event is not. */
enum uni_ftext_form uni_ftext_graph_line(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_line *ret);
enum uni_ftext_form uni_ftext_function_line(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_line *ret);

/* Number of the cleaned name; UNI_STR_NONE without memory. */
uint32_t uni_ftext_name(struct uni_ftext *t, struct uni_line raw);
/* "NAME-123", the number after the last dash; false if it has another form. */
bool uni_ftext_task(struct uni_ftext *t, struct uni_line raw, uint32_t *ret);

static inline bool uni_ftext_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline struct uni_line uni_ftext_trim(struct uni_line l)
{
	while (l.len != 0 && uni_ftext_blank(l.s[l.len - 1]))
		l.len--;
	while (l.len != 0 && uni_ftext_blank(l.s[0])) {
		l.s++;
		l.len--;
	}
	return l;
}

static inline struct uni_line uni_ftext_from(struct uni_line l, size_t n)
{
	return (struct uni_line){ l.s + n, l.len - n };
}

/* Digits at the start: how many; 0 also when they do not fit. */
static inline size_t uni_ftext_digits(struct uni_line l, uint64_t *ret)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; n < l.len && l.s[n] >= '0' && l.s[n] <= '9'; n++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, (uint64_t)(l.s[n] - '0'), &v))
			return 0;
	}
	*ret = v;
	return n;
}

#endif
