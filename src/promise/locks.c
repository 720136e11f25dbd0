/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks: who has them, and from when to when. A lock is given back to nobody in particular. So a
 * wait ends when its thread has taken the lock, and is ready since the lock was given back last.
 */
#include "base/checked.h"
#include "promise/model_priv.h"

static struct uni_promise_wait *newest_open(const struct uni_promise_builder *b, uint32_t who)
{
	uint32_t i = b->m.all.v[who].first_wait;

	if (i == UNI_PROMISE_NONE || b->m.waits.v[i].end != UNI_PROMISE_OPEN)
		return NULL;
	return &b->m.waits.v[i];
}

bool uni_promise_waits_for_lock(const struct uni_promise_builder *b, uint32_t who)
{
	const struct uni_promise_wait *w = newest_open(b, who);

	return w != NULL && b->m.all.v[w->on].type == UNI_PROMISE_TYPE_LOCK;
}

void uni_promise_run_in_wait(struct uni_promise_builder *b, uint32_t who)
{
	newest_open(b, who)->ran = b->now;
}

void uni_promise_ran_in_wait(struct uni_promise_builder *b, const struct uni_promise_run *run)
{
	const struct uni_promise_wait *w = newest_open(b, run->promise);

	if (w != NULL && uni_promise_waits_for_lock(b, run->promise) && run->begin > w->begin)
		b->m.all.v[run->promise].ran_ns += run->end - run->begin;
}

void uni_promise_waits_on(struct uni_promise_builder *b, uint32_t who)
{
	newest_open(b, who)->ran = UNI_PROMISE_OPEN;
}

/* It runs: since its run began it does not wait. */
uint64_t uni_promise_gave_up(const struct uni_promise_builder *b, uint32_t who)
{
	const struct uni_promise_wait *w = newest_open(b, who);

	return w != NULL && w->ran != UNI_PROMISE_OPEN ? w->ran : b->now;
}

uint64_t uni_promise_waited(const struct uni_promise *p, uint64_t since, uint64_t until)
{
	return until - since - uni_min(until - since, p->ran_ns);
}

void uni_promise_leave_lock(
	struct uni_promise_builder *b, uint32_t who, uint32_t other, uint32_t cpu)
{
	const struct uni_promise_wait *w = newest_open(b, who);

	if (w != NULL && w->on != other && uni_promise_waits_for_lock(b, who))
		(void)uni_promise_stop_waits(b, who, UNI_PROMISE_NONE, cpu);
}

static bool is_held(const struct uni_promise_builder *b, uint32_t lock)
{
	uint32_t i = b->m.all.v[lock].hold;

	return i != UNI_PROMISE_NONE && b->m.holds.v[i].end == UNI_PROMISE_OPEN;
}

void uni_promise_lock_came(struct uni_promise_builder *b, uint32_t who, uint32_t lock)
{
	const struct uni_promise *p = &b->m.all.v[lock];
	struct uni_promise_wait *w = newest_open(b, who);
	const struct uni_promise_hold *h;

	if (w == NULL || w->on != lock || w->ready != UNI_PROMISE_OPEN ||
		p->hold == UNI_PROMISE_NONE || is_held(b, lock))
		return;
	h = &b->m.holds.v[p->hold];
	if (h->end < w->begin)
		return;
	w->ready = h->end;
	w->waker = p->lonely_by;
	w->depth = h->depth + 1;
}

static int add_hold(struct uni_promise_builder *b, struct uni_promise_hold hold)
{
	uint32_t nr = (uint32_t)b->m.holds.nr;

	if (!uni_promise_push(&b->m.holds, hold))
		return -UNI_ENOMEM;
	b->m.all.v[hold.lock].hold = nr;
	return 0;
}

/* The run that goes on is the one that the lock let go on. */
static void end_wait(struct uni_promise_builder *b, uint32_t who, uint32_t lock, uint32_t cpu)
{
	uint32_t wait, run = b->cpus[cpu].run;

	if (newest_open(b, who) == NULL)
		return;
	wait = uni_promise_stop_waits(b, who, lock, cpu);
	if (run != UNI_PROMISE_NONE && wait != UNI_PROMISE_NONE &&
		b->m.runs.v[run].promise == who && b->m.runs.v[run].wait == UNI_PROMISE_NONE &&
		b->m.runs.v[run].begin >= b->m.waits.v[wait].begin)
		b->m.runs.v[run].wait = wait;
}

int uni_promise_lock_take(
	struct uni_promise_builder *b, uint32_t who, uint32_t lock, uint32_t cpu, bool undated)
{
	struct uni_promise_hold *h;

	if (who == UNI_PROMISE_NONE)
		return 0;
	if (!undated)
		end_wait(b, who, lock, cpu);
	if (is_held(b, lock)) {
		h = &b->m.holds.v[b->m.all.v[lock].hold];
		if (h->owner == who && h->begin >= b->m.last_gap)
			return 0;
		/* That it was given back is missing. Before what is missing it was not. */
		h->end = b->m.last_gap > h->begin ? b->m.last_gap : b->now;
	}
	return add_hold(b, (struct uni_promise_hold){ .begin = b->now,
				   .end = UNI_PROMISE_OPEN,
				   .owner = who,
				   .lock = lock,
				   .undated = undated });
}

void uni_promise_lock_end(struct uni_promise_builder *b, uint32_t lock)
{
	if (is_held(b, lock))
		b->m.holds.v[b->m.all.v[lock].hold].end = b->now;
}

int uni_promise_lock_give(struct uni_promise_builder *b, uint32_t lock, uint32_t cpu)
{
	struct uni_promise *p = &b->m.all.v[lock];
	struct uni_promise_hold *h;
	uint32_t by = uni_promise_running(b, cpu);
	int rc = 0;

	if (is_held(b, lock)) {
		h = &b->m.holds.v[p->hold];
		by = h->owner;
		h->end = b->now;
		h->depth = uni_promise_chain(b, cpu);
	} else if (by != UNI_PROMISE_NONE && p->fate == UNI_FATE_OPEN) {
		rc = add_hold(b, (struct uni_promise_hold){ .begin = uni_max(b->m.begin, p->lonely),
					 .end = b->now,
					 .owner = by,
					 .lock = lock,
					 .depth = uni_promise_chain(b, cpu),
					 .undated = true });
	}
	p->nr_lonely++;
	p->taken = false;
	p->lonely = b->now;
	p->lonely_by = by;
	return rc;
}
