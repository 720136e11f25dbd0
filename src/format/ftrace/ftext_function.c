/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line of the tracer function: "TASK-ID [CPU] TIME: name <-caller". Linux writes the time in
 * seconds and flags before it, Nanos the cycle counter.
 */
#include <string.h>

#include "base/clock.h"
#include "format/ftrace/ftext_priv.h"

#define FRACTION_DIGITS 9

/* The "[12]" after "-34 ": its place, and its end. */
static bool find_cpu(struct uni_line l, uint64_t *cpu, size_t *at, size_t *end)
{
	for (size_t i = 1; i < l.len; i++) {
		size_t n, before = i;

		if (l.s[i] != '[')
			continue;
		n = uni_ftext_digits(uni_ftext_from(l, i + 1), cpu);
		if (n == 0 || i + 1 + n >= l.len || l.s[i + 1 + n] != ']')
			continue;
		while (before != 0 && uni_ftext_blank(l.s[before - 1]))
			before--;
		if (before == i || before == 0 || l.s[before - 1] < '0' || l.s[before - 1] > '9')
			continue;
		*at = i;
		*end = i + n + 2;
		return true;
	}
	return false;
}

/* "12345:" or "12.345678:"; how long it is, 0: neither. */
static size_t parse_time(struct uni_line l, struct uni_ftext_line *ret)
{
	uint64_t v, scale = UNI_NSEC_PER_SEC / 10;
	size_t n = uni_ftext_digits(l, &v), i;

	if (n == 0 || n == l.len)
		return 0;
	i = n;
	if (l.s[i] == '.') {
		ret->seconds = true;
		if (__builtin_mul_overflow(v, UNI_NSEC_PER_SEC, &v) ||
			v > UINT64_MAX - UNI_NSEC_PER_SEC)
			return 0;
		for (i++; i < l.len && l.s[i] >= '0' && l.s[i] <= '9'; i++) {
			v += i - n <= FRACTION_DIGITS ? (uint64_t)(l.s[i] - '0') * scale : 0;
			scale /= 10;
		}
	}
	if (i == l.len || l.s[i] != ':')
		return 0;
	ret->event.ns = v;
	return i + 1;
}

/* Flags may precede the time. */
static bool skip_to_time(struct uni_line *l, struct uni_ftext_line *ret)
{
	for (unsigned words = 0; words < 2; words++) {
		size_t n;

		*l = uni_ftext_trim(*l);
		n = parse_time(*l, ret);
		if (n != 0) {
			*l = uni_ftext_from(*l, n);
			return true;
		}
		while (l->len != 0 && !uni_ftext_blank(l->s[0]))
			*l = uni_ftext_from(*l, 1);
	}
	return false;
}

static bool find_arrow(struct uni_line l, size_t *ret)
{
	for (size_t i = l.len; i-- > 2;) {
		if (l.s[i - 2] == ' ' && l.s[i - 1] == '<' && l.s[i] == '-') {
			*ret = i - 2;
			return true;
		}
	}
	return false;
}

enum uni_ftext_form uni_ftext_function_line(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_line *ret)
{
	struct uni_ftext_event *e = &ret->event;
	struct uni_line rest;
	size_t at, end, arrow;
	uint64_t cpu;

	*ret = (struct uni_ftext_line){ 0 };
	if (!find_cpu(l, &cpu, &at, &end))
		return UNI_FTEXT_FORM_BAD;
	rest = uni_ftext_from(l, end);
	if (!skip_to_time(&rest, ret) || !find_arrow(rest, &arrow))
		return UNI_FTEXT_FORM_BAD;
	if (cpu >= UNI_FTEXT_CPUS_MAX)
		return UNI_FTEXT_FORM_OUTSIDE;
	if (!uni_ftext_task(t, (struct uni_line){ l.s, at }, &e->thread))
		return UNI_FTEXT_FORM_BAD;
	e->kind = UNI_FTEXT_HIT;
	e->flags = UNI_FTEXT_OWNED;
	e->cpu = (uint16_t)cpu;
	e->name = uni_ftext_name(t, (struct uni_line){ rest.s, arrow });
	e->other = uni_ftext_name(t, uni_ftext_from(rest, arrow + 3));
	if (e->name == UINT32_MAX || e->other == UINT32_MAX || e->thread == UINT32_MAX)
		return UNI_FTEXT_FORM_NOMEM;
	return UNI_FTEXT_FORM_FUNCTION;
}
