/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/walk.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "trace/record.h"
#include "trace/walk_threads.h"

#define RESYNC_MAX  64 /* calls back that a return is looked for */
#define ARGS_WORDS  7
#define VALUE_WORDS 3

static void masks(struct uni_walk *w)
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
		default:
			break;
		}
	}
}

uint64_t uni_walk_ns(const struct uni_walk *w, uint64_t time)
{
	return uni_trace_clock_ns(&w->in->cpu[0].clock, w->rate, time);
}

uint64_t uni_walk_cycles(const struct uni_walk *w, uint64_t ns)
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
	static const struct uni_calls_filter all = UNI_CALLS_ALL;
	int rc = uni_trace_input_check(in, err);

	if (rc != 0)
		return rc;
	*w = (struct uni_walk){ .in = in,
		.ops = ops,
		.funcs = funcs,
		.nr_cpus = in->info.nr_cpus,
		.begin = UNI_WALK_NEVER,
		.rate = uni_trace_rate(in),
		.filter = filter != NULL ? *filter : all };
	for (size_t i = 0; i < UNI_WALK_CACHE; i++)
		w->cache[i].payload = UINT32_MAX; /* payloads have 28 bits */
	masks(w);
	w->functions = uni_trace_mode_of(in) == UNI_TRACE_MODE_FUNCTION;
	w->park = w->nr_cpus > 1;
	w->from = w->filter.from_ns == 0 ? 0 : uni_walk_cycles(w, w->filter.from_ns);
	w->to = w->filter.to_ns == UINT64_MAX ? UNI_WALK_NEVER
					      : uni_walk_cycles(w, w->filter.to_ns);
	w->cpu = calloc(w->nr_cpus, sizeof(*w->cpu));
	if (w->cpu == NULL || !uni_walk_threads_init(w)) {
		uni_walk_deinit(w);
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	}
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		w->cpu[i].offset = uni_trace_offset(in, i);
		uni_walk_unknown_thread(w, &w->cpu[i]);
	}
	if (w->failed == 0)
		return 0;
	uni_walk_deinit(w);
	return uni_err_set(err, UNI_ENOMEM, "out of memory");
}

void uni_walk_deinit(struct uni_walk *w)
{
	uni_walk_threads_deinit(w);
	free(w->cpu);
	w->cpu = NULL;
}

uint32_t uni_walk_func(struct uni_walk *w, uint32_t payload)
{
	struct uni_walk_slot *s = &w->cache[payload * 2654435761u >> (32 - UNI_WALK_CACHE_BITS)];
	uint32_t func = uni_funcs_at(w->funcs, w->in->info.text_window | (uint64_t)payload << 4);

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

/* --- losses and damage ------------------------------------------------------------------------ */

static uint64_t time_of(const struct uni_walk_cpu *c)
{
	return c->now + c->offset;
}

/* Who returned, and which thread runs, is not known from here on. */
static void lose(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t count, uint64_t time)
{
	uni_walk_cut(w, c, 1, time_of(c), UNI_CALL_CUT);
	w->losses++;
	w->stats.lost += count;
	if (w->ops->other != NULL)
		w->ops->other(w, c, time, UNI_CALL_LOST, count, c->thread);
	if (w->thread[c->thread].known) {
		uni_walk_unknown_thread(w, c);
		if (w->ops->switched != NULL)
			w->ops->switched(w, c, time);
	}
}

static void next_packet(struct uni_walk *w, struct uni_walk_cpu *c)
{
	unsigned cpu = (unsigned)(c - w->cpu);
	struct uni_trace_packet p;

	if (c->begun && c->packet.lost != 0) {
		lose(w, c, c->packet.lost, time_of(c));
		c->packet.lost = 0;
		return;
	}
	if (uni_trace_packet(w->in, cpu, c->packet.next, c->begun ? &c->packet : NULL, &p,
		    &w->stats.damaged) == 0) {
		c->packet.next = w->in->cpu[cpu].size;
		c->at = c->end = NULL;
		return;
	}
	if (c->begun && p.head->ts_begin + c->offset < time_of(c)) {
		/* The counter jumped back: a new epoch. Time stands still until it is past. */
		c->offset = time_of(c) - p.head->ts_begin;
		w->stats.epochs++;
	}
	if (p.lapped != 0)
		lose(w, c, p.lapped, p.head->ts_begin + c->offset);
	c->packet = p;
	c->begun = true;
	c->now = p.head->ts_begin;
	c->at = (const uint64_t *)(const void *)p.head;
	c->end = c->at + p.content / 8;
	c->at += UNI_TRACE_SUB_HEAD / 8;
}

/* What is lost cuts calls on other CPUs, too: that has to wait for its turn. */
static bool loss_comes(const struct uni_walk *w, const struct uni_walk_cpu *c, uint64_t *time_ret)
{
	struct uni_trace_packet p;
	uint64_t ignored = 0;

	if (!c->begun || w->nr_cpus == 1)
		return false;
	*time_ret = time_of(c);
	if (c->packet.lost != 0)
		return true;
	if (uni_trace_packet(
		    w->in, (unsigned)(c - w->cpu), c->packet.next, &c->packet, &p, &ignored) == 0 ||
		p.lapped == 0)
		return false;
	*time_ret = uni_max(p.head->ts_begin + c->offset, *time_ret);
	return true;
}

void uni_walk_peek(struct uni_walk *w, struct uni_walk_cpu *c)
{
	size_t left = w->in->cpu[c - w->cpu].size;

	while (c->at == c->end && (c->packet.next < left || c->packet.lost != 0)) {
		if (!c->losing && loss_comes(w, c, &c->next)) {
			c->losing = true;
			return;
		}
		c->losing = false;
		next_packet(w, c);
	}
	if (c->at == c->end) {
		c->next = UNI_WALK_NEVER;
		return;
	}
	c->next = c->now + (uint32_t)((uint32_t)*c->at - (uint32_t)c->now) + c->offset;
	w->begin = uni_min(w->begin, c->next);
}

/* --- records that are no aligned calls and plain returns -------------------------------------- */

/*
 * The newest call returns. So did older ones, if one of them is known to return where this return
 * was: its caller had a call return there. (Those above it were left by longjmp, or called it by a
 * jump, or the newest is not theirs: all are over.)
 */
static void resync(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t sp, uint64_t time)
{
	struct uni_walk_thread *t = &w->thread[c->thread];
	uint32_t keep = t->nr - 1;

	if (t->too_deep != 0) {
		t->too_deep--;
		return;
	}
	if (t->nr == 1) {
		t->frame[0].returned = uni_max(t->frame[0].returned, sp);
		w->stats.returns++;
		if (w->ops->other != NULL)
			w->ops->other(w, c, time, UNI_CALL_RETURN, 0, c->thread);
		return;
	}
	if (sp > t->frame[t->nr - 1].bound) {
		uint32_t lowest = t->nr > RESYNC_MAX ? t->nr - RESYNC_MAX : 1;

		for (uint32_t i = t->nr - 2; i >= lowest; i--) {
			if (t->frame[i - 1].returned == sp) {
				keep = i;
				break;
			}
		}
	}
	t->frame[t->nr - 2].returned = uni_max(t->frame[t->nr - 2].returned, sp);
	w->ops->leave(w, c, &t->frame[t->nr - 1], time, 0);
	t->nr--;
	uni_walk_cut(w, c, keep, time, UNI_CALL_CUT);
}

static void push(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t func, uint64_t time)
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

/* What is known of a call, or of its return, is told just before it. */
static void entry_with_args(struct uni_walk *w, struct uni_walk_cpu *c,
	const struct uni_trace_record *rec, uint64_t time)
{
	w->stats.events++;
	if (w->ops->ext != NULL && (w->functions || uni_walk_grow(w, c)))
		w->ops->ext(w, c, time, rec);
	push(w, c,
		uni_funcs_at(w->funcs, w->in->info.text_window | (uint32_t)rec->words[rec->nr - 1]),
		time);
}

static void exit_with_value(struct uni_walk *w, struct uni_walk_cpu *c,
	const struct uni_trace_record *rec, uint64_t time)
{
	const struct uni_walk_thread *t = &w->thread[c->thread];

	w->stats.events++;
	if (w->ops->ext != NULL && t->nr > 1 && t->too_deep == 0)
		w->ops->ext(w, c, time, rec);
	resync(w, c, (uint32_t)rec->words[rec->nr - 1], time);
}

static void extended(struct uni_walk *w, struct uni_walk_cpu *c, const struct uni_trace_record *rec,
	uint64_t time)
{
	if (rec->cls == UNI_TRACE_CLASS_ENTRY && rec->nr >= 1) {
		w->stats.events++;
		push(w, c,
			uni_funcs_at(w->funcs, w->in->info.text_window | (uint32_t)rec->words[0]),
			time);
	} else if (rec->cls == UNI_TRACE_CLASS_ENTRY_ARGS && rec->nr >= ARGS_WORDS) {
		entry_with_args(w, c, rec, time);
	} else if (rec->cls == UNI_TRACE_CLASS_EXIT_VALUE && rec->nr >= VALUE_WORDS) {
		exit_with_value(w, c, rec, time);
	} else if (rec->cls == UNI_TRACE_CLASS_SWITCH && rec->nr >= 3) {
		uni_walk_switch(w, c, rec->words[0], rec->words[1], (uint32_t)rec->words[2], time);
	} else if (w->ops->ext != NULL) {
		w->ops->ext(w, c, time, rec);
	}
}

static bool is_switch(uint8_t kind, uint64_t word)
{
	return kind == UNI_TRACE_KIND_EXT && (uint16_t)(word >> 48) == UNI_TRACE_CLASS_SWITCH;
}

bool uni_walk_other(struct uni_walk *w, struct uni_walk_cpu *c)
{
	struct uni_trace_cursor cur = { c->at, c->end, c->now, w->in->info.text_window,
		w->in->info.kinds };
	struct uni_trace_record rec;
	uint64_t time;

	if (w->park && !c->switching && is_switch(cur.kinds[*c->at >> 32 & 15], *c->at)) {
		c->switching = true;
		return false;
	}
	c->switching = false;
	if (!uni_trace_next(&cur, &rec)) {
		w->stats.damaged += (uint64_t)(c->end - c->at) * 8;
		lose(w, c, (uint64_t)(c->end - c->at), time_of(c));
		c->at = c->end;
		return true;
	}
	c->at = cur.at;
	c->now = cur.now;
	time = rec.time + c->offset;
	switch (rec.kind) {
	case UNI_TRACE_KIND_ENTRY:
		w->stats.events++;
		push(w, c, uni_walk_func_of(w, (uint32_t)(rec.value >> 4) & 0xfffffff), time);
		break;
	case UNI_TRACE_KIND_EXIT:
		w->stats.events++;
		resync(w, c, (uint32_t)(cur.at[-1] >> 32), time);
		break;
	case UNI_TRACE_KIND_EXT:
		extended(w, c, &rec, time);
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
	w->ops->span(w, c, until, max);
	w->end = uni_max(w->end, time_of(c));
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

int uni_walk_all(struct uni_walk *w, uint64_t until)
{
	for (uint32_t i = 0; i < w->nr_cpus; i++)
		uni_walk_peek(w, &w->cpu[i]);
	while (w->failed == 0) {
		struct uni_walk_cpu *c = uni_walk_earliest(w, until);

		if (c == NULL)
			break;
		do
			uni_walk_step(w, c, until, SIZE_MAX);
		while (!c->switching && c->at != c->end && c->next <= until && w->failed == 0);
	}
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

	/* Behind the window the trace goes on. */
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		if (w->cpu[i].at != w->cpu[i].end)
			time = w->to;
	}
	if (w->begin == UNI_WALK_NEVER)
		w->begin = w->end;
	w->stats.begin_ns = uni_walk_ns(w, uni_max(w->begin, w->from));
	w->stats.end_ns = uni_walk_ns(w, time);
	for (uint32_t i = 0; i < w->nr_cpus; i++)
		uni_walk_cut(w, &w->cpu[i], 1, time, UNI_CALL_CUT | UNI_CALL_OPEN);
	for (uint32_t i = 0; i < w->nr_threads; i++) {
		if (w->thread[i].nr > 1)
			uni_walk_cut_away(w, i, time);
	}
}
