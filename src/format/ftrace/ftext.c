/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/ftrace/ftext.h"

#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "format/ftrace/ftext_priv.h"

#define SNIFF_LINES 64

int uni_ftext_init(struct uni_ftext *t, enum uni_ftext_tracer tracer)
{
	memset(t, 0, sizeof(*t));
	t->tracer = tracer;
	t->strings = uni_strtab_create();
	t->thread_keys = uni_strtab_create();
	return t->strings != NULL && t->thread_keys != NULL ? 0 : -UNI_ENOMEM;
}

void uni_ftext_deinit(struct uni_ftext *t)
{
	uni_strtab_destroy(t->strings);
	uni_strtab_destroy(t->thread_keys);
	uni_vec_free(&t->events);
	uni_vec_free(&t->threads);
	memset(t, 0, sizeof(*t));
}

uint32_t uni_ftext_thread(struct uni_ftext *t, const char *name, size_t len, uint64_t id)
{
	struct uni_ftext_thread thread = { uni_strtab_add(t->strings, name, len), id };
	char key[sizeof(thread.name) + sizeof(id)];
	uint32_t nr;

	if (thread.name == UNI_STR_NONE)
		return UINT32_MAX;
	memcpy(key, &thread.name, sizeof(thread.name));
	memcpy(key + sizeof(thread.name), &id, sizeof(id));
	nr = uni_strtab_add(t->thread_keys, key, sizeof(key)); /* 0 is the empty string's */
	if (nr == UNI_STR_NONE || (nr > t->threads.nr && !uni_vec_push(&t->threads, thread)))
		return UINT32_MAX;
	return nr - 1;
}

/* The lines that Nanos and Linux draw around a switch. */
static bool is_ruler(struct uni_line l)
{
	for (size_t i = 0; i < l.len; i++) {
		if (l.s[i] != '-')
			return false;
	}
	return true;
}

/* "CPU:1 [LOST 54 EVENTS]", of either tracer. */
static bool parse_lost(struct uni_line l, struct uni_ftext_event *e)
{
	static const char begin[] = "CPU:", middle[] = " [LOST ", end[] = " EVENTS]";
	uint64_t cpu;
	size_t n;

	if (l.len < sizeof(begin) || memcmp(l.s, begin, sizeof(begin) - 1) != 0)
		return false;
	l = uni_ftext_from(l, sizeof(begin) - 1);
	n = uni_ftext_digits(l, &cpu);
	l = uni_ftext_from(l, n);
	if (n == 0 || cpu >= UNI_FTEXT_CPUS_MAX || l.len < sizeof(middle) ||
		memcmp(l.s, middle, sizeof(middle) - 1) != 0)
		return false;
	l = uni_ftext_from(l, sizeof(middle) - 1);
	n = uni_ftext_digits(l, &e->ns);
	l = uni_ftext_from(l, n);
	e->cpu = (uint16_t)cpu;
	e->kind = UNI_FTEXT_LOST;
	return n != 0 && l.len == sizeof(end) - 1 && memcmp(l.s, end, sizeof(end) - 1) == 0;
}

static enum uni_ftext_form parse_line(
	struct uni_ftext *t, struct uni_line l, struct uni_ftext_line *ret)
{
	struct uni_line trimmed = uni_ftext_trim(l);
	enum uni_ftext_form form;

	*ret = (struct uni_ftext_line){ 0 };
	if (trimmed.len == 0 || trimmed.s[0] == '#' || is_ruler(trimmed))
		return UNI_FTEXT_FORM_HEADER;
	if (parse_lost(trimmed, &ret->event))
		return UNI_FTEXT_FORM_LOST;
	form = uni_ftext_graph_line(t, l, ret);
	return form == UNI_FTEXT_FORM_BAD ? uni_ftext_function_line(t, l, ret) : form;
}

/* "# tracer: NAME" */
static bool names_tracer(struct uni_line l, enum uni_ftext_tracer *ret)
{
	static const char *const names[] = {
		[UNI_FTEXT_GRAPH] = "function_graph",
		[UNI_FTEXT_FUNCTION] = "function",
		[UNI_FTEXT_NOP] = "nop",
	};
	static const char begin[] = "# tracer:";
	const size_t n = sizeof(begin) - 1;

	l = uni_ftext_trim(l);
	if (l.len < n || memcmp(l.s, begin, n) != 0)
		return false;
	l = uni_ftext_trim(uni_ftext_from(l, n));
	for (unsigned i = 0; i < uni_array_len(names); i++) {
		if (l.len == strlen(names[i]) && memcmp(l.s, names[i], l.len) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

int uni_ftext_sniff(const char *data, size_t size)
{
	size_t pos = 0, good = 0, all = 0;
	enum uni_ftext_tracer tracer;
	struct uni_ftext t;
	struct uni_line l;

	if (uni_ftext_init(&t, UNI_FTEXT_NOP) != 0) {
		uni_ftext_deinit(&t);
		return 0;
	}
	while (all < SNIFF_LINES && uni_line_next(data, size, &pos, &l)) {
		struct uni_ftext_line line;
		enum uni_ftext_form form;

		if (names_tracer(l, &tracer)) {
			uni_ftext_deinit(&t);
			return 100;
		}
		form = parse_line(&t, l, &line);
		all += form != UNI_FTEXT_FORM_HEADER;
		good += form == UNI_FTEXT_FORM_GRAPH || form == UNI_FTEXT_FORM_FUNCTION;
	}
	uni_ftext_deinit(&t);
	if (good == 0 || good * 2 < all)
		return 0;
	return good == all ? 90 : 60;
}

static void pass_over(struct uni_ftext_stats *st, uint64_t *count)
{
	(*count)++;
	if (st->first_bad_line == 0)
		st->first_bad_line = st->lines;
}

/* Keeps lines of this text's tracer. If no header names the tracer, the first good line does. */
static int take_line(struct uni_ftext *t, enum uni_ftext_form form,
	const struct uni_ftext_line *line, struct uni_ftext_stats *st)
{
	enum uni_ftext_tracer tracer =
		form == UNI_FTEXT_FORM_GRAPH ? UNI_FTEXT_GRAPH : UNI_FTEXT_FUNCTION;

	if (form == UNI_FTEXT_FORM_LOST)
		return uni_vec_push(&t->events, line->event) ? 0 : -UNI_ENOMEM;
	if (form == UNI_FTEXT_FORM_BAD || (t->tracer != UNI_FTEXT_NOP && t->tracer != tracer)) {
		pass_over(st, &st->bad_lines);
		return 0;
	}
	t->tracer = tracer;
	t->seconds |= line->seconds;
	t->nested |= line->event.depth != 0;
	st->damaged += (line->event.flags & UNI_FTEXT_DAMAGED) != 0;
	st->unreadable += line->unreadable;
	return uni_vec_push(&t->events, line->event) ? 0 : -UNI_ENOMEM;
}

static int parse_all(const char *data, size_t size, struct uni_ftext *t, struct uni_ftext_stats *st,
	bool *header)
{
	enum uni_ftext_tracer tracer;
	struct uni_line l;
	size_t pos = 0;
	int rc = 0;

	while (rc == 0 && uni_line_next(data, size, &pos, &l)) {
		struct uni_ftext_line line;
		enum uni_ftext_form form = parse_line(t, l, &line);

		st->lines++;
		if (form == UNI_FTEXT_FORM_NOMEM) {
			rc = -UNI_ENOMEM;
		} else if (form == UNI_FTEXT_FORM_HEADER) {
			st->headers++;
			if (!names_tracer(l, &tracer))
				continue;
			*header = true;
			if (t->events.nr == 0)
				t->tracer = tracer;
		} else if (form == UNI_FTEXT_FORM_OUTSIDE) {
			pass_over(st, &st->outside);
		} else {
			rc = take_line(t, form, &line, st);
		}
	}
	return rc;
}

int uni_ftext_parse(const char *data, size_t size, struct uni_ftext *t,
	struct uni_ftext_stats *stats_ret, struct uni_err *err)
{
	struct uni_ftext_stats st = { 0 };
	bool header = false;
	int rc = uni_ftext_init(t, UNI_FTEXT_NOP);

	if (rc == 0)
		rc = parse_all(data, size, t, &st, &header);
	if (rc != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory after %llu lines",
			(unsigned long long)st.lines);
	*stats_ret = st;
	if (t->events.nr == 0 && !header)
		return uni_err_set(err, UNI_EFORMAT,
			"no line that the tracers function_graph or function write%s",
			size == 0 ? ": the input is empty" : "");
	return 0;
}
