/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "trace/record.h"
#include "trace/walk_packets.h"
#include "trace/walk_stops.h"
#include "trace/walk_threads.h"

#define RESYNC_MAX  64 /* calls back that a return is looked for */
#define ARGS_WORDS  7
#define VALUE_WORDS 3

static void make_masks(struct uni_walk *w)
{
	for (unsigned id = 0; id < 16; id++) {
		uint16_t bit = (uint16_t)(1u << id);

		switch (w->in->info.kinds[id]) {
		case UNI_TRACE_KIND_ENTRY:
			w->entries |= bit;
			break;
		case UNI_TRACE_KIND_EXIT:
			w->exits |= bit;
			break;
		case UNI_TRACE_KIND_LEAF:
			w->leaves |= bit;
			break;
		case UNI_TRACE_KIND_CALL:
			w->calls |= bit;
			break;
		default:
			break;
		}
	}
}

/* The counter at this time. */
static uint64_t cycles_at(const struct uni_walk *w, uint64_t ns)
{
	const struct uni_trace_clock *c = &w->in->cpu[0].clock;
	bool before = ns < c->ns;
	unsigned __int128 n =
		((unsigned __int128)(before ? c->ns - ns : ns - c->ns) << 32) / w->rate.mult;

	/* Beyond the counter's ends is at them. */
	if (before)
		return n > c->tsc ? 0 : c->tsc - (uint64_t)n;
	return n > UINT64_MAX - c->tsc ? UINT64_MAX : c->tsc + (uint64_t)n;
}

int uni_walk_init(struct uni_walk *w, const struct uni_trace_input *in,
	const struct uni_calls_filter *filter, struct uni_funcs *funcs,
	const struct uni_walk_ops *ops, struct uni_err *err)
{
	static const struct uni_calls_filter all;
	int rc = uni_trace_input_check(in, err);

	if (rc != 0)
		return rc;
	*w = (struct uni_walk){ .in = in,
		.ops = ops,
		.funcs = funcs,
		.nr_cpus = in->info.nr_cpus,
		.begin = UNI_WALK_NEVER,
		.stop.until = UNI_WALK_NEVER,
		.rate = uni_trace_rate(in),
		.filter = filter != NULL ? *filter : all };
	for (size_t i = 0; i < UNI_WALK_CACHE; i++)
		w->cache[i].payload = UINT32_MAX; /* payloads have 28 bits */
	make_masks(w);
	w->functions = w->calls == 0 && uni_trace_mode_of(in) == UNI_TRACE_MODE_FUNCTION;
	w->park = w->nr_cpus > 1;
	w->from = w->filter.from_ns == 0 ? 0 : cycles_at(w, w->filter.from_ns);
	w->to = w->filter.to_ns == 0 ? UNI_WALK_NEVER : cycles_at(w, w->filter.to_ns);
	w->cpu = calloc(w->nr_cpus, sizeof(*w->cpu));
	if (w->cpu == NULL || !uni_walk_threads_init(w)) {
		uni_walk_deinit(w);
		return uni_err_nomem(err);
	}
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		w->cpu[i].offset = uni_trace_offset(in, i);
		uni_walk_unknown_thread(w, &w->cpu[i]);
	}
	if (w->failed == 0)
		return 0;
	uni_walk_deinit(w);
	return uni_err_nomem(err);
}

void uni_walk_deinit(struct uni_walk *w)
{
	uni_walk_threads_deinit(w);
	uni_vec_free(&w->stops);
	free(w->cpu);
	w->cpu = NULL;
}

static uint32_t func_of_address(struct uni_walk *w, uint64_t address)
{
	uint32_t func;

	if (uni_funcs_at(w->funcs, address, &func) == -UNI_ENOMEM)
		w->failed = -UNI_ENOMEM;
	return func;
}

uint32_t uni_walk_func_at(struct uni_walk *w, uint64_t offset)
{
	return func_of_address(w, w->in->info.text_window | offset);
}

uint32_t uni_walk_func(struct uni_walk *w, uint32_t payload)
{
	struct uni_walk_slot *s = &w->cache[payload * 2654435761u >> (32 - UNI_WALK_CACHE_BITS)];
	uint32_t func = uni_walk_func_at(w, (uint64_t)payload << 4);

	if (w->failed == 0)
		*s = (struct uni_walk_slot){ payload, func };
	return func;
}

bool uni_walk_grow(struct uni_walk *w, struct uni_walk_cpu *c)
{
	struct uni_walk_thread *t = &w->thread[c->thread];
	uint32_t cap = uni_min(t->cap * 2, (uint32_t)UNI_CALLS_DEPTH_MAX + 1);
	struct uni_walk_frame *frame;

	if (t->nr < t->cap)
		return true;
	if (cap == t->cap)
		return false;
	frame = realloc(t->frame, cap * sizeof(*frame));
	if (frame == NULL) {
		w->failed = -UNI_ENOMEM;
		return false;
	}
	t->frame = frame;
	t->cap = cap;
	return true;
}

/* --- records that are no aligned calls and plain returns -------------------------------------- */

/*
 * Does a call that frame i makes now return at sp, as an earlier one did? The earlier one may have
 * been a handler, or a call made by an unrecorded function: such a return may be deeper down. So
 * another call has to confirm it, and the function has to return at the usual place. For the first
 * frame the place may be of any depth, until the same function has returned again.
 */
static bool returns_there(struct uni_walk *w, const struct uni_walk_thread *t, uint32_t i,
	uint32_t newest, uint32_t sp)
{
	const struct uni_walk_frame *f = &t->frame[i];

	if (f->returned != sp || *uni_walk_place(w, f->by) < 0)
		return false;
	return f->by == f[1].func || (i != 0 && (f->others || f->by == newest));
}

/*
 * The newest call returns. So did older ones, if one of them is known to return where this return
 * was: its caller had a call return there. (Those above it were left by longjmp, or called it by a
 * jump, or the newest is not theirs: all are over.)
 */
static void resync_calls(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t sp, uint64_t time)
{
	struct uni_walk_thread *t = &w->thread[c->thread];
	uint32_t keep = t->nr - 1, newest = t->frame[keep].func;

	if (t->too_deep != 0) {
		t->too_deep--;
		return;
	}
	if (t->nr == 1) {
		uni_walk_returned(w, &t->frame[0], UNI_FUNC_NONE, sp);
		w->stats.returns++;
		if (w->ops->other != NULL)
			w->ops->other(w, c, time, UNI_CALL_RETURN, 0, c->thread);
		return;
	}
	if (sp > t->frame[t->nr - 1].bound) {
		uint32_t lowest = t->nr > RESYNC_MAX ? t->nr - RESYNC_MAX : 1;

		for (uint32_t i = t->nr - 2; i >= lowest && keep == t->nr - 1; i--) {
			if (returns_there(w, t, i - 1, newest, sp))
				keep = i;
		}
	}
	w->stats.woven += uni_walk_is_far(t->frame[keep].returned, sp) && !t->frame[keep].mixed;
	uni_walk_returned(w, &t->frame[keep - 1], newest, sp);
	w->ops->leave(w, c, &t->frame[t->nr - 1], time, 0);
	t->nr--;
	uni_walk_cut(w, c, keep, time, UNI_CALL_CUT);
}

static void push_walked_call(
	struct uni_walk *w, struct uni_walk_cpu *c, uint32_t func, uint64_t time)
{
	struct uni_walk_thread *t = &w->thread[c->thread];
	struct uni_walk_frame *f;

	if (w->functions) {
		w->ops->leaf(w, c, &t->frame[t->nr - 1], func, time, UNI_CALL_ENTRY);
		return;
	}
	if (!uni_walk_grow(w, c)) {
		t->too_deep++;
		w->stats.too_deep++;
		return;
	}
	f = &t->frame[t->nr++];
	uni_walk_open(f, func, time);
	w->ops->enter(w, c, f);
}

/* The caller that the last word of a call in function mode has. */
static uint32_t caller_of(struct uni_walk *w, uint64_t word)
{
	uint32_t at = UNI_TRACE_CALLER(word), func;
	struct uni_walk_slot *s = &w->callers[at * 2654435761u % UNI_WALK_CALLERS];

	if (at == 0 || s->payload == at)
		return at == 0 ? UNI_FUNC_NONE : s->func;
	if (uni_funcs_within(w->funcs, w->in->info.text_window | at, &func) == -UNI_ENOMEM)
		w->failed = -UNI_ENOMEM;
	else
		*s = (struct uni_walk_slot){ at, func };
	return func;
}

/*
 * An entry in function mode: no exit will come. If calls of its thread are open, the mode was
 * another one when they were made: of their exits nothing is known any more.
 */
static void push_call(
	struct uni_walk *w, struct uni_walk_cpu *c, uint32_t func, uint32_t caller, uint64_t time)
{
	uni_walk_cut(w, c, 1, time, UNI_CALL_CUT);
	w->caller = caller;
	w->ops->leaf(w, c, &w->thread[c->thread].frame[0], func, time, UNI_CALL_ENTRY);
	w->caller = UNI_FUNC_NONE;
}

/* Arguments of a call, or its return value, are reported just before it. */
static void entry_with_args(struct uni_walk *w, struct uni_walk_cpu *c,
	const struct uni_trace_record *rec, uint64_t time)
{
	uint32_t func = uni_walk_func_at(w, (uint32_t)rec->words[rec->nr - 1]);
	bool only = rec->cls == UNI_TRACE_CLASS_CALL_ARGS;
	struct uni_trace_record args = *rec;

	uni_walk_count(w, c, 1);
	args.cls = UNI_TRACE_CLASS_ENTRY_ARGS;
	if (w->ops->ext != NULL && (w->functions || only || uni_walk_grow(w, c)))
		w->ops->ext(w, c, time, &args);
	if (only)
		push_call(w, c, func, caller_of(w, rec->words[rec->nr - 1]), time);
	else
		push_walked_call(w, c, func, time);
}

static void exit_with_value(struct uni_walk *w, struct uni_walk_cpu *c,
	const struct uni_trace_record *rec, uint64_t time)
{
	const struct uni_walk_thread *t = &w->thread[c->thread];

	uni_walk_count(w, c, 1);
	if (w->ops->ext != NULL && t->nr > 1 && t->too_deep == 0)
		w->ops->ext(w, c, time, rec);
	resync_calls(w, c, (uint32_t)rec->words[rec->nr - 1], time);
}

/* Its address is low 32 bits, or if another word follows, that one. */
static uint64_t entered_function(const struct uni_walk *w, const struct uni_trace_record *rec)
{
	return rec->cls == UNI_TRACE_CLASS_ENTRY && rec->nr >= 2
		       ? rec->words[1]
		       : (w->in->info.text_window | (uint32_t)rec->words[0]);
}

/* Did the tracer stop with it, and others have to? */
static bool take_extended(struct uni_walk *w, struct uni_walk_cpu *c,
	const struct uni_trace_record *rec, uint64_t time)
{
	bool only = rec->cls == UNI_TRACE_CLASS_CALL || rec->cls == UNI_TRACE_CLASS_CALL_ARGS;

	if ((rec->cls == UNI_TRACE_CLASS_ENTRY || rec->cls == UNI_TRACE_CLASS_CALL) &&
		rec->nr >= 1) {
		uint32_t func = func_of_address(w, entered_function(w, rec));

		uni_walk_count(w, c, 1);
		if (only)
			push_call(w, c, func, caller_of(w, rec->words[0]), time);
		else
			push_walked_call(w, c, func, time);
		if (uni_walk_is_stop(rec)) {
			uni_walk_forget(w, c, time);
			uni_walk_stop_comes(w, c, time);
			return true;
		}
	} else if ((only || rec->cls == UNI_TRACE_CLASS_ENTRY_ARGS) && rec->nr >= ARGS_WORDS) {
		entry_with_args(w, c, rec, time);
	} else if (rec->cls == UNI_TRACE_CLASS_EXIT_VALUE && rec->nr >= VALUE_WORDS) {
		exit_with_value(w, c, rec, time);
	} else if (rec->cls == UNI_TRACE_CLASS_SWITCH && rec->nr >= 3) {
		uni_walk_switch(w, c, rec->words, time);
	} else if (w->ops->ext != NULL) {
		w->ops->ext(w, c, time, rec);
	}
	return false;
}

/* Does the record at c->at concern other CPUs, so that it has to wait for its turn? */
static bool is_for_all(const struct uni_walk *w, const struct uni_walk_cpu *c)
{
	uint8_t kind = w->in->info.kinds[*c->at >> 32 & 15];
	uint64_t gaps = uni_walk_gaps_at(w, c);

	if (gaps != 0)
		return gaps != w->gaps;
	return kind == UNI_TRACE_KIND_EXT && (uint16_t)(*c->at >> 48) == UNI_TRACE_CLASS_SWITCH;
}

bool uni_walk_other(struct uni_walk *w, struct uni_walk_cpu *c)
{
	struct uni_trace_cursor cur = { c->at, c->end, c->now, w->in->info.text_window,
		w->in->info.kinds };
	struct uni_trace_record rec;
	uint64_t time;

	if (uni_walk_is_gap(c, uni_walk_gaps_at(w, c))) {
		if (w->nr_cpus > 1)
			return false;
		uni_walk_gap(w, c, uni_walk_gaps_at(w, c));
	}
	if (w->park && !c->switching && is_for_all(w, c)) {
		c->switching = true;
		return false;
	}
	c->switching = false;
	if (!uni_trace_next(&cur, &rec)) {
		w->stats.damaged += (uint64_t)(c->end - c->at) * 8;
		uni_walk_lose(w, c, (uint64_t)(c->end - c->at), uni_walk_time_of(c));
		c->at = c->end;
		return true;
	}
	c->at = cur.at;
	c->now = cur.now;
	time = rec.time + c->offset;
	if (rec.kind != UNI_TRACE_KIND_SYNC)
		c->last = time;
	switch (rec.kind) {
	case UNI_TRACE_KIND_ENTRY:
		uni_walk_count(w, c, 1);
		push_walked_call(
			w, c, uni_walk_func_of(w, (uint32_t)(rec.value >> 4) & 0xfffffff), time);
		break;
	case UNI_TRACE_KIND_EXIT:
		uni_walk_count(w, c, 1);
		resync_calls(w, c, (uint32_t)(cur.at[-1] >> 32), time);
		break;
	case UNI_TRACE_KIND_CALL:
		uni_walk_count(w, c, 1);
		push_call(w, c, uni_walk_func_of(w, (uint32_t)(rec.value >> 4) & 0xfffffff),
			UNI_FUNC_NONE, time);
		break;
	case UNI_TRACE_KIND_EXT:
		return !take_extended(w, c, &rec, time);
	case UNI_TRACE_KIND_SYNC:
		c->gaps = uni_trace_gaps(&rec);
		uni_walk_gap_told(w, c->gaps, time);
		break;
	default:
		break;
	}
	return true;
}

/* --- the whole of it -------------------------------------------------------------------------- */

void uni_walk_step(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max)
{
	if (c->losing) {
		uni_walk_peek(w, c);
		return;
	}
	if (c->switching)
		(void)uni_walk_other(w, c);
	/* Does pending stops before anything later is seen. */
	w->ops->span(w, c, uni_min(until, w->stop.until), max);
	w->end = uni_max(w->end, c->last);
	uni_walk_peek(w, c);
}

struct uni_walk_cpu *uni_walk_earliest(const struct uni_walk *w, uint64_t until)
{
	struct uni_walk_cpu *first = NULL;

	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		struct uni_walk_cpu *c = &w->cpu[i];

		if (uni_walk_has_next(c) && c->next <= until &&
			(first == NULL || c->next < first->next))
			first = c;
	}
	return first;
}

static void run_walk(struct uni_walk *w, uint64_t until)
{
	while (w->failed == 0) {
		struct uni_walk_cpu *c = uni_walk_earliest(w, uni_min(until, w->stop.until));

		if (c == NULL)
			break;
		do
			uni_walk_step(w, c, until, SIZE_MAX);
		while (!c->switching && c->at != c->end && w->failed == 0 &&
			c->next <= uni_min(until, w->stop.until));
	}
}

int uni_walk_all(struct uni_walk *w, uint64_t until)
{
	bool unforeseen;
	uint64_t to;

	for (uint32_t i = 0; i < w->nr_cpus; i++)
		uni_walk_peek(w, &w->cpu[i]);
	if (!uni_walk_stops_find(w))
		w->failed = -UNI_ENOMEM;
	do {
		to = uni_min(until, uni_walk_stops_next(w));
		run_walk(w, to);
		unforeseen = w->stop.until < to;
		uni_walk_stops_pass(w, to);
	} while (w->failed == 0 && (unforeseen || to != until));
	return w->failed;
}

void uni_walk_restart(struct uni_walk *w, uint64_t time)
{
	for (uint32_t i = 0; i < w->nr_threads; i++) {
		struct uni_walk_thread *t = &w->thread[i];

		t->off_since = uni_max(t->off_since, time);
		for (uint32_t n = 0; n < t->nr; n++) {
			t->frame[n].begin = uni_max(t->frame[n].begin, time);
			t->frame[n].child = t->frame[n].off = 0;
		}
	}
}

void uni_walk_finish(struct uni_walk *w)
{
	uint64_t time = w->end;

	if (w->stop.by != NULL)
		uni_walk_stop(w);
	/* The trace goes on after the window. */
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		if (w->cpu[i].at != w->cpu[i].end)
			time = w->to;
	}
	if (w->begin == UNI_WALK_NEVER)
		w->begin = w->end;
	w->stats.begin_ns = uni_walk_ns(w, uni_max(w->begin, w->from));
	/* The window may be after all events. */
	w->stats.end_ns = uni_max(uni_walk_ns(w, time), w->stats.begin_ns);
	for (uint32_t i = 0; i < w->nr_cpus; i++)
		uni_walk_cut(w, &w->cpu[i], 1, time, UNI_CALL_CUT | UNI_CALL_OPEN);
	for (uint32_t i = 0; i < w->nr_threads; i++) {
		if (w->thread[i].nr > 1)
			uni_walk_cut_away(w, i, time);
	}
}
