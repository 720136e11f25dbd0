/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A line of function_graph text: " CPU) ", 13 columns of duration, " |  ", two blanks for each call
 * above it, and the call. After the last brace the function's name is a comment:
 *
 *    0)   0.071 us    |    leaf();
 *    0)               |    caller() {
 *    0) ! 207.666 us  |    } ...
 *
 * A call is written when the next event shows whether it makes calls itself.
 */
#include "trace/text.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "base/vec.h"

#define BLOCK	  (256u * 1024) /* at least a line: see LINE_MAX */
#define LINE_MAX  (2 * UNI_CALLS_DEPTH_MAX + 2 * UNI_TEXT_MAX + ARGS_MAX + VALUE_MAX + 512)
#define ARGS_MAX  8192 /* six texts of UNI_TRACE_TEXT_MAX bytes, escaped */
#define VALUE_MAX 1024 /* with four variables */
#define DURATION  13
#define UNKNOWN	  "<< unknown symbol >>"

/* State of a CPU. */
struct line {
	char prefix[16]; /* " CPU) " */
	uint8_t prefix_len;
	bool waits; /* a call whose line is not written yet */
	uint32_t func, depth;
	char *args, *value; /* of the call that comes, of the return that comes; "" or NULL: none */
};

#define SHORT 32 /* copies of a fixed length are several times faster */

struct name {
	const char *s;
	uint32_t len;
	char start[SHORT];
};

struct uni_trace_text {
	struct uni_sink *out;
	struct uni_funcs *funcs;
	struct uni_trace_text_opts opts;
	UNI_VEC(struct line) line;
	UNI_VEC(struct name) name;
	char thousandth[1000][4]; /* ".000" to ".999" */
	size_t fill;
	char block[BLOCK];
};

_Static_assert(LINE_MAX <= BLOCK, "a line fits");

static const char graph_header[] = "# tracer: function_graph\n"
				   "#\n"
				   "# CPU  DURATION                  FUNCTION CALLS\n"
				   "# |     |   |                     |   |   |   |\n";
static const char function_header[] = "#\n"
				      "#\n"
				      "#           TASK-PID   CPU#     TIMESTAMP  FUNCTION\n"
				      "#              | |       |         |         |\n";

static void flush_block(struct uni_trace_text *t)
{
	uni_sink_write(t->out, t->block, t->fill);
	t->fill = 0;
}

static char *block_room(struct uni_trace_text *t, size_t len)
{
	if (len > BLOCK - t->fill)
		flush_block(t);
	return t->block + t->fill;
}

static inline char *copy_text(char *p, const void *from, size_t len)
{
	memcpy(p, from, len);
	return p + len;
}
#define COPY(p, literal) copy_text(p, literal, sizeof(literal) - 1)

static inline char *put_blanks(char *p, size_t n)
{
	memset(p, ' ', SHORT);
	if (__builtin_expect(n > SHORT, 0))
		memset(p, ' ', (uint32_t)n);
	return p + n;
}

static inline char *put_name(char *p, const struct name *n)
{
	memcpy(p, n->start, SHORT);
	if (__builtin_expect(n->len > SHORT, 0))
		memcpy(p, n->s, n->len);
	return p + n->len;
}

static char *put_number(char *p, uint64_t v)
{
	char text[20];
	size_t i = sizeof(text);

	do {
		text[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	return copy_text(p, text + i, sizeof(text) - i);
}

struct uni_trace_text *uni_trace_text_open(
	struct uni_sink *out, struct uni_funcs *funcs, const struct uni_trace_text_opts *opts)
{
	struct uni_trace_text *t = malloc(sizeof(*t));

	if (t == NULL)
		return NULL;
	memset(t, 0, offsetof(struct uni_trace_text, block));
	t->out = out;
	t->funcs = funcs;
	t->opts = *opts;
	for (unsigned i = 0; i < 1000; i++) {
		const char digits[4] = { '.', (char)('0' + i / 100), (char)('0' + i / 10 % 10),
			(char)('0' + i % 10) };

		memcpy(t->thousandth[i], digits, sizeof(digits));
	}
	if (opts->no_header)
		return t;
	if (opts->kind == UNI_TRACE_TEXT_GRAPH) {
		uni_sink_puts(out, graph_header);
	} else {
		uni_sink_puts(out, opts->kind == UNI_TRACE_TEXT_NOP ? "# tracer: nop\n"
								    : "# tracer: function\n");
		uni_sink_puts(out, function_header);
	}
	return t;
}

/* Names are asked for once each. */
static __attribute__((noinline)) const struct name *ask_name(
	struct uni_trace_text *t, uint32_t func)
{
	static const struct name none = { "", 0, "" };
	struct name *n;

	if (func >= t->name.nr) {
		size_t more = uni_max(uni_funcs_nr(t->funcs), func + 1) - t->name.nr;

		if (!uni_vec_grow(&t->name, more))
			return &none;
		memset(t->name.v + t->name.nr, 0, more * sizeof(*t->name.v));
		t->name.nr += more;
	}
	n = &t->name.v[func];
	if (n->s == NULL) {
		n->s = uni_funcs_name(t->funcs, func);
		n->len = (uint32_t)uni_min(strlen(n->s), (size_t)UNI_TEXT_MAX);
		memcpy(n->start, n->s, uni_min(n->len, (uint32_t)SHORT));
	}
	return n;
}

static inline const struct name *name_of(struct uni_trace_text *t, uint32_t func)
{
	if (__builtin_expect(func < t->name.nr && t->name.v[func].s != NULL, 1))
		return &t->name.v[func];
	return ask_name(t, func);
}

static struct line *line_of(struct uni_trace_text *t, uint32_t cpu)
{
	while (__builtin_expect(cpu >= t->line.nr, 0)) {
		struct line l = { .prefix = " " };
		char *end = put_number(l.prefix + 1, t->line.nr);

		end = COPY(end, ") ");
		l.prefix_len = (uint8_t)(end - l.prefix);
		if (!uni_vec_push(&t->line, l))
			return NULL;
	}
	return &t->line.v[cpu];
}

/*
 * Microseconds with three decimals, of which only the first 8 characters are written. From 10^8 us
 * on Nanos leaves out digits before the point; here the column gets wider instead.
 */
static inline char *put_duration(const struct uni_trace_text *t, char *p, uint64_t ns)
{
	uint64_t us = ns / 1000;
	char *end, *start = p;

	*p++ = us < 10	     ? ' '
	       : us < 100    ? '+'
	       : us < 1000   ? '!'
	       : us < 10000  ? '#'
	       : us < 100000 ? '*'
			     : '@';
	*p++ = ' ';
	end = us < 10 ? p : put_number(p, us);
	if (us < 10)
		*end++ = (char)('0' + us);
	if (end - p < 8) {
		memcpy(end, t->thousandth[ns % 1000], 4);
		end = uni_min(end + 4, p + 8);
	}
	end = COPY(end, " us");
	while (end - start < DURATION)
		*end++ = ' ';
	return end;
}

static inline char *begin_line(const struct uni_trace_text *t, char *p, const struct line *l,
	uint32_t depth, bool timed, uint64_t ns)
{
	p = copy_text(p, l->prefix, sizeof(l->prefix)) - sizeof(l->prefix) + l->prefix_len;
	p = timed ? put_duration(t, p, ns) : put_blanks(p, DURATION);
	p = COPY(p, " |  ");
	return put_blanks(p, 2 * (size_t)depth);
}

/* "(ARGS) {" or "(ARGS);" and the value as a comment, as Linux writes them. Each is written
 * once. */
static char *put_values(char *p, const struct line *l, bool leaf)
{
	*p++ = '(';
	p = copy_text(p, l->args, strlen(l->args));
	l->args[0] = '\0';
	if (!leaf)
		return COPY(p, ") {\n");
	p = COPY(p, ");");
	if (l->value[0] != '\0') {
		p = COPY(p, " /* ");
		p = copy_text(p, l->value, strlen(l->value));
		p = COPY(p, " */");
		l->value[0] = '\0';
	}
	*p++ = '\n';
	return p;
}

/* "name() {" or "name();" */
static inline void put_call(struct uni_trace_text *t, const struct line *l, uint32_t func,
	uint32_t depth, bool timed, uint64_t ns, bool leaf)
{
	const struct name *n = name_of(t, func);
	char *p = begin_line(t, block_room(t, LINE_MAX), l, depth, timed, ns);

	p = put_name(p, n);
	if (__builtin_expect(l->args != NULL, 0))
		p = put_values(p, l, leaf);
	else
		p = leaf ? COPY(p, "();\n") : COPY(p, "() {\n");
	t->fill = (size_t)(p - t->block);
}

static inline void put_end(
	struct uni_trace_text *t, const struct line *l, const struct uni_call_event *e)
{
	const struct name *n = name_of(t, e->func);
	char *p = begin_line(t, block_room(t, LINE_MAX), l, uni_min(e->depth, UNI_CALLS_DEPTH_MAX),
		(e->flags & UNI_CALL_CUT) == 0, e->duration);

	p = COPY(p, "} /* ");
	p = put_name(p, n);
	if (__builtin_expect(l->value != NULL && l->value[0] != '\0', 0)) {
		*p++ = ' ';
		p = copy_text(p, l->value, strlen(l->value));
		l->value[0] = '\0';
	}
	p = COPY(p, " */\n");
	t->fill = (size_t)(p - t->block);
}

static inline void tell_waiting(struct uni_trace_text *t, struct line *l)
{
	if (!l->waits)
		return;
	l->waits = false;
	put_call(t, l, l->func, l->depth, false, 0, false);
}

static const char *thread_name(
	const struct uni_trace_text *t, uint32_t thread, uint64_t *number_ret)
{
	*number_ret = thread;
	return t->opts.thread_name == NULL ? "tid"
					   : t->opts.thread_name(t->opts.ctx, thread, number_ret);
}

static void put_switch(
	struct uni_trace_text *t, const struct line *l, const struct uni_call_event *e)
{
	static const char rule[] = "------------------------------------------\n";
	uint64_t from, to;
	const char *out = thread_name(t, e->thread, &from), *in = thread_name(t, e->next, &to);

	flush_block(t);
	uni_sink_puts(t->out, rule);
	uni_sink_write(t->out, l->prefix, l->prefix_len);
	uni_sink_printf(t->out, "%s-%llu  => %s-%llu\n", out, (unsigned long long)from, in,
		(unsigned long long)to);
	uni_sink_puts(t->out, rule);
}

/* Keeps arguments or a value for the call or return that comes with the next event. */
static void keep_values(struct uni_trace_text *t, struct line *l, const struct uni_call_event *e)
{
	bool is_value = e->cls == UNI_TRACE_CLASS_EXIT_VALUE;

	if (t->opts.args == NULL || (!is_value && e->cls != UNI_TRACE_CLASS_ENTRY_ARGS))
		return;
	if (l->args == NULL) {
		l->args = calloc(1, ARGS_MAX + VALUE_MAX);
		if (l->args == NULL)
			return;
		l->value = l->args + ARGS_MAX;
	}
	if (is_value) {
		t->opts.args(t->opts.args_ctx, e, l->value, VALUE_MAX);
		return;
	}
	tell_waiting(t, l); /* it has arguments of its own */
	t->opts.args(t->opts.args_ctx, e, l->args, ARGS_MAX);
}

static void put_note(struct uni_trace_text *t, struct line *l, const struct uni_call_event *e)
{
	char text[VALUE_MAX];
	char *p;

	t->opts.note(t->opts.note_ctx, e, text, sizeof(text));
	if (text[0] == '\0')
		return;
	tell_waiting(t, l);
	p = begin_line(
		t, block_room(t, LINE_MAX), l, uni_min(e->depth, UNI_CALLS_DEPTH_MAX), false, 0);
	p = COPY(p, "/* ");
	p = copy_text(p, text, strlen(text));
	p = COPY(p, " */\n");
	t->fill = (size_t)(p - t->block);
}

/* A call's caller, if no open call shows it. */
static void put_caller(struct uni_trace_text *t, uint32_t caller)
{
	const struct name *n = name_of(t, caller);
	char *p = t->block + t->fill - 1; /* the line's end */

	p = COPY(p, " /* <-");
	p = put_name(p, n);
	p = COPY(p, " */\n");
	t->fill = (size_t)(p - t->block);
}

/* An event that is no plain call. */
static void put_other(struct uni_trace_text *t, struct line *l, const struct uni_call_event *e)
{
	switch (e->type) {
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		tell_waiting(t, l);
		put_call(t, l, e->func, uni_min(e->depth, UNI_CALLS_DEPTH_MAX), false, 0, true);
		if (e->type == UNI_CALL_ENTRY && e->caller != UNI_FUNC_NONE)
			put_caller(t, e->caller);
		break;
	case UNI_CALL_SWITCH:
		tell_waiting(t, l);
		if (!t->opts.no_switches)
			put_switch(t, l, e);
		break;
	case UNI_CALL_LOST:
		tell_waiting(t, l);
		flush_block(t);
		uni_sink_printf(t->out, "CPU:%u [LOST %llu EVENTS]\n", e->cpu,
			(unsigned long long)e->count);
		break;
	case UNI_CALL_EXT:
		if (e->cls >= UNI_TRACE_CLASS_USER && t->opts.note != NULL)
			put_note(t, l, e);
		else
			keep_values(t, l, e);
		break;
	default:
		break;
	}
}

static int put_graph(struct uni_trace_text *t, const struct uni_call_event *e, size_t nr)
{
	for (; nr != 0; e++, nr--) {
		struct line *l = line_of(t, e->cpu);

		if (l == NULL)
			return -UNI_ENOMEM;
		if (e->type == UNI_CALL_ENTER) {
			tell_waiting(t, l);
			l->waits = true;
			l->func = e->func;
			l->depth = uni_min(e->depth, UNI_CALLS_DEPTH_MAX);
		} else if (e->type != UNI_CALL_LEAVE) {
			put_other(t, l, e);
		} else if ((e->flags & UNI_CALL_CUT) == 0 && l->waits) {
			l->waits = false;
			put_call(t, l, e->func, l->depth, true, e->duration, true);
		} else {
			tell_waiting(t, l);
			if ((e->flags & UNI_CALL_OPEN) == 0)
				put_end(t, l, e);
		}
	}
	return 0;
}

static char *put_task(const struct uni_trace_text *t, char *p, uint32_t thread)
{
	uint64_t number;
	const char *name = thread_name(t, thread, &number);
	size_t len = uni_min(strlen(name), 15u);
	char *start;

	*p++ = ' ';
	p = put_blanks(p, 15 - len);
	p = copy_text(p, name, len);
	*p++ = '-';
	start = p;
	p = put_number(p, number);
	while (p - start < 5)
		*p++ = ' ';
	return p;
}

static int put_functions(struct uni_trace_text *t, const struct uni_call_event *e, size_t nr)
{
	for (; nr != 0; e++, nr--) {
		const struct name *n;
		char *p;

		if (e->type != UNI_CALL_ENTER && e->type != UNI_CALL_LEAF &&
			e->type != UNI_CALL_ENTRY)
			continue;
		if ((e->flags & UNI_CALL_BEGAN) != 0)
			continue;
		p = put_task(t, block_room(t, LINE_MAX), e->thread);
		p = COPY(p, " [");
		if (e->cpu < 100)
			*p++ = '0';
		if (e->cpu < 10)
			*p++ = '0';
		p = put_number(p, e->cpu);
		p = COPY(p, "]  ");
		p = put_number(p, e->tsc);
		p = COPY(p, ": ");
		n = name_of(t, e->func);
		p = n->len != 0 ? put_name(p, n) : COPY(p, UNKNOWN);
		p = COPY(p, " <-");
		n = name_of(t, e->caller);
		p = n->len != 0 ? put_name(p, n) : COPY(p, UNKNOWN);
		*p++ = '\n';
		t->fill = (size_t)(p - t->block);
	}
	return 0;
}

int uni_trace_text_put(struct uni_trace_text *t, const struct uni_call_event *e, size_t nr)
{
	switch (t->opts.kind) {
	case UNI_TRACE_TEXT_GRAPH:
		return put_graph(t, e, nr);
	case UNI_TRACE_TEXT_FUNCTION:
		return put_functions(t, e, nr);
	default:
		return 0;
	}
}

void uni_trace_text_flush(struct uni_trace_text *t)
{
	flush_block(t);
}

void uni_trace_text_close(struct uni_trace_text *t)
{
	if (t == NULL)
		return;
	uni_vec_foreach (l, &t->line)
		tell_waiting(t, l);
	flush_block(t);
	uni_vec_foreach (l, &t->line)
		free(l->args);
	uni_vec_free(&t->line);
	uni_vec_free(&t->name);
	free(t);
}
