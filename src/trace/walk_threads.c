/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/walk_threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"

#define SLOTS	   (2 * UNI_CALLS_THREADS_MAX) /* a power of two */
#define FRAMES_MIN 16

bool uni_walk_threads_init(struct uni_walk *w)
{
	w->nr_thread_slots = SLOTS;
	w->thread_slot = calloc(SLOTS, sizeof(*w->thread_slot));
	return w->thread_slot != NULL;
}

void uni_walk_threads_deinit(struct uni_walk *w)
{
	for (uint32_t i = 0; i < w->nr_threads; i++)
		free(w->thread[i].frame);
	free(w->thread);
	free(w->thread_slot);
	w->thread = NULL;
	w->thread_slot = NULL;
	w->nr_threads = 0;
}

static uint32_t *slot_of(struct uni_walk *w, uint64_t id)
{
	uint32_t mask = w->nr_thread_slots - 1, i = (uint32_t)(uni_hash_pair(id, 1) >> 7) & mask;

	while (w->thread_slot[i] != 0 && w->thread[w->thread_slot[i] - 1].id != id)
		i = (i + 1) & mask;
	return &w->thread_slot[i];
}

static bool is_wanted_thread(const struct uni_walk *w, const struct uni_walk_thread *t)
{
	if (w->filter.thread == NULL)
		return true;
	for (size_t i = 0; t->known && i < w->filter.nr_thread; i++) {
		if (w->filter.thread[i] == t->id)
			return true;
	}
	return false;
}

static bool grow_threads(struct uni_walk *w)
{
	uint32_t cap = w->cap_threads != 0 ? w->cap_threads * 2 : 16;
	struct uni_walk_thread *v;

	if (w->nr_threads < w->cap_threads)
		return true;
	v = realloc(w->thread, cap * sizeof(*v));
	if (v == NULL)
		return false;
	w->thread = v;
	w->cap_threads = cap;
	return true;
}

/* Returns its number. If there are too many threads, returns an existing one, which then gets these
 * calls. */
static uint32_t add_thread(struct uni_walk *w, uint64_t id, bool known)
{
	struct uni_walk_thread t = { .id = id, .known = known, .nr = 1, .cap = FRAMES_MIN };

	if (w->nr_threads >= UNI_CALLS_THREADS_MAX)
		return w->nr_threads - 1;
	t.muted = !is_wanted_thread(w, &t);
	t.losses = w->losses;
	t.frame = calloc(FRAMES_MIN, sizeof(*t.frame));
	if (t.frame == NULL || !grow_threads(w)) {
		free(t.frame);
		w->failed = -UNI_ENOMEM;
		return 0;
	}
	t.frame[0].bound = UINT32_MAX;
	w->thread[w->nr_threads] = t;
	return w->nr_threads++;
}

bool uni_walk_threads_room(struct uni_walk *w, uint32_t nr)
{
	while (w->failed == 0 && w->nr_threads < nr)
		(void)add_thread(w, 0, false);
	return w->failed == 0;
}

void uni_walk_know_thread(struct uni_walk *w, uint32_t thread, uint64_t id)
{
	struct uni_walk_thread *t = &w->thread[thread];

	t->id = id;
	t->known = true;
	t->muted = !is_wanted_thread(w, t);
}

void uni_walk_run_on(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t thread)
{
	c->thread = thread;
	w->thread[thread].on_cpu = true;
	c->muted =
		w->thread[thread].muted || !uni_only_passes(w->filter.cpu, (uint64_t)(c - w->cpu));
}

void uni_walk_unknown_thread(struct uni_walk *w, struct uni_walk_cpu *c)
{
	uint32_t thread;

	if (c->begun)
		w->thread[c->thread].on_cpu = false;
	thread = c->unknown;
	if (!c->begun || w->thread[thread].known)
		thread = add_thread(w, (uint64_t)(c - w->cpu), false);
	if (w->failed == 0)
		uni_walk_run_on(w, c, thread);
	c->unknown = c->thread;
}

void uni_walk_cut(
	struct uni_walk *w, struct uni_walk_cpu *c, uint32_t keep, uint64_t time, unsigned flags)
{
	struct uni_walk_thread *t = &w->thread[c->thread];

	t->too_deep = 0;
	while (t->nr > keep) {
		w->stats.cut++;
		w->ops->leave(w, c, &t->frame[t->nr - 1], time, flags);
		t->nr--;
	}
	if (keep == 1)
		t->frame[0].returned = 0;
}

static void come_thread(struct uni_walk *w, struct uni_walk_cpu *c, uint32_t thread, uint64_t time)
{
	struct uni_walk_thread *t = &w->thread[thread];

	uni_walk_run_on(w, c, thread);
	if (w->ops->switched != NULL)
		w->ops->switched(w, c, time);
	if (t->off_since != 0)
		t->frame[t->nr - 1].off += uni_walk_took(w, t->off_since, time);
	/* It may have run where events were lost. */
	if (t->losses != w->losses)
		uni_walk_cut(w, c, 1, time, UNI_CALL_CUT);
	t->losses = w->losses;
}

void uni_walk_cut_away(struct uni_walk *w, uint32_t thread, uint64_t time)
{
	struct uni_walk_cpu *c = &w->cpu[0];

	w->thread[thread].losses = w->losses;
	come_thread(w, c, thread, time);
	uni_walk_cut(w, c, 1, time, UNI_CALL_CUT | UNI_CALL_OPEN);
}

/* The thread on c turns out to be thread `id`. */
static void learn_thread(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t id, uint64_t time)
{
	struct uni_walk_thread *t = &w->thread[c->thread];
	uint32_t *slot = slot_of(w, id);

	if (t->known)
		return;
	if (*slot != 0) {
		/* It has run before, elsewhere or before a loss. */
		uni_walk_cut(w, c, 1, time, UNI_CALL_CUT | UNI_WALK_RAN);
		t->on_cpu = false;
		come_thread(w, c, *slot - 1, time);
		return;
	}
	*slot = c->thread + 1;
	uni_walk_know_thread(w, c->thread, id);
}

/* Its calls are whole: that they never return is how they end. */
static void end_thread_calls(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t id, uint64_t time)
{
	uint64_t cut = w->stats.cut;

	if (w->thread[c->thread].id != id)
		return;
	uni_walk_cut(w, c, 1, time, 0);
	w->stats.cut = cut;
}

void uni_walk_switch(
	struct uni_walk *w, struct uni_walk_cpu *c, const uint64_t words[3], uint64_t time)
{
	const uint64_t prev = words[0], next = words[1];
	struct uni_walk_thread *t;
	uint32_t *slot, to;

	w->stats.switches++;
	learn_thread(w, c, prev, time);
	if ((words[2] >> 32 & UNI_TRACE_OVER) != 0) {
		end_thread_calls(w, c, prev, time);
		if (prev == next)
			return;
	}
	slot = slot_of(w, next);
	if (*slot == 0) {
		to = add_thread(w, next, true);
		if (w->failed != 0)
			return;
		if (w->thread[to].id == next && w->thread[to].known)
			*slot = to + 1;
	} else {
		to = *slot - 1;
	}
	if (w->ops->other != NULL)
		w->ops->other(w, c, time, UNI_CALL_SWITCH, (uint32_t)words[2], to);
	t = &w->thread[c->thread];
	t->on_cpu = false;
	t->off_since = time;
	t->losses = w->losses;
	come_thread(w, c, to, time);
}
