/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "sampling/slab.h"

#define ROOM_FIRST 32u /* threads */
#define NO_SLOT	   UINT32_MAX

/* A place for a thread's stack: the same for the same thread, so that it fits better each time. */
struct place {
	uint64_t object; /* the last thread in it */
	uint64_t round;	 /* when */
};

struct uni_threads {
	struct uni_target *t;
	const struct uni_unwinder *u;
	const struct uni_model *model;
	struct uni_as *as;     /* for the list, and for chains that are followed while held */
	struct uni_slab *slab; /* NULL: it is of no use here */
	uint64_t pause_ns;
	uint32_t room;
	uint64_t round;
	uint32_t first; /* where the next look begins, if the last one took too long for all */
	struct uni_thread_list *list;
	struct uni_chain *chain; /* room, as list->v */
	uint32_t *slot;		 /* place of list->v[i]; NO_SLOT: it has no chain of its own */
	struct place *place;	 /* room */
};

static void free_room(struct uni_threads *s)
{
	uni_slab_destroy(s->slab);
	free(s->list);
	free(s->chain);
	free(s->slot);
	free(s->place);
}

static int make_room(struct uni_threads *s, uint32_t room, struct uni_err *err)
{
	struct uni_as_budget stack_budget = uni_as_budget_default;
	struct uni_threads n = *s;
	int rc;

	stack_budget.wall_ns = s->pause_ns;
	n.room = room;
	n.slab = NULL;
	n.list = uni_thread_list_create(room);
	n.chain = calloc(room, sizeof(*n.chain));
	n.slot = calloc(room, sizeof(*n.slot));
	n.place = calloc(room, sizeof(*n.place));
	if (n.list == NULL || n.chain == NULL || n.slot == NULL || n.place == NULL)
		rc = uni_err_nomem(err);
	else
		rc = uni_slab_create(s->t, s->u, room, &stack_budget, false, &n.slab, err);
	if (rc != 0) {
		free_room(&n);
		return rc;
	}
	/* Touched now, so that no page fault falls into a pause. */
	memset(n.chain, 0xff, room * sizeof(*n.chain));
	free_room(s);
	*s = n;
	return 0;
}

int uni_threads_create(struct uni_target *t, const struct uni_unwinder *u,
	const struct uni_model *model, uint64_t pause_ns, struct uni_threads **ret,
	struct uni_err *err)
{
	/* For the list itself: some words of each thread. */
	const struct uni_as_budget list_budget = {
		.bytes = UINT32_MAX,
		.table_loads = 1u << 20,
		.reads = UNI_THREADS_READS,
		.wall_ns = pause_ns == UNI_THREADS_NO_CLOCK ? 0 : pause_ns,
	};
	struct uni_threads *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return uni_err_nomem(err);
	s->t = t;
	s->u = u;
	s->model = model;
	s->pause_ns = pause_ns;
	rc = uni_as_create(t->ops->gmem(t), &list_budget, &s->as, err);
	if (rc == 0)
		rc = make_room(s, ROOM_FIRST, err);
	if (rc != 0) {
		uni_threads_destroy(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void uni_threads_destroy(struct uni_threads *s)
{
	if (s == NULL)
		return;
	free_room(s);
	uni_as_destroy(s->as);
	free(s);
}

uint64_t uni_threads_one_look_ns(struct uni_target *t)
{
	bool waits = (t->ops->caps(t) & (UNI_CAP_HOLD | UNI_CAP_DEAD)) == UNI_CAP_HOLD;

	return waits ? UNI_THREADS_ONE_LOOK : UNI_THREADS_NO_CLOCK;
}

void uni_threads_prepare(struct uni_threads *s)
{
	/* If there is no memory for more, those that there is room for are looked at. */
	if (s->list->cut == UNI_THREADS_MORE && s->room < UNI_THREADS_MAX)
		(void)make_room(s, uni_min(4 * s->room, (uint32_t)UNI_THREADS_MAX), NULL);
}

bool uni_threads_are_short(const struct uni_threads *s)
{
	return s->list->cut != UNI_THREADS_WHOLE &&
	       (s->list->cut != UNI_THREADS_MORE || s->room == UNI_THREADS_MAX);
}

/* The thread's own place, else one that is unused this time. */
static uint32_t place_for(struct uni_threads *s, uint64_t object)
{
	uint32_t start = (uint32_t)(uni_hash_pair(object, 1) % s->room), spare = NO_SLOT;

	for (uint32_t k = 0; k < s->room; k++) {
		uint32_t i = (start + k) % s->room;

		if (s->place[i].object == object && s->place[i].round != s->round)
			return i;
		if (spare == NO_SLOT && s->place[i].round != s->round)
			spare = i;
		if (k >= 8 && spare != NO_SLOT)
			break;
	}
	return spare;
}

/* The functions in which it will go on are its chain. A caller's pc lies behind a call: one byte
 * into the function, which has not yet begun. */
static void chain_of(const struct uni_guest_thread *t, struct uni_chain *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->stop = UNI_STOP_ROOT;
	for (uint32_t i = 0; i < t->nr_then; i++)
		ret->pc[ret->nr++] = t->then[i] + (i != 0);
}

/* Copies the data for uni_threads_unwind(), or follows the chain at once. */
static void take_one(struct uni_threads *s, uint32_t i)
{
	const struct uni_guest_thread *t = &s->list->v[i];
	uint32_t slot = place_for(s, t->object);

	if (slot == NO_SLOT)
		return;
	s->slot[i] = slot;
	s->place[slot] = (struct place){ .object = t->object, .round = s->round };
	if (t->nr_then != 0)
		chain_of(t, &s->chain[i]);
	else if (s->slab != NULL)
		uni_slab_take(s->slab, slot, &t->regs, &s->chain[i]);
	else
		uni_unwind(s->u, s->as, &t->regs, &s->chain[i]);
}

/* The address space in which the vCPUs run; unikernels have one. */
static bool begin_threads(struct uni_threads *s, const struct uni_regs *regs, uint32_t nr_vcpus)
{
	for (uint32_t v = 0; v < nr_vcpus; v++) {
		if (regs[v].pc_valid && uni_unwind_begin(s->u, s->as, &regs[v]) == 0)
			return true;
	}
	return false;
}

void uni_threads_take(struct uni_threads *s, const struct uni_regs *regs, uint32_t nr_vcpus)
{
	uint64_t begin_ns = uni_now_ns();
	struct uni_thread_list *list = s->list;
	uint32_t n = 0;

	s->round++;
	list->nr = 0;
	list->cut = UNI_THREADS_FAULT;
	if (!begin_threads(s, regs, nr_vcpus))
		return;
	uni_as_prefetch(s->as);
	uni_model_walk(s->model, s->as, regs, nr_vcpus, list);
	for (uint32_t i = 0; i < list->nr; i++)
		s->slot[i] = NO_SLOT;
	for (; n < list->nr && uni_now_ns() - begin_ns < s->pause_ns; n++) {
		uint32_t i = (s->first + n) % list->nr;

		if (list->v[i].vcpu < 0 && list->v[i].state != UNI_THREAD_EXITED &&
			(list->v[i].regs.pc_valid || list->v[i].nr_then != 0))
			take_one(s, i);
	}
	if (n < list->nr && s->pause_ns >= UNI_THREADS_ONE_LOOK && list->cut == UNI_THREADS_WHOLE)
		list->cut = UNI_THREADS_SPENT;
	s->first = list->nr != 0 ? (s->first + n) % list->nr : 0;
}

bool uni_threads_unwind(struct uni_threads *s)
{
	bool again = false;

	for (uint32_t i = 0; s->slab != NULL && i < s->list->nr; i++) {
		if (s->slot[i] != NO_SLOT && s->list->v[i].nr_then == 0)
			again |= !uni_slab_unwind(
				s->slab, s->slot[i], &s->list->v[i].regs, &s->chain[i]);
	}
	return again;
}

const struct uni_thread_list *uni_threads_list(const struct uni_threads *s)
{
	return s->list;
}

const struct uni_chain *uni_threads_chain(const struct uni_threads *s, uint32_t i)
{
	return i < s->list->nr && s->slot[i] != NO_SLOT ? &s->chain[i] : NULL;
}
