/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line of function_graph: "CPU) DURATION |  TEXT", its text indented by two blanks a level,
 *
 *	 0)   0.071 us    |  name();
 *	 0)               |  name() {
 *	 0) ! 207.666 us  |  }			the name may follow as a comment
 *	 0)  idle-1  => bash-17			between two rulers
 *
 * Linux can put a time ("12.345678 |") in front and a task ("bash-17 |") and flags ("d..1 |")
 * after the CPU, and comments after the text.
 */
#include <string.h>

#include "base/text.h"
#include "format/ftrace/ftext_priv.h"

#define FIELDS_MAX	3
#define NANOS_DIGITS	8 /* columns of the number: longer ones lose their end */
#define FRACTION_DIGITS 3
/* Two years: sums of longer durations would leave no room for the calls after them. */
#define DURATION_MAX_US (UINT64_C(1) << 46)
#define FLAGS_MAX	8

static bool ends_with(struct uni_line l, const char *what)
{
	size_t n = strlen(what);

	return l.len >= n && memcmp(l.s + l.len - n, what, n) == 0;
}

static bool starts_with(struct uni_line l, const char *what)
{
	size_t n = strlen(what);

	return l.len >= n && memcmp(l.s, what, n) == 0;
}

static const char *find_text(struct uni_line l, const char *what)
{
	return l.s == NULL || l.len == 0 ? NULL : memmem(l.s, l.len, what, strlen(what));
}

uint32_t uni_ftext_name(struct uni_ftext *t, struct uni_line raw)
{
	char clean[UNI_TEXT_MAX];
	struct uni_line l = uni_ftext_trim(raw);

	l.len = uni_text_clean(clean, sizeof(clean), l.s, l.len);
	l.s = clean;
	l = uni_ftext_trim(l);
	return uni_strtab_add(t->strings, l.s, l.len);
}

bool uni_ftext_task(struct uni_ftext *t, struct uni_line raw, uint32_t *ret)
{
	struct uni_line l = uni_ftext_trim(raw), name;
	const char *dash = l.len == 0 ? NULL : memrchr(l.s, '-', l.len);
	char clean[UNI_TEXT_MAX];
	uint64_t id;
	size_t at;

	if (dash == NULL)
		return false;
	at = (size_t)(dash - l.s) + 1;
	if (at == l.len || uni_ftext_digits(uni_ftext_from(l, at), &id) != l.len - at)
		return false;
	name = uni_ftext_trim((struct uni_line){ l.s, at - 1 });
	name.len = uni_text_clean(clean, sizeof(clean), name.s, name.len);
	name.s = clean;
	name = uni_ftext_trim(name);
	*ret = uni_ftext_thread(t, name.s, name.len, id);
	return true;
}

/* "12.345 us", "1234567. us", "12345678 us", trimmed and without the marker. */
static bool parse_number(struct uni_line l, struct uni_ftext_event *e)
{
	struct uni_line rest;
	uint64_t us, scale = 100, frac = 0;
	size_t digits = uni_ftext_digits(l, &us);

	if (digits == 0 || !ends_with(l, "us"))
		return false;
	rest = uni_ftext_trim((struct uni_line){ l.s + digits, l.len - digits - 2 });
	if (rest.len != 0 && rest.s[0] != '.')
		return false;
	for (size_t i = 1; i < rest.len; i++) {
		if (rest.s[i] < '0' || rest.s[i] > '9')
			return false;
		frac += i <= FRACTION_DIGITS ? (uint64_t)(rest.s[i] - '0') * scale : 0;
		scale /= 10;
	}
	if (us > DURATION_MAX_US)
		return false;
	e->ns = us * 1000 + frac;
	e->flags |= UNI_FTEXT_TIMED;
	if (digits == NANOS_DIGITS && rest.len == 0)
		e->flags |= UNI_FTEXT_DAMAGED;
	return true;
}

static bool is_flags(struct uni_line l)
{
	return l.len <= FLAGS_MAX && memchr(l.s, '.', l.len) != NULL &&
	       (l.s[0] < '0' || l.s[0] > '9') && find_text(l, "us") == NULL;
}

/* How long a call was, roughly; '$' is Linux'. */
static bool is_mark(char c)
{
	return c == '$' || c == '@' || c == '*' || c == '#' || c == '!' || c == '+';
}

/* Fields between bars up to the duration; *text is the part after it. */
static bool parse_fields(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_line *ret, struct uni_line *text)
{
	for (unsigned i = 0; i < FIELDS_MAX; i++) {
		const char *bar = l.len == 0 ? NULL : memchr(l.s, '|', l.len);
		struct uni_line f;

		if (bar == NULL)
			return false;
		f = uni_ftext_trim((struct uni_line){ l.s, (size_t)(bar - l.s) });
		l = uni_ftext_from(l, (size_t)(bar - l.s) + 1);
		*text = l;
		if (f.len == 0)
			return true;
		if (!uni_ftext_task(t, f, &ret->event.thread)) {
			if (is_flags(f))
				continue;
			if (is_mark(f.s[0]))
				f = uni_ftext_trim(uni_ftext_from(f, 1));
			ret->unreadable = !parse_number(f, &ret->event);
			return true;
		}
		ret->event.flags |= UNI_FTEXT_OWNED;
	}
	return false;
}

/* The function that a brace closes, from the comment after it. Linux also adds the return value
 * there, and `trace replay` variables. */
static enum uni_ftext_form parse_close(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_event *e)
{
	const char *begin = find_text(l, "/*"), *cut;
	struct uni_line name;

	e->kind = UNI_FTEXT_CLOSE;
	if (begin == NULL || !ends_with(l, "*/") || l.s + l.len - begin < 4) {
		e->flags |= UNI_FTEXT_BARE;
		return UNI_FTEXT_FORM_GRAPH;
	}
	name = uni_ftext_trim((struct uni_line){ begin + 2, (size_t)(l.s + l.len - begin) - 4 });
	cut = find_text(name, " ret=");
	if (cut == NULL)
		cut = find_text(name, " @");
	if (cut != NULL)
		name.len = (size_t)(cut - name.s);
	if (starts_with(name, "="))
		e->flags |= UNI_FTEXT_BARE;
	else
		e->name = uni_ftext_name(t, name);
	return UNI_FTEXT_FORM_GRAPH;
}

/* "name() {", "name();", also with arguments and a comment. */
static enum uni_ftext_form parse_call(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_event *e)
{
	const char *paren;

	if (ends_with(l, "*/")) {
		for (size_t i = l.len; i-- > 1;) {
			if (l.s[i - 1] == '/' && l.s[i] == '*') {
				l = uni_ftext_trim((struct uni_line){ l.s, i - 1 });
				break;
			}
		}
	}
	if (ends_with(l, ") {")) {
		e->kind = UNI_FTEXT_OPEN;
		l.len -= 3;
	} else if (ends_with(l, ");")) {
		e->kind = UNI_FTEXT_LEAF;
		l.len -= 2;
	} else {
		return UNI_FTEXT_FORM_BAD;
	}
	/* Without arguments a bracket may be part of the name: "f(int)();". */
	paren = ends_with(l, "(") ? l.s + l.len - 1 : find_text(l, "(");
	if (paren == NULL)
		return UNI_FTEXT_FORM_BAD;
	e->name = uni_ftext_name(t, (struct uni_line){ l.s, (size_t)(paren - l.s) });
	return UNI_FTEXT_FORM_GRAPH;
}

static enum uni_ftext_form parse_text(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_event *e)
{
	size_t spaces = 0;

	while (spaces < l.len && l.s[spaces] == ' ')
		spaces++;
	l = uni_ftext_trim(uni_ftext_from(l, spaces));
	if (l.len == 0 || starts_with(l, "/*"))
		return UNI_FTEXT_FORM_HEADER;
	if (spaces / 2 > UNI_FTEXT_DEPTH_MAX)
		return UNI_FTEXT_FORM_OUTSIDE;
	e->depth = (uint16_t)(spaces >= 2 ? spaces / 2 - 1 : 0);
	return l.s[0] == '}' ? parse_close(t, l, e) : parse_call(t, l, e);
}

/* "OUT-1  => IN-2" */
static bool parse_switch(struct uni_ftext *t, struct uni_line l, struct uni_ftext_event *e)
{
	const char *arrow = find_text(l, "=>"), *bar = memchr(l.s, '|', l.len);
	size_t at;

	if (arrow == NULL || (bar != NULL && bar < arrow))
		return false;
	at = (size_t)(arrow - l.s);
	if (!uni_ftext_task(t, (struct uni_line){ l.s, at }, &e->name) ||
		!uni_ftext_task(t, uni_ftext_from(l, at + 2), &e->other))
		return false;
	e->kind = UNI_FTEXT_SWITCH;
	return true;
}

/* "12.345678 |", the time that Linux can put in front. */
static struct uni_line skip_time(struct uni_line l)
{
	size_t i = 0;

	while (i < l.len && ((l.s[i] >= '0' && l.s[i] <= '9') || l.s[i] == '.'))
		i++;
	if (i == 0 || memchr(l.s, '.', i) == NULL)
		return l;
	while (i < l.len && uni_ftext_blank(l.s[i]))
		i++;
	return i < l.len && l.s[i] == '|' ? uni_ftext_trim(uni_ftext_from(l, i + 1)) : l;
}

enum uni_ftext_form uni_ftext_graph_line(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_line *ret)
{
	struct uni_line text;
	enum uni_ftext_form form;
	uint64_t cpu;
	size_t n;

	*ret = (struct uni_ftext_line){ 0 };
	l = skip_time(uni_ftext_trim(l));
	if (l.len == 0)
		return UNI_FTEXT_FORM_HEADER;
	n = uni_ftext_digits(l, &cpu);
	if (n == 0 || n == l.len || l.s[n] != ')')
		return UNI_FTEXT_FORM_BAD;
	if (cpu >= UNI_FTEXT_CPUS_MAX)
		return UNI_FTEXT_FORM_OUTSIDE;
	ret->event.cpu = (uint16_t)cpu;
	l = uni_ftext_from(l, n + 1);
	if (l.len != 0 && parse_switch(t, l, &ret->event))
		form = UNI_FTEXT_FORM_GRAPH;
	else if (parse_fields(t, l, ret, &text))
		form = parse_text(t, text, &ret->event);
	else
		form = UNI_FTEXT_FORM_BAD;
	if (ret->event.name == UINT32_MAX || ret->event.other == UINT32_MAX ||
		ret->event.thread == UINT32_MAX)
		form = UNI_FTEXT_FORM_NOMEM;
	return form;
}
