/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "base/vec.h"
#include "trace/record.h"
#include "trace/rules.h"
#include "trace/walk.h"
#include "trace/walk_calls.h"
#include "trace/walk_stops.h"

#define BATCH 512 /* records at a time */

/* Indices of uni_walk_thread.own. */
enum {
	MATCH, /* frame of the call that the filter's function pattern let in; 0: none */
	/* frames below this were open when the time window began, and are not reported yet */
	ANNOUNCE,
};

struct uni_calls {
	struct uni_walk walk; /* first: ops get this */
	UNI_VEC(struct uni_call_event) event;
	UNI_VEC(uint64_t) words;
	UNI_VEC(uint8_t) match;		/* of functions: 0 not asked, 1 no, 2 yes */
	UNI_VEC(uint32_t) name_of;	/* of threads: 0 not looked for, 1 none, else input's + 2 */
	struct uni_call_picker *picker; /* NULL: there are no rules */
	bool telling, finished;
	bool announced; /* the events of a read are there before it */
};

static struct uni_call_event *add_call_event(
	struct uni_calls *s, const struct uni_walk_cpu *c, uint64_t time, enum uni_call_type type)
{
	struct uni_call_event *e;

	if (__builtin_expect(s->event.nr == s->event.cap, 0) && !uni_vec_grow(&s->event, 1)) {
		s->walk.failed = -UNI_ENOMEM;
		return NULL;
	}
	e = &s->event.v[s->event.nr++];
	*e = (struct uni_call_event){ .type = (uint8_t)type,
		.cpu = (uint16_t)(c - s->walk.cpu),
		.thread = c->thread,
		.tsc = time,
		.ns = uni_trace_clock_ns(&s->walk.in->cpu[0].clock, s->walk.rate, time) };
	return e;
}

static bool function_matches(struct uni_calls *s, uint32_t func)
{
	const char *glob = s->walk.filter.function;

	if (glob == NULL)
		return true;
	while (s->match.nr <= func) {
		if (!uni_vec_push(&s->match, 0)) {
			s->walk.failed = -UNI_ENOMEM;
			return false;
		}
	}
	if (s->match.v[func] == 0)
		s->match.v[func] =
			uni_glob_match(glob, uni_funcs_name(s->walk.funcs, func)) ? 2 : 1;
	return s->match.v[func] == 2;
}

/* The first frame that is reported; 0: none is. */
static uint32_t lowest_told(const struct uni_calls *s, const struct uni_walk_thread *t)
{
	return s->walk.filter.function == NULL ? 1 : t->own[MATCH];
}

static void put_enter(struct uni_calls *s, struct uni_walk_cpu *c, const struct uni_walk_frame *f,
	uint64_t time, unsigned flags)
{
	const struct uni_walk_thread *t = &s->walk.thread[c->thread];
	struct uni_call_event *e = add_call_event(s, c, time, UNI_CALL_ENTER);

	if (e == NULL)
		return;
	e->flags = (uint8_t)flags;
	e->func = f->func;
	e->caller = f[-1].func;
	e->depth = (uint32_t)(f - t->frame) - lowest_told(s, t);
}

/* The calls that were open when the window began, now that their thread is seen in it. */
static void announce_open(struct uni_calls *s, struct uni_walk_cpu *c, uint64_t time)
{
	struct uni_walk_thread *t = &s->walk.thread[c->thread];
	uint32_t i = lowest_told(s, t), n = t->own[ANNOUNCE];

	t->own[ANNOUNCE] = 0;
	for (; i != 0 && i < n; i++)
		put_enter(s, c, &t->frame[i], time, UNI_CALL_BEGAN);
}

static inline bool tells_all(const struct uni_calls *s)
{
	return s->walk.filter.rules != NULL && s->walk.filter.rules->all;
}

static inline bool is_told(struct uni_calls *s, struct uni_walk_cpu *c, uint64_t time)
{
	if (!s->telling || (c->muted && !tells_all(s)))
		return false;
	if (__builtin_expect(s->walk.thread[c->thread].own[ANNOUNCE] != 0, 0))
		announce_open(s, c, time);
	return true;
}

static inline void calls_enter(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f)
{
	struct uni_calls *s = (struct uni_calls *)w;
	struct uni_walk_thread *t = &w->thread[c->thread];

	if (w->filter.function != NULL && t->own[MATCH] == 0 && function_matches(s, f->func))
		t->own[MATCH] = (uint32_t)(f - t->frame);
	if (lowest_told(s, t) != 0 && is_told(s, c, f->begin))
		put_enter(s, c, f, f->begin, 0);
}

static inline void calls_leave(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f,
	uint64_t time, unsigned flags)
{
	struct uni_calls *s = (struct uni_calls *)w;
	struct uni_walk_thread *t = &w->thread[c->thread];
	uint64_t took = uni_walk_took(w, f->begin, time), off = f->off;
	uint32_t low = lowest_told(s, t), at = (uint32_t)(f - t->frame);
	struct uni_call_event *e;

	f[-1].child += took;
	if (low != 0 && is_told(s, c, time) &&
		(e = add_call_event(s, c, time, UNI_CALL_LEAVE)) != NULL) {
		if (w->from != 0 && f->begin == w->from)
			flags |= UNI_CALL_BEGAN;
		e->flags = (uint8_t)(flags & ~UNI_WALK_RAN);
		e->func = f->func;
		e->depth = at - low;
		e->duration = took;
		e->off = off;
		e->self = took > f->child + off ? took - f->child - off : 0;
	}
	if (at == t->own[MATCH])
		t->own[MATCH] = 0;
	t->own[ANNOUNCE] = uni_min(t->own[ANNOUNCE], at);
}

static inline void calls_leaf(struct uni_walk *w, struct uni_walk_cpu *c,
	struct uni_walk_frame *top, uint32_t func, uint64_t time, enum uni_call_type type)
{
	struct uni_calls *s = (struct uni_calls *)w;
	const struct uni_walk_thread *t = &w->thread[c->thread];
	uint32_t low = lowest_told(s, t);
	struct uni_call_event *e;

	if ((low == 0 && !function_matches(s, func)) || !is_told(s, c, time))
		return;
	e = add_call_event(s, c, time, type);
	if (e == NULL)
		return;
	e->func = func;
	e->caller = w->caller != UNI_FUNC_NONE ? w->caller : top->func;
	e->depth = low == 0 ? 0 : (uint32_t)(top - t->frame) + 1 - low;
}

static bool cpu_passes(const struct uni_walk *w, const struct uni_walk_cpu *c)
{
	return uni_only_passes(w->filter.cpu, (uint64_t)(c - w->cpu));
}

static void calls_other(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time,
	enum uni_call_type type, uint64_t value, uint32_t next)
{
	struct uni_calls *s = (struct uni_calls *)w;
	bool always = (type == UNI_CALL_SWITCH && w->filter.switches) || tells_all(s);
	struct uni_call_event *e;

	if (type == UNI_CALL_RETURN && w->filter.function != NULL)
		return;
	if (!s->telling || (!cpu_passes(w, c) && !tells_all(s)))
		return;
	if (!always && c->muted && w->thread[next].muted)
		return;
	e = add_call_event(s, c, time, type);
	if (e == NULL)
		return;
	if (type == UNI_CALL_LOST)
		e->count = value;
	if (type == UNI_CALL_SWITCH) {
		e->next = next;
		e->reason = (uint32_t)value;
	}
}

/* The function to which a record of arguments or of a return value belongs. */
static uint32_t func_of_ext(
	struct uni_calls *s, const struct uni_walk_cpu *c, const struct uni_trace_record *rec)
{
	const struct uni_walk_thread *t = &s->walk.thread[c->thread];

	if (rec->cls == UNI_TRACE_CLASS_ENTRY_ARGS && rec->nr != 0)
		return uni_walk_func_at(&s->walk, (uint32_t)rec->words[rec->nr - 1]);
	return rec->cls == UNI_TRACE_CLASS_EXIT_VALUE ? t->frame[t->nr - 1].func : UNI_FUNC_NONE;
}

/* With a function filter only what belongs to a call that passes. */
static bool ext_passes(
	struct uni_calls *s, const struct uni_walk_cpu *c, uint16_t cls, uint32_t func)
{
	if (s->walk.filter.function == NULL)
		return true;
	if (cls == UNI_TRACE_CLASS_ENTRY_ARGS && function_matches(s, func))
		return true;
	return func != UNI_FUNC_NONE && lowest_told(s, &s->walk.thread[c->thread]) != 0;
}

static void calls_ext(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time,
	const struct uni_trace_record *rec)
{
	struct uni_calls *s = (struct uni_calls *)w;
	const struct uni_walk_thread *t = &w->thread[c->thread];
	uint32_t func = func_of_ext(s, c, rec);
	struct uni_call_event *e;

	if (!ext_passes(s, c, rec->cls, func) || !is_told(s, c, time))
		return;
	if (!uni_vec_grow(&s->words, rec->nr)) {
		w->failed = -UNI_ENOMEM;
		return;
	}
	e = add_call_event(s, c, time, UNI_CALL_EXT);
	if (e == NULL)
		return;
	e->func = func;
	e->depth = t->nr != 0 ? t->nr - 1 : 0; /* of a call that would come now */
	e->cls = rec->cls;
	e->nr = rec->nr;
	e->first = (uint32_t)s->words.nr;
	if (rec->nr != 0)
		memcpy(s->words.v + s->words.nr, rec->words, rec->nr * sizeof(uint64_t));
	s->words.nr += rec->nr;
}

static void calls_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max);

static const struct uni_walk_ops ops = {
	.span = calls_span,
	.enter = calls_enter,
	.leave = calls_leave,
	.leaf = calls_leaf,
	.other = calls_other,
	.ext = calls_ext,
};

static void calls_span(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max)
{
	if (w->functions)
		uni_walk_span(w, c, until, max, &ops, true);
	else
		uni_walk_span(w, c, until, max, &ops, false);
}

static void peek_all(struct uni_walk *w)
{
	for (uint32_t i = 0; i < w->nr_cpus; i++)
		uni_walk_peek(w, &w->cpu[i]);
}

/* Walks to the beginning of the time window without reporting events. */
static int skip_to_window(struct uni_calls *s)
{
	struct uni_walk *w = &s->walk;
	int rc;

	if (w->from == 0)
		return 0;
	rc = uni_walk_all(w, w->from - 1);
	uni_walk_restart(w, w->from);
	for (uint32_t i = 0; i < w->nr_threads; i++)
		w->thread[i].own[ANNOUNCE] = w->thread[i].nr;
	w->stats = (struct uni_calls_stats){ 0 };
	return rc;
}

/* How do calls end? This reads all of them. */
static int look_first(
	struct uni_calls *s, const struct uni_trace_input *in, struct uni_calls_filter filter)
{
	const struct uni_call_event *e;
	struct uni_calls_rules none = { .all = tells_all(s) };
	struct uni_calls *all;
	size_t nr;
	int rc;

	filter.rules = &none;
	rc = uni_calls_open(in, &filter, s->walk.funcs, &all, NULL);
	while (rc == 0 && (rc = uni_calls_read(all, &e, &nr)) == 1)
		rc = uni_call_picker_look(s->picker, all, e, nr);
	if (all != NULL)
		uni_calls_close(all);
	return rc;
}

static int begin_rules(struct uni_calls *s, const struct uni_trace_input *in)
{
	if (s->walk.filter.rules == NULL || s->walk.filter.rules->nr == 0)
		return 0;
	s->picker = uni_call_picker_create(s->walk.filter.rules, s->walk.funcs);
	if (s->picker == NULL)
		return -UNI_ENOMEM;
	return uni_call_picker_looks_first(s->picker) ? look_first(s, in, s->walk.filter) : 0;
}

int uni_calls_open(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_calls **ret, struct uni_err *err)
{
	struct uni_calls *s = calloc(1, sizeof(*s));
	int rc;

	*ret = NULL;
	if (s == NULL)
		return uni_err_nomem(err);
	rc = uni_walk_init(&s->walk, in, filter, funcs, &ops, err);
	if (rc != 0) {
		free(s);
		return rc;
	}
	s->walk.park = false;
	rc = begin_rules(s, in);
	if (rc == 0)
		rc = skip_to_window(s);
	peek_all(&s->walk);
	if (rc != 0) {
		uni_calls_close(s);
		return uni_err_nomem(err);
	}
	s->telling = true;
	*ret = s;
	return 0;
}

void uni_calls_close(struct uni_calls *s)
{
	if (s == NULL)
		return;
	uni_call_picker_destroy(s->picker);
	uni_walk_deinit(&s->walk);
	uni_vec_free(&s->event);
	uni_vec_free(&s->words);
	uni_vec_free(&s->match);
	uni_vec_free(&s->name_of);
	free(s);
}

/* The time of the second earliest record: so far the earliest CPU may go on alone. */
static uint64_t second_earliest(const struct uni_walk *w, const struct uni_walk_cpu *first)
{
	uint64_t until = w->to;

	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		const struct uni_walk_cpu *c = &w->cpu[i];

		if (c != first && uni_walk_has_next(c) && c->next < until)
			until = c->next;
	}
	return until;
}

/* 1: there are events. */
static int read_events(struct uni_calls *s)
{
	struct uni_walk *w = &s->walk;

	if (!s->announced)
		s->event.nr = 0;
	s->announced = false;
	s->words.nr = 0;
	while (s->event.nr < BATCH / 2 && w->failed == 0) {
		struct uni_walk_cpu *c = uni_walk_earliest(w, w->to);

		if (c == NULL)
			break;
		if (c->next > w->stop.until) {
			uni_walk_stop(w);
			continue;
		}
		uni_walk_step(w, c, w->nr_cpus == 1 ? w->to : second_earliest(w, c), BATCH);
	}
	if (s->event.nr == 0 && !s->finished && !w->in->live && w->failed == 0) {
		s->finished = true;
		uni_walk_finish(w);
	}
	return w->failed != 0 ? w->failed : s->event.nr != 0;
}

int uni_calls_read(struct uni_calls *s, const struct uni_call_event **ret, size_t *nr_ret)
{
	int rc;

	do {
		rc = read_events(s);
		*ret = s->event.v;
		*nr_ret = s->event.nr;
		if (rc == 1 && s->picker != NULL &&
			(rc = uni_call_picker_pick(
				 s->picker, s, s->event.v, s->event.nr, ret, nr_ret)) == 0)
			rc = 1;
	} while (rc == 1 && *nr_ret == 0);
	return rc;
}

/* The CPU on which it runs; else the first. */
static struct uni_walk_cpu *cpu_of_thread(struct uni_walk *w, uint32_t thread)
{
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		if (w->cpu[i].thread == thread)
			return &w->cpu[i];
	}
	return &w->cpu[0];
}

void uni_calls_announce(struct uni_calls *s)
{
	struct uni_walk *w = &s->walk;

	for (uint32_t i = 0; i < w->nr_threads; i++) {
		struct uni_walk_cpu *c = cpu_of_thread(w, i);
		uint32_t runs = c->thread;

		c->thread = i;
		announce_open(s, c, w->from);
		c->thread = runs;
	}
	s->announced = true;
}

const struct uni_walk *uni_calls_walked(const struct uni_calls *s, bool *over_ret)
{
	*over_ret = s->finished;
	return &s->walk;
}

void uni_calls_more(struct uni_calls *s)
{
	for (uint32_t i = 0; i < s->walk.nr_cpus; i++) {
		s->walk.cpu[i].packet.next = 0;
		s->walk.cpu[i].at = s->walk.cpu[i].end = NULL;
		s->walk.cpu[i].losing = false;
	}
	peek_all(&s->walk);
}

int uni_calls_grown(struct uni_calls *s, uint64_t until)
{
	struct uni_walk *w = &s->walk;

	w->to = until;
	s->name_of.nr = 0;
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		struct uni_walk_cpu *c = &w->cpu[i];

		if (uni_walk_has_next(c))
			continue;
		uni_walk_peek(w, c);
		if (uni_walk_has_next(c) && c->next < w->end)
			return -UNI_EAGAIN;
	}
	return 0;
}

static void close_copy(struct uni_calls *s)
{
	for (uint32_t i = 0; s->walk.thread != NULL && i < s->walk.nr_threads; i++)
		free(s->walk.thread[i].frame);
	free(s->walk.thread);
	free(s->walk.cpu);
	uni_vec_free(&s->event);
	free(s);
}

/* Copies the state that uni_calls_ends() changes; borrows the rest. */
static struct uni_calls *copy_of(const struct uni_calls *s)
{
	const struct uni_walk *w = &s->walk;
	struct uni_calls *c = malloc(sizeof(*c));
	bool ok;

	if (c == NULL)
		return NULL;
	*c = *s;
	memset(&c->event, 0, sizeof(c->event));
	c->walk.cpu = malloc(w->nr_cpus * sizeof(*w->cpu));
	c->walk.thread = calloc(w->nr_threads + 1u, sizeof(*w->thread));
	ok = c->walk.cpu != NULL && c->walk.thread != NULL;
	if (ok)
		memcpy(c->walk.cpu, w->cpu, w->nr_cpus * sizeof(*w->cpu));
	for (uint32_t i = 0; ok && i < w->nr_threads; i++) {
		struct uni_walk_thread *t = &c->walk.thread[i];

		*t = w->thread[i];
		t->frame = malloc(t->nr * sizeof(*t->frame));
		ok = t->frame != NULL;
		if (ok)
			memcpy(t->frame, w->thread[i].frame, t->nr * sizeof(*t->frame));
	}
	if (ok)
		return c;
	close_copy(c);
	return NULL;
}

int uni_calls_ends(const struct uni_calls *s, struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_calls *c;
	int rc;

	if (s->walk.stop.by != NULL)
		return -UNI_ENOTSUP;
	c = copy_of(s);
	if (c == NULL)
		return -UNI_ENOMEM;
	uni_walk_finish(&c->walk);
	rc = c->walk.failed;
	if (rc == 0) {
		*ret = c->event.v;
		*nr_ret = c->event.nr;
		memset(&c->event, 0, sizeof(c->event));
	}
	close_copy(c);
	return rc;
}

struct uni_calls_thread uni_calls_thread(const struct uni_calls *s, uint32_t thread)
{
	if (thread >= s->walk.nr_threads)
		return (struct uni_calls_thread){ 0 };
	return (struct uni_calls_thread){ s->walk.thread[thread].id, s->walk.thread[thread].known };
}

uint32_t uni_calls_nr_threads(const struct uni_calls *s)
{
	return s->walk.nr_threads;
}

/* If two threads have one address, the later one is the guest's last. */
static uint32_t find_name(const struct uni_trace_input *in, uint64_t id)
{
	for (size_t i = uni_min(in->nr_threads, (size_t)UINT32_MAX - 2); i-- != 0;) {
		if (in->thread[i].id == id)
			return (uint32_t)i + 2;
	}
	return 1;
}

const char *uni_calls_thread_name(struct uni_calls *s, uint32_t thread, uint64_t *number_ret)
{
	const struct uni_calls_thread t = uni_calls_thread(s, thread);
	const struct uni_trace_thread_name *n;
	uint32_t *known;

	*number_ret = t.id;
	while (s->name_of.nr <= thread && t.known) {
		if (!uni_vec_push(&s->name_of, 0))
			return "tid";
	}
	if (!t.known)
		return "tid";
	known = &s->name_of.v[thread];
	if (*known == 0)
		*known = find_name(s->walk.in, t.id);
	if (*known == 1)
		return "tid";
	n = &s->walk.in->thread[*known - 2];
	*number_ret = n->number;
	return n->name[0] != '\0' ? n->name : "tid";
}

const uint64_t *uni_calls_words(const struct uni_calls *s, const struct uni_call_event *e)
{
	return s->words.v + e->first;
}

const struct uni_calls_stats *uni_calls_stats(const struct uni_calls *s)
{
	return &s->walk.stats;
}
