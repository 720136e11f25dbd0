/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/clock.h"
#include "format/ftrace/ftext.h"

#define NUMBER	  8  /* columns of the duration's number */
#define TASK	  15 /* columns of a task's name */
#define TASK_ID	  5
#define RULER	  "------------------------------------------\n"
#define UNTIMED	  "             "
#define NO_THREAD "tid" /* what Nanos calls a thread without a name */

static void write_header(enum uni_ftext_tracer tracer, struct uni_sink *out)
{
	if (tracer == UNI_FTEXT_GRAPH) {
		uni_sink_puts(out, "# tracer: function_graph\n"
				   "#\n"
				   "# CPU  DURATION                  FUNCTION CALLS\n"
				   "# |     |   |                     |   |   |   |\n");
		return;
	}
	uni_sink_printf(out,
		"# tracer: %s\n"
		"#\n"
		"#\n"
		"#           TASK-PID   CPU#     TIMESTAMP  FUNCTION\n"
		"#              | |       |         |         |\n",
		tracer == UNI_FTEXT_FUNCTION ? "function" : "nop");
}

/* By whole microseconds, as Nanos has it: Linux calls the same sizes the same, and knows '$'. */
static char duration_marker(uint64_t us)
{
	static const struct {
		uint64_t us;
		char mark;
	} marks[] = { { 100000, '@' }, { 10000, '*' }, { 1000, '#' }, { 100, '!' }, { 10, '+' } };

	for (size_t i = 0; i < uni_array_len(marks); i++) {
		if (us >= marks[i].us)
			return marks[i].mark;
	}
	return ' ';
}

/* A number that is longer than its column loses decimals, as in Nanos. It never loses a digit
 * before the point: Nanos did so, and showed wrong numbers from 100 s on. The column gets wider
 * instead. */
size_t uni_ftext_duration(uint64_t ns, char ret[UNI_FTEXT_DURATION_MAX])
{
	uint64_t us = ns / UNI_NSEC_PER_USEC;
	char number[UNI_FTEXT_DURATION_MAX];
	size_t whole = (size_t)snprintf(number, sizeof(number), "%" PRIu64, us), n;

	n = whole + (size_t)snprintf(number + whole, sizeof(number) - whole, ".%03u",
			    (unsigned)(ns % UNI_NSEC_PER_USEC));
	n = uni_max(whole, uni_min(n, (size_t)NUMBER));
	memset(ret, ' ', UNI_FTEXT_DURATION_MAX);
	ret[0] = duration_marker(us);
	memcpy(ret + 2, number, n);
	ret[n + 3] = 'u'; /* after a blank */
	ret[n + 4] = 's';
	return uni_max(n + 5, (size_t)UNI_FTEXT_DURATION);
}

/* The name's first bytes, up to a column's width, and no character in parts. */
static int cut_name(const char *name, size_t columns)
{
	size_t n = strlen(name);

	if (n > columns) {
		n = columns;
		while (n != 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
			n--;
	}
	while (n != 0 && name[n - 1] == ' ')
		n--;
	return (int)n;
}

static const char *thread_name(const struct uni_ftext *t, uint32_t thread)
{
	const char *name = uni_strtab_get(t->strings, t->threads.v[thread].name);

	return name[0] != '\0' ? name : NO_THREAD;
}

static void put_task(const struct uni_ftext *t, uint32_t thread, struct uni_sink *out)
{
	uni_sink_printf(out, "%s-%" PRIu64, thread_name(t, thread), t->threads.v[thread].id);
}

static void put_indented(struct uni_sink *out, unsigned depth)
{
	while (depth-- != 0)
		uni_sink_write(out, "  ", 2);
}

static void put_switch(
	const struct uni_ftext *t, const struct uni_ftext_event *e, struct uni_sink *out)
{
	uni_sink_puts(out, RULER);
	uni_sink_printf(out, " %u) ", e->cpu);
	put_task(t, e->name, out);
	uni_sink_puts(out, "  => ");
	put_task(t, e->other, out);
	uni_sink_puts(out, "\n" RULER);
}

static void put_call(
	const struct uni_ftext *t, const struct uni_ftext_event *e, struct uni_sink *out)
{
	char duration[UNI_FTEXT_DURATION_MAX];
	size_t n;

	uni_sink_printf(out, " %u) ", e->cpu);
	if ((e->flags & UNI_FTEXT_OWNED) != 0) {
		put_task(t, e->thread, out);
		uni_sink_puts(out, "  | ");
	}
	if ((e->flags & UNI_FTEXT_TIMED) != 0) {
		n = uni_ftext_duration(e->ns, duration);
		uni_sink_write(out, duration, n);
	} else {
		uni_sink_write(out, UNTIMED, UNI_FTEXT_DURATION);
	}
	uni_sink_puts(out, " |  ");
	put_indented(out, e->depth);
	if (e->kind == UNI_FTEXT_CLOSE) {
		uni_sink_putc(out, '}');
		if ((e->flags & UNI_FTEXT_BARE) == 0)
			uni_sink_printf(out, " /* %s */", uni_strtab_get(t->strings, e->name));
	} else {
		uni_sink_puts(out, uni_strtab_get(t->strings, e->name));
		uni_sink_puts(out, e->kind == UNI_FTEXT_OPEN ? "() {" : "();");
	}
	uni_sink_putc(out, '\n');
}

static void put_hit(
	const struct uni_ftext *t, const struct uni_ftext_event *e, struct uni_sink *out)
{
	const char *task = thread_name(t, e->thread);

	uni_sink_printf(out, " %*.*s-%-*" PRIu64 " [%03u]  ", TASK, cut_name(task, TASK), task,
		TASK_ID, t->threads.v[e->thread].id, e->cpu);
	if (!t->seconds)
		uni_sink_printf(out, "%" PRIu64, e->ns);
	else if (e->ns % UNI_NSEC_PER_USEC == 0)
		uni_sink_printf(out, "%llu.%06llu", e->ns / UNI_NSEC_PER_SEC,
			e->ns % UNI_NSEC_PER_SEC / UNI_NSEC_PER_USEC);
	else
		uni_sink_printf(
			out, "%llu.%09llu", e->ns / UNI_NSEC_PER_SEC, e->ns % UNI_NSEC_PER_SEC);
	uni_sink_printf(out, ": %s <-%s\n", uni_strtab_get(t->strings, e->name),
		uni_strtab_get(t->strings, e->other));
}

void uni_ftext_write(const struct uni_ftext *t, struct uni_sink *out)
{
	write_header(t->tracer, out);
	for (size_t i = 0; i < t->events.nr; i++) {
		const struct uni_ftext_event *e = &t->events.v[i];

		if (e->kind == UNI_FTEXT_HIT)
			put_hit(t, e, out);
		else if (e->kind == UNI_FTEXT_LOST)
			uni_sink_printf(out, "CPU:%u [LOST %" PRIu64 " EVENTS]\n", e->cpu, e->ns);
		else if (e->kind == UNI_FTEXT_SWITCH)
			put_switch(t, e, out);
		else
			put_call(t, e, out);
	}
}
