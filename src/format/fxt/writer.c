/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuchsia's trace format: records of little-endian 64-bit words. Each begins with its type (4
 * bits), its length in words (12) and data. A call is one "duration complete" event, a switch is a
 * context switch of its CPU. The string table holds functions (from 1 on) until it is full; further
 * ones are written inline, and so are threads. Samples are spans (format/spans.h), "complete"
 * events of their own objects.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/vec.h"
#include "format/opts.h"
#include "format/promises.h"
#include "format/spans.h"

#define MAGIC	    UINT64_C(0x0016547846040010)
#define INIT	    1 /* record types */
#define STRING	    2
#define THREAD	    3
#define EVENT	    4
#define KERNEL	    7
#define SCHEDULING  8
#define INSTANT	    0 /* events */
#define COUNTER	    1
#define COMPLETE    4
#define ASYNC_BEGIN 5
#define ASYNC_MARK  6
#define ASYNC_END   7
#define FLOW_BEGIN  8
#define FLOW_END    10
#define PROCESS_OBJ 1
#define THREAD_OBJ  2
#define INT64_ARG   3
#define KOID_ARG    8
#define SWITCHED    (UINT64_C(1) << 60)
#define RUNNABLE    1 /* state of the thread that goes: "suspended" would claim to know why */

#define STRINGS_MAX    0x7fff
#define THREADS_MAX    255
#define NAME_MAX_BYTES 1024
#define INLINE	       0x8000
#define PROCESS	       1 /* koid of the guest; threads follow */
#define CATEGORY       1 /* strings that are always there */
#define PROCESS_KEY    2
#define SAMPLES	       3
#define PROMISES       4
#define VALUE	       5
#define FIRST_FREE     6
#define SAMPLED	       (UINT64_C(1) << 32) /* koid of guest 0; its lanes are above 2^33 */
#define SAMPLED_LANE   (UINT64_C(1) << 33)
#define PROMISED       (UINT64_C(1) << 40) /* koid of threads and promises; CPUs follow */
#define PAUSED	       (UINT64_C(1) << 41)
#define WAITED	       (UINT64_C(1) << 32) /* ids of waits; those of promises are below */

struct writer {
	const struct uni_timeline *tl;
	struct uni_sink *out;
	UNI_VEC(uint16_t) refs; /* of functions, or frames; 0: not written yet */
	UNI_VEC(bool) seen;	/* threads that were named */
	unsigned nr_strings;
};

static int write_fxt(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_fxt = {
	.name = "fxt",
	.ext = "fxt",
	.mime = "application/octet-stream",
	.summary = "Fuchsia trace format: small, for Perfetto",
	.lost = "on which vCPU a thread ran; samples become spans",
	.needs = UNI_TAKES_ALL | UNI_TAKES_PROMISES,
	.write = write_fxt,
};

static void put_word(struct writer *w, uint64_t v)
{
	uint8_t b[8];

	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(v >> 8 * i);
	uni_sink_write(w->out, b, sizeof(b));
}

static void put_record(struct writer *w, uint64_t type, uint64_t words, uint64_t data)
{
	put_word(w, type | words << 4 | data << 16);
}

static size_t cut_name(const char *s)
{
	size_t n = strlen(s);

	if (n <= NAME_MAX_BYTES)
		return n;
	n = NAME_MAX_BYTES;
	while (n != 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static uint64_t words_of(size_t bytes)
{
	return (bytes + 7) / 8;
}

static void put_bytes(struct writer *w, const char *s, size_t n)
{
	static const char zeros[8];

	uni_sink_write(w->out, s, n);
	uni_sink_write(w->out, zeros, words_of(n) * 8 - n);
}

static void put_string(struct writer *w, unsigned ref, const char *s)
{
	size_t n = cut_name(s);

	put_record(w, STRING, 1 + words_of(n), ref | (uint64_t)n << 16);
	put_bytes(w, s, n);
}

static uint64_t thread_koid(uint32_t thread)
{
	return (uint64_t)thread + PROCESS + 1;
}

/* An object's name, inline. process: that of a thread, else 0. */
static void put_object(struct writer *w, uint64_t type, uint64_t koid, const char *name, size_t n,
	uint64_t process)
{
	bool in_process = process != 0;

	put_record(w, KERNEL, 2 + words_of(n) + (in_process ? 2 : 0),
		type | (uint64_t)(INLINE | n) << 8 | (uint64_t)in_process << 24);
	put_word(w, koid);
	put_bytes(w, name, n);
	if (!in_process)
		return;
	put_word(w, KOID_ARG | 2 << 4 | (uint64_t)PROCESS_KEY << 16);
	put_word(w, process);
}

static int name_thread(struct writer *w, uint32_t thread)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	const char *name;
	uint64_t number;

	uni_strbuf_init(&b);
	if (thread >= w->seen.nr) {
		size_t more = thread + 1 - w->seen.nr;

		if (!uni_vec_grow(&w->seen, more))
			return -UNI_ENOMEM;
		memset(w->seen.v + w->seen.nr, 0, more * sizeof(w->seen.v[0]));
		w->seen.nr = thread + 1;
	}
	if (w->seen.v[thread])
		return 0;
	w->seen.v[thread] = true;
	name = w->tl->thread(w->tl->ctx, thread, &number);
	uni_strbuf_addf(&b, "%.*s-%llu", (int)cut_name(name), name, (unsigned long long)number);
	if (uni_strbuf_failed(&b))
		return -UNI_ENOMEM;
	put_object(w, THREAD_OBJ, thread_koid(thread), b.s, b.len, PROCESS);
	if (thread >= THREADS_MAX)
		return 0;
	put_record(w, THREAD, 3, thread + 1);
	put_word(w, PROCESS);
	put_word(w, thread_koid(thread));
	return 0;
}

static const char *func_name(const struct writer *w, uint32_t func)
{
	const char *name = w->tl->func(w->tl->ctx, func);

	return name[0] != '\0' ? name : "[unknown]";
}

/* Reference to a name by its number, which is written if it is new; INLINE: the table is full. */
static int name_ref(struct writer *w, uint32_t func, const char *name, uint64_t *ret)
{
	if (func >= w->refs.nr) {
		size_t more = func + 1 - w->refs.nr;

		if (!uni_vec_grow(&w->refs, more))
			return -UNI_ENOMEM;
		memset(w->refs.v + w->refs.nr, 0, more * sizeof(w->refs.v[0]));
		w->refs.nr = func + 1;
	}
	if (w->refs.v[func] == 0 && w->nr_strings <= STRINGS_MAX) {
		put_string(w, w->nr_strings, name);
		w->refs.v[func] = (uint16_t)w->nr_strings++;
	}
	*ret = w->refs.v[func] != 0 ? w->refs.v[func] : INLINE;
	return 0;
}

static int put_event(struct writer *w, uint64_t kind, const struct uni_call_event *e)
{
	const char *name = func_name(w, e->func);
	uint64_t ref, thread = e->thread < THREADS_MAX ? e->thread + 1 : 0, words;
	uint64_t begin = e->ns - uni_min(e->ns, e->duration);
	size_t n = 0;
	int rc = name_ref(w, e->func, name, &ref);

	if (rc != 0)
		return rc;
	if (ref == INLINE) {
		n = cut_name(name);
		ref |= n;
	}
	words = 2 + (thread == 0 ? 2 : 0) + words_of(n) + (kind == COMPLETE);
	put_record(w, EVENT, words, kind | thread << 8 | (uint64_t)CATEGORY << 16 | ref << 32);
	put_word(w, kind == COMPLETE ? begin : e->ns);
	if (thread == 0) {
		put_word(w, PROCESS);
		put_word(w, thread_koid(e->thread));
	}
	put_bytes(w, name, n);
	if (kind == COMPLETE)
		put_word(w, e->ns);
	return 0;
}

static int put_switch(struct writer *w, const struct uni_call_event *e)
{
	int rc = name_thread(w, e->next);

	if (rc != 0)
		return rc;
	put_word(w,
		SCHEDULING | 4 << 4 | (uint64_t)e->cpu << 20 | (uint64_t)RUNNABLE << 36 | SWITCHED);
	put_word(w, e->ns);
	put_word(w, thread_koid(e->thread));
	put_word(w, thread_koid(e->next));
	return 0;
}

static int put_fxt_call(struct writer *w, const struct uni_call_event *e)
{
	int rc = name_thread(w, e->thread);

	if (rc != 0)
		return rc;
	switch (e->type) {
	case UNI_CALL_LEAVE:
		return put_event(w, COMPLETE, e);
	case UNI_CALL_LEAF:
	case UNI_CALL_ENTRY:
		return put_event(w, INSTANT, e);
	case UNI_CALL_SWITCH:
		return put_switch(w, e);
	default:
		return 0;
	}
}

struct sampled {
	struct writer *w;
	const struct uni_rows *rows;
};

static int put_sampled(void *arg, const struct uni_row_span *s)
{
	const struct sampled *from = arg;
	const struct uni_profile *p = from->rows->p;
	const char *name = uni_profile_str(p, uni_profile_get_frame(p, s->frame)->name);
	struct writer *w = from->w;
	uint64_t ref;
	size_t n = 0;
	int rc = name_ref(w, s->frame, name, &ref);

	if (rc != 0)
		return rc;
	if (ref == INLINE) {
		n = cut_name(name);
		ref |= n;
	}
	put_record(w, EVENT, 5 + words_of(n), COMPLETE | (uint64_t)SAMPLES << 16 | ref << 32);
	put_word(w, s->begin_ns);
	put_word(w, SAMPLED + from->rows->lanes.v[s->lane].guest);
	put_word(w, SAMPLED_LANE + s->lane);
	put_bytes(w, name, n);
	put_word(w, s->end_ns);
	return 0;
}

static int put_samples(struct writer *w, const struct uni_view *v, struct uni_err *err)
{
	char name[UNI_TEXT_MAX];
	struct uni_rows rows;
	struct sampled from = { w, &rows };
	int rc = uni_rows_init(&rows, v, err);

	w->refs.nr = 0; /* frames have numbers of their own */
	for (uint32_t i = 0; rc == 0 && i < rows.nr_guests; i++) {
		uni_rows_guest(&rows, i, name);
		put_object(w, PROCESS_OBJ, SAMPLED + i, name, cut_name(name), 0);
	}
	for (uint32_t i = 0; rc == 0 && i < rows.lanes.nr; i++) {
		uni_rows_lane(&rows, i, name);
		put_object(w, THREAD_OBJ, SAMPLED_LANE + i, name, cut_name(name),
			SAMPLED + rows.lanes.v[i].guest);
	}
	if (rc == 0)
		uni_rows_say(&rows, v);
	if (rc == 0)
		rc = uni_rows_spans(&rows, put_sampled, &from);
	uni_rows_deinit(&rows);
	return rc;
}

struct promised {
	struct writer *w;
	bool run_of[UNI_PROMISE_CPUS], pause_of[UNI_PROMISE_CPUS];
};

/* An event of threads and promises. `last` is its last word: its end, or the id that links it. */
static void put_promise(struct writer *w, uint64_t kind, uint64_t thread,
	const struct uni_promise_part *p, uint64_t ns, uint64_t last)
{
	size_t n = cut_name(p->name);
	uint64_t args = kind == COUNTER;

	put_record(w, EVENT, 5 + words_of(n) + 2 * args,
		kind | args << 4 | (uint64_t)PROMISES << 16 | (uint64_t)(INLINE | n) << 32);
	put_word(w, ns);
	put_word(w, PROMISED);
	put_word(w, thread);
	put_bytes(w, p->name, n);
	if (args != 0) {
		put_word(w, INT64_ARG | 2 << 4 | (uint64_t)VALUE << 16);
		put_word(w, (uint64_t)p->value);
	}
	put_word(w, last);
}

static uint64_t cpu_koid(struct promised *x, bool pause, uint32_t cpu)
{
	bool *named =
		pause ? &x->pause_of[cpu % UNI_PROMISE_CPUS] : &x->run_of[cpu % UNI_PROMISE_CPUS];
	uint64_t koid = (pause ? PAUSED : PROMISED) + 1 + cpu;
	char name[48];
	int n;

	if (!*named) {
		n = snprintf(name, sizeof(name), "%s CPU %u", pause ? "pauses of" : "run by", cpu);
		put_object(x->w, THREAD_OBJ, koid, name, (size_t)n, PROMISED);
	}
	*named = true;
	return koid;
}

static int one_promised(void *arg, const struct uni_promise_part *p)
{
	struct promised *x = arg;
	struct writer *w = x->w;
	uint64_t id = p->kind == UNI_PART_WAIT ? WAITED + p->nr : p->nr;

	switch ((enum uni_promise_part_kind)p->kind) {
	case UNI_PART_LIFE:
	case UNI_PART_WAIT:
		put_promise(w, ASYNC_BEGIN, PROMISED, p, p->begin, id);
		put_promise(w, ASYNC_END, PROMISED, p, p->end, id);
		break;
	case UNI_PART_LABEL:
		put_promise(w, ASYNC_MARK, PROMISED, p, p->begin, id);
		break;
	case UNI_PART_RUN:
	case UNI_PART_PAUSE:
		put_promise(w, COMPLETE, cpu_koid(x, p->kind == UNI_PART_PAUSE, p->cpu), p,
			p->begin, p->end);
		break;
	case UNI_PART_WAKE:
		put_promise(w, FLOW_BEGIN, cpu_koid(x, false, p->from), p, p->begin, id);
		put_promise(w, FLOW_END, cpu_koid(x, false, p->cpu), p, p->end, id);
		break;
	case UNI_PART_COUNT:
		put_promise(w, COUNTER, PROMISED, p, p->begin, id);
		break;
	}
	return 0;
}

static void put_promises(struct writer *w, const struct uni_promise_model *m)
{
	static const char name[] = "threads and promises";
	struct promised x = { .w = w };

	put_object(w, PROCESS_OBJ, PROMISED, name, sizeof(name) - 1, 0);
	(void)uni_promise_parts(m, one_promised, &x);
}

static void put_header(struct writer *w)
{
	put_word(w, MAGIC);
	put_record(w, INIT, 2, 0);
	put_word(w, UNI_NSEC_PER_SEC); /* ticks a second */
	put_string(w, CATEGORY, "calls");
	put_string(w, PROCESS_KEY, "process");
	put_string(w, SAMPLES, "samples");
	put_string(w, PROMISES, "promises");
	put_string(w, VALUE, "value");
	w->nr_strings = FIRST_FREE;
}

static int put_calls(struct writer *w)
{
	static const char guest[] = "guest";
	const struct uni_call_event *e;
	size_t nr;
	int rc;

	put_object(w, PROCESS_OBJ, PROCESS, guest, sizeof(guest) - 1, 0);
	while ((rc = w->tl->read(w->tl->ctx, &e, &nr)) == 1) {
		for (size_t i = 0; i < nr && rc == 1; i++)
			rc = put_fxt_call(w, &e[i]) == 0 ? 1 : -UNI_ENOMEM;
		if (rc < 0)
			return rc;
	}
	return rc;
}

static int write_fxt(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { .tl = v->timeline, .out = out };
	int rc = uni_export_opts_parse(&uni_exporter_fxt, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_fxt, v, err);
	if (rc != 0)
		return rc;
	put_header(&w);
	if (v->timeline != NULL)
		rc = put_calls(&w);
	if (rc == 0 && v->profile != NULL)
		rc = put_samples(&w, v, err);
	if (rc == 0 && v->promises != NULL)
		put_promises(&w, v->promises);
	uni_vec_free(&w.refs);
	uni_vec_free(&w.seen);
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}
