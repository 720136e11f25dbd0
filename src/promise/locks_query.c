/* SPDX-License-Identifier: BSD-2-Clause */
/* Which locks were waited for, and who had them meanwhile. */
#include <stdlib.h>

#include "base/checked.h"
#include "promise/query_priv.h"

#define PAIRS 64	/* of waiter and owner, of a lock: the first ones */
#define PARTS (1 << 24) /* of waits, that are examined in all */

struct by_lock {
	const struct uni_promise_model *m;
	uint32_t parts;
	uint32_t *hold, *wait; /* indices, by lock; those of one by their beginning */
};

uint32_t uni_promise_owner(const struct uni_promise_model *m, uint32_t lock)
{
	uint32_t i = m->all.v[lock].hold;

	if (m->all.v[lock].type != UNI_PROMISE_TYPE_LOCK || i == UNI_PROMISE_NONE ||
		m->holds.v[i].end != UNI_PROMISE_OPEN)
		return UNI_PROMISE_NONE;
	return m->holds.v[i].owner;
}

static int holds_by_lock(const void *a, const void *b, void *arg)
{
	const struct uni_promise_model *m = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint32_t x = m->holds.v[i].lock, y = m->holds.v[j].lock;

	return x != y ? (x < y ? -1 : 1) : (i < j ? -1 : 1);
}

static int waits_by_lock(const void *a, const void *b, void *arg)
{
	const struct uni_promise_model *m = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint32_t x = m->waits.v[i].on, y = m->waits.v[j].on;

	return x != y ? (x < y ? -1 : 1) : (i < j ? -1 : 1);
}

static uint64_t closed_end(const struct uni_promise_model *m, uint64_t end)
{
	return end == UNI_PROMISE_OPEN ? m->end : end;
}

static int add_blame(struct uni_locks *l, size_t first, uint32_t waiter,
	const struct uni_promise_hold *h, uint64_t ns)
{
	for (size_t i = first; i < l->blames.nr; i++) {
		struct uni_lock_blame *b = &l->blames.v[i];

		if (b->waiter == waiter && b->owner == h->owner) {
			b->ns += ns;
			return 0;
		}
	}
	if (l->blames.nr - first == PAIRS)
		return 0;
	return uni_vec_push(&l->blames, ((struct uni_lock_blame){ ns, h->lock, waiter, h->owner }))
		       ? 0
		       : -UNI_ENOMEM;
}

/* The parts of the wait in which somebody had the lock. Holds do not overlap. */
static int add_wait(struct by_lock *s, struct uni_locks *l, struct uni_lock_row *row,
	const struct uni_promise_wait *w, const uint32_t *hold)
{
	uint64_t end = uni_promise_may_have_given_up(w) ? w->ran : closed_end(s->m, w->end);
	size_t lo = 0, hi = row->nr_holds;
	int rc = 0;

	row->nr_waits++;
	row->waited += end - w->begin;
	row->longest_wait = uni_max(row->longest_wait, end - w->begin);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (closed_end(s->m, s->m->holds.v[hold[mid]].end) <= w->begin)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; rc == 0 && lo < row->nr_holds && s->m->holds.v[hold[lo]].begin < end &&
		s->parts < PARTS;
		lo++, s->parts++) {
		const struct uni_promise_hold *h = &s->m->holds.v[hold[lo]];

		rc = add_blame(l, row->first, w->waiter, h,
			uni_min(end, closed_end(s->m, h->end)) - uni_max(w->begin, h->begin));
	}
	return rc;
}

static int by_blame(const void *a, const void *b)
{
	const struct uni_lock_blame *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->waiter != y->waiter)
		return x->waiter < y->waiter ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

static int by_wait(const void *a, const void *b)
{
	const struct uni_lock_row *x = a, *y = b;

	if (x->waited != y->waited)
		return x->waited > y->waited ? -1 : 1;
	if (x->held != y->held)
		return x->held > y->held ? -1 : 1;
	return x->lock < y->lock ? -1 : x->lock > y->lock;
}

/* `lock` has holds from *hold and waits from *wait on; both go on behind them. */
static int add_lock(
	struct by_lock *s, struct uni_locks *l, uint32_t lock, size_t *hold, size_t *wait)
{
	struct uni_lock_row row = { .lock = lock, .first = l->blames.nr };
	const uint32_t *holds = &s->hold[*hold];
	int rc = 0;

	for (; *hold < s->m->holds.nr && s->m->holds.v[s->hold[*hold]].lock == lock; ++*hold) {
		const struct uni_promise_hold *h = &s->m->holds.v[s->hold[*hold]];
		uint64_t ns = closed_end(s->m, h->end) - h->begin;

		row.nr_holds++;
		row.held += ns;
		row.longest_hold = uni_max(row.longest_hold, ns);
	}
	for (; rc == 0 && *wait < s->m->waits.nr && s->m->waits.v[s->wait[*wait]].on == lock;
		++*wait)
		rc = add_wait(s, l, &row, &s->m->waits.v[s->wait[*wait]], holds);
	row.nr = l->blames.nr - row.first;
	if (rc == 0 && row.nr_holds + row.nr_waits != 0 && !uni_vec_push(&l->rows, row))
		rc = -UNI_ENOMEM;
	if (row.nr != 0)
		qsort(&l->blames.v[row.first], row.nr, sizeof(l->blames.v[0]), by_blame);
	return rc;
}

static int add_locks(struct by_lock *s, struct uni_locks *l)
{
	const struct uni_promise_model *m = s->m;
	size_t hold = 0, wait = 0;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < m->all.nr; i++) {
		while (wait < m->waits.nr && m->waits.v[s->wait[wait]].on < i)
			wait++;
		if (m->all.v[i].type == UNI_PROMISE_TYPE_LOCK)
			rc = add_lock(s, l, i, &hold, &wait);
	}
	if (rc == 0 && l->rows.nr != 0)
		qsort(l->rows.v, l->rows.nr, sizeof(l->rows.v[0]), by_wait);
	return rc;
}

static uint32_t *number_all(size_t nr)
{
	uint32_t *v = malloc((nr + 1) * sizeof(*v));

	for (size_t i = 0; v != NULL && i < nr; i++)
		v[i] = (uint32_t)i;
	return v;
}

int uni_promise_locks(const struct uni_promise_model *m, struct uni_locks *ret)
{
	struct by_lock s = {
		.m = m, .hold = number_all(m->holds.nr), .wait = number_all(m->waits.nr)
	};
	int rc = -UNI_ENOMEM;

	*ret = (struct uni_locks){ 0 };
	if (s.hold != NULL && s.wait != NULL) {
		qsort_r(s.hold, m->holds.nr, sizeof(*s.hold), holds_by_lock, (void *)(uintptr_t)m);
		qsort_r(s.wait, m->waits.nr, sizeof(*s.wait), waits_by_lock, (void *)(uintptr_t)m);
		rc = add_locks(&s, ret);
	}
	free(s.hold);
	free(s.wait);
	return rc;
}

void uni_locks_deinit(struct uni_locks *l)
{
	uni_vec_free(&l->rows);
	uni_vec_free(&l->blames);
}
