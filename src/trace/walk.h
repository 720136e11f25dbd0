/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk over a trace's records that all its consumers share: complete time stamps, threads with
 * their stacks, resynchronization, losses. The ops of a consumer run at each step. They are
 * compiled into a copy of the loop, because a call through a pointer costs more than all the rest.
 *
 * CPUs are walked one after the other, each until its next context switch. Switches are done in
 * order of time over all CPUs, so a thread's stack is complete when the thread goes on elsewhere.
 * Only a consumer that needs the events themselves in order (calls.c) walks in smaller steps.
 */
#ifndef UNI_TRACE_WALK_H
#define UNI_TRACE_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "trace/calls.h"
#include "trace/input.h"

#define UNI_WALK_NEVER	    UINT64_MAX
#define UNI_WALK_CACHE_BITS 14
#define UNI_WALK_CACHE	    (1u << UNI_WALK_CACHE_BITS)
#define UNI_WALK_CALLERS    1024
#define UNI_WALK_PLACES	    4096
#define UNI_WALK_PLACED	    16

/* An open call. The stack pointer of a return lies below those of the calls it was made from.
 * `bound` is the highest possible one for this call, according to earlier returns. */
struct uni_walk_frame {
	uint64_t begin; /* counter */
	uint64_t child; /* ns in calls it made: the ops' own */
	uint64_t off;	/* ns: the thread was on no CPU, this was its newest call */
	uint32_t func;
	uint32_t node; /* the ops' own */
	uint32_t bound;
	uint32_t returned; /* highest stack pointer that a call it made returned at; 0: none did */
	uint32_t by;	   /* the function that did, first */
	bool others;	   /* and others did, at the same place */
	bool mixed;	   /* and others did, on another stack */
};

struct uni_walk_thread {
	uint64_t id;
	bool known, on_cpu, muted;
	struct uni_walk_frame *frame; /* frame[0] is below the first call */
	uint32_t nr, cap;	      /* frames, frame[0] included */
	uint32_t too_deep;	      /* calls below the last frame */
	uint64_t off_since;	      /* counter; while it is on no CPU */
	uint64_t losses;	      /* uni_walk.losses when it went off its CPU */
	uint32_t own[2];	      /* the ops' own */
};

struct uni_walk_cpu {
	struct uni_trace_packet packet;
	const uint64_t *at, *end; /* records of the packet that are left */
	uint64_t now;		  /* counter of the last record, as the guest has it */
	uint64_t last;		  /* CPU 0's at the last record that is more than a time */
	uint64_t offset;	  /* to CPU 0's */
	uint64_t next;		  /* time of the record at `at`, if there is one */
	uint32_t thread;
	uint32_t unknown;	      /* the newest of its threads of which nothing was known */
	bool muted, begun, switching; /* at `at` is a switch record that the span stopped at */
	bool losing;		      /* missing events come next, at time `next` */
	uint64_t gaps;		      /* as reported last, struct uni_trace_sub; 0: not yet */
	void *own;		      /* the ops' own */
};

struct uni_walk_slot {
	uint32_t payload, func;
};

struct uni_walk_ops;
struct uni_trace_record;

struct uni_walk {
	const struct uni_trace_input *in;
	const struct uni_walk_ops *ops;
	struct uni_funcs *funcs;
	struct uni_walk_cpu *cpu;
	uint32_t nr_cpus, nr_threads, cap_threads;
	struct uni_walk_thread *thread;
	uint32_t *thread_slot; /* thread + 1 by id */
	uint32_t nr_thread_slots;
	uint16_t entries, exits, leaves, calls; /* masks of ids */
	bool functions;	 /* entries have no exits, though they do not say so (KIND_CALL) */
	uint32_t caller; /* while `leaf` is told of an ENTRY: its caller, if its record has it */
	bool park;	 /* spans stop at switch records */
	uint64_t losses; /* times that events were lost */
	uint64_t gaps;	 /* the last that any CPU reported; 0: none did */
	struct {
		struct uni_walk_cpu *by; /* NULL: none goes on */
		/* the other CPUs' calls end at their last record before that */
		uint64_t time, until;
	} stop;			 /* of all tracing, by a trigger on one CPU */
	UNI_VEC(uint64_t) stops; /* walk_stops.h: when there will be one */
	size_t next_stop;
	bool stops_known;
	uint64_t begin, end; /* counter: of the first and the last record so far */
	struct uni_trace_rate rate;
	struct uni_calls_filter filter;
	uint64_t from, to; /* counter */
	int failed;	   /* -UNI_ENOMEM */
	struct uni_calls_stats stats;
	/* By function: below 0, its calls return at other places than those beside them. */
	int8_t places[UNI_WALK_PLACES];
	struct uni_walk_slot cache[UNI_WALK_CACHE];
	struct uni_walk_slot callers[UNI_WALK_CALLERS]; /* by the caller's word, 0: free */
};

/* A flag of leave, besides enum uni_call_flags: the call is cut, but ran until then as far as its
 * CPU did. */
#define UNI_WALK_RAN 0x80u

/* Every op but span may be NULL. Times are CPU 0's counter. */
struct uni_walk_ops {
	/* The loop: uni_walk_span() with this very struct. */
	void (*span)(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max);
	void (*enter)(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f);
	/* Instead of it, of a call that was open when the window began: walk_calls.h only. c: NULL
	 * if its thread is on no CPU. */
	void (*began)(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f);
	/* f[-1] is its caller */
	void (*leave)(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *f,
		uint64_t time, unsigned flags);
	/* UNI_CALL_LEAF and _ENTRY; top: the newest open call */
	void (*leaf)(struct uni_walk *w, struct uni_walk_cpu *c, struct uni_walk_frame *top,
		uint32_t func, uint64_t time, enum uni_call_type type);
	/* UNI_CALL_RETURN, _LOST (value: count), _SWITCH (value: reason; before anything changes,
	 * next is the thread that comes) */
	void (*other)(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time,
		enum uni_call_type type, uint64_t value, uint32_t next);
	void (*ext)(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time,
		const struct uni_trace_record *rec);
	/* After the thread of a CPU changed. */
	void (*switched)(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time);
};

int uni_walk_init(struct uni_walk *w, const struct uni_trace_input *in,
	const struct uni_calls_filter *filter, struct uni_funcs *funcs,
	const struct uni_walk_ops *ops, struct uni_err *err);
void uni_walk_deinit(struct uni_walk *w);

/* All of it, up to the time `until`. */
int uni_walk_all(struct uni_walk *w, uint64_t until);
/* The open calls end: at w->to, or where the trace does. */
void uni_walk_finish(struct uni_walk *w);
/* Times begin to count now: open calls keep only later time. */
void uni_walk_restart(struct uni_walk *w, uint64_t time);

/* One step of a CPU whose next record is the earliest: up to `until`, at most max records, or a
 * packet's end. Then c->next is known again. */
void uni_walk_step(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t until, size_t max);
static inline bool uni_walk_has_next(const struct uni_walk_cpu *c)
{
	return c->at != c->end || c->losing;
}

/* The CPU with the earliest next record, or NULL: none is before or at `until`. */
struct uni_walk_cpu *uni_walk_earliest(const struct uni_walk *w, uint64_t until);
/* Finds the CPU's next record: c->next. */
void uni_walk_peek(struct uni_walk *w, struct uni_walk_cpu *c);

static inline uint64_t uni_walk_ns(const struct uni_walk *w, uint64_t time)
{
	return uni_trace_clock_ns(&w->in->cpu[0].clock, w->rate, time);
}

/* From one value of the counter to another, ns; 0 if `to` is before `from`. Every output rounds
 * both ends like this, never a difference. So the times of calls add up to those of their callers,
 * and all outputs agree. */
static inline uint64_t uni_walk_took(const struct uni_walk *w, uint64_t from, uint64_t to)
{
	return to > from ? uni_walk_ns(w, to) - uni_walk_ns(w, from) : 0;
}

/* --- for the loop only ------------------------------------------------------------------------ */

/* The function at this place in the window of code. Out of memory: w->failed says so. */
uint32_t uni_walk_func_at(struct uni_walk *w, uint64_t offset);
uint32_t uni_walk_func(struct uni_walk *w, uint32_t payload);
/* More room for frames of the CPU's thread; false: no more calls can be recorded. */
bool uni_walk_grow(struct uni_walk *w, struct uni_walk_cpu *c);
/* Any other record at c->at. False: the span ends here. */
bool uni_walk_other(struct uni_walk *w, struct uni_walk_cpu *c);

/* Headings tell of the CPUs and threads that were chosen alone. */
static inline void uni_walk_count(struct uni_walk *w, const struct uni_walk_cpu *c, uint64_t nr)
{
	w->stats.events += c->muted ? 0 : nr;
}

static inline uint32_t uni_walk_func_of(struct uni_walk *w, uint32_t payload)
{
	const struct uni_walk_slot *s =
		&w->cache[payload * 2654435761u >> (32 - UNI_WALK_CACHE_BITS)];

	return __builtin_expect(s->payload == payload, 1) ? s->func : uni_walk_func(w, payload);
}

static inline void uni_walk_open(struct uni_walk_frame *f, uint32_t func, uint64_t time)
{
	*f = (struct uni_walk_frame){ .begin = time,
		.func = func,
		.bound = f[-1].returned != 0 ? f[-1].returned : f[-1].bound - 1 };
}

static inline int8_t *uni_walk_place(struct uni_walk *w, uint32_t func)
{
	return &w->places[func % UNI_WALK_PLACES];
}

/* More than a frame takes: two stack pointers so far apart are of two stacks. */
#define UNI_WALK_FAR 0x8000

/* Below `sp` by more than a frame, or above it. */
static inline bool uni_walk_is_far(uint32_t below, uint32_t sp)
{
	return below != 0 && sp - below > UNI_WALK_FAR;
}

/* A call of `func`, made from f, returned at stack pointer sp. All direct calls from one function
 * return at the same place. Handlers, and calls made by unrecorded functions, are lower. */
static inline void uni_walk_returned(
	struct uni_walk *w, struct uni_walk_frame *f, uint32_t func, uint32_t sp)
{
	if (!f->mixed && uni_walk_is_far(f->returned, sp) && uni_walk_is_far(sp, f->returned)) {
		f->mixed = true;
		w->stats.mixed += f->bound != UINT32_MAX;
	}
	if (f->returned == sp) {
		if (f->by == func)
			return;
		f->others = true;
		*uni_walk_place(w, func) += *uni_walk_place(w, func) < UNI_WALK_PLACED;
		return;
	}
	/* The first frame's callees have unknown callers. */
	if (f->returned != 0 && f->bound != UINT32_MAX) {
		int8_t *lower = uni_walk_place(w, f->returned < sp ? f->by : func);

		*lower -= *lower > -UNI_WALK_PLACED;
	}
	if (f->returned < sp) {
		f->returned = sp;
		f->by = func;
		f->others = false;
	}
}

/*
 * Walks records while they are calls and returns, and while their time is at most `until`. `ops`
 * must be constant where this is called, and `functions` too.
 */
static inline __attribute__((always_inline)) void uni_walk_span(struct uni_walk *w,
	struct uni_walk_cpu *c, uint64_t until, size_t max, const struct uni_walk_ops *ops,
	bool functions)
{
	const unsigned entries = w->entries, exits = w->exits, leaves = w->leaves;
	const unsigned calls = w->calls;

	while (c->at < c->end && w->failed == 0) {
		struct uni_walk_thread *t = &w->thread[c->thread];
		struct uni_walk_frame *top = &t->frame[t->nr - 1];
		const struct uni_walk_frame *last = &t->frame[t->cap - 1];
		const uint64_t *at = c->at, *end = (size_t)(c->end - at) > max ? at + max : c->end;
		const uint64_t offset = c->offset;
		uint64_t now = c->now;
		enum { DONE, FULL, ODD, OTHER } why = DONE;

		for (; at < end; at++) {
			uint64_t word = *at;
			uint64_t then = now + (uint32_t)((uint32_t)word - (uint32_t)now);
			uint64_t time = then + offset;
			unsigned id = word >> 32 & 15;

			if (time > until)
				break;
			if (entries >> id & 1) {
				uint32_t func;

				if (!functions && top == last) {
					why = FULL;
					break;
				}
				func = uni_walk_func_of(w, (uint32_t)(word >> 36));
				if (functions) {
					ops->leaf(w, c, top, func, time, UNI_CALL_ENTRY);
				} else {
					top++;
					uni_walk_open(top, func, time);
					ops->enter(w, c, top);
				}
			} else if (exits >> id & 1) {
				uint32_t sp = (uint32_t)(word >> 32);

				if (sp > top->bound || top == t->frame || t->too_deep != 0) {
					why = ODD;
					break;
				}
				w->stats.woven += uni_walk_is_far(top->returned, sp) && !top->mixed;
				uni_walk_returned(w, &top[-1], top->func, sp);
				ops->leave(w, c, top, time, 0);
				top--;
			} else if (leaves >> id & 1) {
				ops->leaf(w, c, top, uni_walk_func_of(w, (uint32_t)(word >> 36)),
					time, UNI_CALL_LEAF);
			} else if ((calls >> id & 1) && top == t->frame) {
				ops->leaf(w, c, top, uni_walk_func_of(w, (uint32_t)(word >> 36)),
					time, UNI_CALL_ENTRY);
			} else {
				why = OTHER;
				break;
			}
			now = then;
		}
		if (at != c->at)
			c->last = now + offset;
		max -= (size_t)(at - c->at);
		uni_walk_count(w, c, (uint64_t)(at - c->at));
		c->now = now;
		c->at = at;
		t->nr = (uint32_t)(top - t->frame) + 1;
		if (why == DONE)
			return;
		if (why == FULL && uni_walk_grow(w, c))
			continue;
		if (!uni_walk_other(w, c))
			return;
		max--;
	}
}

#endif
