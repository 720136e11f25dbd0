/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/vec.h"

#define BLOCK	   (256u * 1024)
#define FIXED_MAX  512	/* of a line: all but its texts */
#define VALUES_MAX 8192 /* six texts of UNI_TRACE_TEXT_MAX bytes, escaped */
#define SHORT	   32	/* copies of a fixed length are several times faster */

/* A JSON string with its quotes; owned. */
struct quoted {
	char *s;
	uint32_t len;
	char start[SHORT];
};

struct uni_trace_lines {
	struct uni_sink *out;
	struct uni_funcs *funcs;
	struct uni_trace_text_opts opts;
	UNI_VEC(struct quoted) name; /* by function */
	UNI_VEC(bool) told;	     /* by thread: its line is written */
	/* Arguments or a value of the call or return that comes, a JSON string; by CPU, "" or NULL:
	 * none. */
	UNI_VEC(char *) values;
	char digits[100][2]; /* "00" to "99" */
	size_t fill;
	char block[BLOCK];
};

static void flush_block(struct uni_trace_lines *l)
{
	uni_sink_write(l->out, l->block, l->fill);
	l->fill = 0;
}

/*
 * Room for a line with texts of this length. It always fits into the block: a name has at most
 * UNI_TEXT_MAX bytes, and values have VALUES_MAX. Each byte takes at most six when it is escaped.
 */
static char *line_room(struct uni_trace_lines *l, size_t texts)
{
	if (FIXED_MAX + texts > BLOCK - l->fill)
		flush_block(l);
	return l->block + l->fill;
}

static inline char *copy_text(char *p, const void *from, size_t len)
{
	memcpy(p, from, len);
	return p + len;
}
#define COPY(p, literal) copy_text(p, literal, sizeof(literal) - 1)

static inline char *put_number(const struct uni_trace_lines *l, char *p, uint64_t v)
{
	char text[20];
	size_t i = sizeof(text);

	while (v >= 100) {
		i -= 2;
		memcpy(text + i, l->digits[v % 100], 2);
		v /= 100;
	}
	if (v >= 10) {
		i -= 2;
		memcpy(text + i, l->digits[v], 2);
	} else {
		text[--i] = (char)('0' + v);
	}
	return copy_text(p, text + i, sizeof(text) - i);
}

static inline char *put_quoted(char *p, const struct quoted *q)
{
	memcpy(p, q->start, SHORT);
	if (__builtin_expect(q->len > SHORT, 0))
		memcpy(p, q->s, q->len);
	return p + q->len;
}

/* NULL: out of memory. The caller frees it. */
static char *quote_text(const char *s)
{
	struct uni_strbuf text;
	struct uni_sink *sink;
	struct uni_json j;
	char *ret = NULL;

	uni_strbuf_init(&text);
	if (uni_sink_open_strbuf(&text, &sink) == 0) {
		uni_json_init(&j, sink, false);
		uni_json_str(&j, s);
		ret = uni_sink_close(sink, NULL) == 0 ? strdup(text.s) : NULL;
	}
	uni_strbuf_deinit(&text);
	return ret;
}

/* Names are asked for once each. NULL: out of memory. */
static __attribute__((noinline)) const struct quoted *ask_name(
	struct uni_trace_lines *l, uint32_t func)
{
	struct quoted *q;

	if (func >= l->name.nr) {
		size_t more = uni_max(uni_funcs_nr(l->funcs), func + 1) - l->name.nr;

		if (!uni_vec_grow(&l->name, more))
			return NULL;
		memset(l->name.v + l->name.nr, 0, more * sizeof(*l->name.v));
		l->name.nr += more;
	}
	q = &l->name.v[func];
	if (q->s == NULL) {
		q->s = quote_text(uni_funcs_name(l->funcs, func));
		if (q->s == NULL)
			return NULL;
		q->len = (uint32_t)strlen(q->s);
		memcpy(q->start, q->s, uni_min(q->len, (uint32_t)SHORT));
	}
	return q;
}

static inline const struct quoted *name_of(struct uni_trace_lines *l, uint32_t func)
{
	if (__builtin_expect(func < l->name.nr && l->name.v[func].s != NULL, 1))
		return &l->name.v[func];
	return ask_name(l, func);
}

/* The line of a thread comes before the first event that has its number. */
static int tell_thread(struct uni_trace_lines *l, uint32_t thread)
{
	uint64_t number = thread;
	const char *name = "tid";
	char *quoted, *p;

	while (thread >= l->told.nr) {
		if (!uni_vec_push(&l->told, false))
			return -UNI_ENOMEM;
	}
	if (l->opts.thread_name != NULL)
		name = l->opts.thread_name(l->opts.ctx, thread, &number);
	quoted = quote_text(name);
	if (quoted == NULL)
		return -UNI_ENOMEM;
	p = line_room(l, strlen(quoted));
	p = COPY(p, "{\"type\":\"thread\",\"thread\":");
	p = put_number(l, p, thread);
	p = COPY(p, ",\"number\":");
	p = put_number(l, p, number);
	p = COPY(p, ",\"name\":");
	p = copy_text(p, quoted, strlen(quoted));
	p = COPY(p, "}\n");
	l->fill = (size_t)(p - l->block);
	l->told.v[thread] = true;
	free(quoted);
	return 0;
}

static inline bool is_told(const struct uni_trace_lines *l, uint32_t thread)
{
	return __builtin_expect(thread < l->told.nr && l->told.v[thread], 1);
}

#define BEGIN(l, p, e, type) begin_line(l, COPY(p, "{\"type\":\"" type "\",\"ns\":"), e)

static inline char *begin_line(
	const struct uni_trace_lines *l, char *p, const struct uni_call_event *e)
{
	p = put_number(l, p, e->ns);
	p = COPY(p, ",\"cpu\":");
	p = put_number(l, p, e->cpu);
	p = COPY(p, ",\"thread\":");
	return put_number(l, p, e->thread);
}

/* The text that uni_trace_lines_put() kept for this call or return: each is written once. */
static char *put_values(struct uni_trace_lines *l, char *p, const struct uni_call_event *e)
{
	char **values = e->cpu < l->values.nr ? &l->values.v[e->cpu] : NULL;

	if (values == NULL || *values == NULL)
		return p;
	p = e->type == UNI_CALL_LEAVE ? COPY(p, ",\"value\":") : COPY(p, ",\"args\":");
	p = copy_text(p, *values, strlen(*values));
	free(*values);
	*values = NULL;
	return p;
}

static char *put_leave(const struct uni_trace_lines *l, char *p, const struct uni_call_event *e)
{
	p = COPY(p, ",\"duration_ns\":");
	p = put_number(l, p, e->duration);
	p = COPY(p, ",\"self_ns\":");
	p = put_number(l, p, e->self);
	if (e->off != 0) {
		p = COPY(p, ",\"off_ns\":");
		p = put_number(l, p, e->off);
	}
	if ((e->flags & UNI_CALL_OPEN) != 0)
		return COPY(p, ",\"end\":\"open\"");
	return (e->flags & UNI_CALL_CUT) != 0 ? COPY(p, ",\"end\":\"cut\"") : p;
}

/* `{"type":"...","ns":N,"cpu":N,"thread":N` */
static inline char *begin_call(
	const struct uni_trace_lines *l, char *p, const struct uni_call_event *e)
{
	switch (e->type) {
	case UNI_CALL_ENTER:
		return BEGIN(l, p, e, "enter");
	case UNI_CALL_LEAVE:
		return BEGIN(l, p, e, "leave");
	case UNI_CALL_LEAF:
		return BEGIN(l, p, e, "leaf");
	default:
		return BEGIN(l, p, e, "entry");
	}
}

static inline int put_call(struct uni_trace_lines *l, const struct uni_call_event *e)
{
	uint32_t by = e->type != UNI_CALL_LEAVE ? e->caller : UNI_FUNC_NONE;
	const struct quoted *name, *caller;
	char *p;

	/* Asking for a name may move the others. */
	if (name_of(l, e->func) == NULL || name_of(l, by) == NULL)
		return -UNI_ENOMEM;
	name = &l->name.v[e->func];
	caller = &l->name.v[by];
	p = begin_call(l, line_room(l, name->len + caller->len + 6 * VALUES_MAX), e);
	p = COPY(p, ",\"depth\":");
	p = put_number(l, p, e->depth);
	p = COPY(p, ",\"function\":");
	p = put_quoted(p, name);
	if (by != UNI_FUNC_NONE) {
		p = COPY(p, ",\"caller\":");
		p = put_quoted(p, caller);
	}
	if (e->type == UNI_CALL_LEAVE)
		p = put_leave(l, p, e);
	if (__builtin_expect((e->flags & UNI_CALL_BEGAN) != 0, 0))
		p = COPY(p, ",\"began\":true");
	if (__builtin_expect(l->values.nr != 0, 0))
		p = put_values(l, p, e);
	p = COPY(p, "}\n");
	l->fill = (size_t)(p - l->block);
	return 0;
}

/* Keeps arguments or a value for the call or return that comes with the next event. */
static int keep_values(struct uni_trace_lines *l, const struct uni_call_event *e)
{
	char text[VALUES_MAX];

	if (l->opts.args == NULL ||
		(e->cls != UNI_TRACE_CLASS_EXIT_VALUE && e->cls != UNI_TRACE_CLASS_ENTRY_ARGS))
		return 0;
	while (e->cpu >= l->values.nr) {
		if (!uni_vec_push(&l->values, NULL))
			return -UNI_ENOMEM;
	}
	l->opts.args(l->opts.args_ctx, e, text, sizeof(text));
	free(l->values.v[e->cpu]);
	l->values.v[e->cpu] = text[0] != '\0' ? quote_text(text) : NULL;
	return text[0] == '\0' || l->values.v[e->cpu] != NULL ? 0 : -UNI_ENOMEM;
}

/* An event of no function that is known. */
static int put_other(struct uni_trace_lines *l, const struct uni_call_event *e)
{
	char *p;

	if (e->type == UNI_CALL_EXT)
		return keep_values(l, e);
	if (e->type == UNI_CALL_SWITCH && !is_told(l, e->next) && tell_thread(l, e->next) != 0)
		return -UNI_ENOMEM;
	p = line_room(l, 0);
	switch (e->type) {
	case UNI_CALL_RETURN:
		p = BEGIN(l, p, e, "return");
		break;
	case UNI_CALL_SWITCH:
		p = COPY(BEGIN(l, p, e, "switch"), ",\"next\":");
		p = put_number(l, p, e->next);
		break;
	case UNI_CALL_LOST:
		p = COPY(BEGIN(l, p, e, "lost"), ",\"events\":");
		p = put_number(l, p, e->count);
		break;
	default:
		return 0;
	}
	p = COPY(p, "}\n");
	l->fill = (size_t)(p - l->block);
	return 0;
}

struct uni_trace_lines *uni_trace_lines_open(
	struct uni_sink *out, struct uni_funcs *funcs, const struct uni_trace_text_opts *opts)
{
	struct uni_trace_lines *l = malloc(sizeof(*l));

	if (l == NULL)
		return NULL;
	memset(l, 0, offsetof(struct uni_trace_lines, block));
	l->out = out;
	l->funcs = funcs;
	l->opts = *opts;
	for (unsigned i = 0; i < 100; i++) {
		l->digits[i][0] = (char)('0' + i / 10);
		l->digits[i][1] = (char)('0' + i % 10);
	}
	uni_sink_puts(out, "{\"format\":\"uniscope-events\",\"version\":1}\n");
	return l;
}

int uni_trace_lines_put(struct uni_trace_lines *l, const struct uni_call_event *e, size_t nr)
{
	int rc = 0;

	for (; rc == 0 && nr != 0; e++, nr--) {
		if (!is_told(l, e->thread))
			rc = tell_thread(l, e->thread);
		if (rc != 0)
			break;
		rc = e->type == UNI_CALL_ENTER || e->type == UNI_CALL_LEAVE ||
				     e->type == UNI_CALL_LEAF || e->type == UNI_CALL_ENTRY
			     ? put_call(l, e)
			     : put_other(l, e);
	}
	return rc;
}

void uni_trace_lines_close(struct uni_trace_lines *l)
{
	if (l == NULL)
		return;
	flush_block(l);
	uni_vec_foreach (q, &l->name)
		free(q->s);
	uni_vec_foreach (v, &l->values)
		free(*v);
	uni_vec_free(&l->name);
	uni_vec_free(&l->told);
	uni_vec_free(&l->values);
	free(l);
}
