/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "guest/model.h"

#define SLOTS (2u * UNI_THREADS_MAX)

static const char *const states[UNI_THREAD_STATE_NR] = {
	[UNI_THREAD_UNKNOWN] = "unknown",
	[UNI_THREAD_RUNNING] = "running",
	[UNI_THREAD_READY] = "ready",
	[UNI_THREAD_BLOCKED] = "blocked",
	[UNI_THREAD_SLEEPING] = "sleeping",
	[UNI_THREAD_EXITED] = "exited",
	[UNI_THREAD_WAITING] = "waiting",
	[UNI_THREAD_IDLE] = "idle",
};

const char *uni_thread_state_name(unsigned state)
{
	return state < UNI_THREAD_STATE_NR ? states[state] : "unknown";
}

const char *uni_threads_cut_text(unsigned cut)
{
	switch (cut) {
	case UNI_THREADS_LOOP:
		return "the guest's list of threads has a loop";
	case UNI_THREADS_FAULT:
		return "the guest's list of threads leads to memory that cannot be read";
	case UNI_THREADS_MORE:
		return "the guest has more threads than are looked at";
	case UNI_THREADS_SPENT:
		return "reading the guest's threads ended at its limit";
	default:
		return NULL;
	}
}

struct uni_thread_list *uni_thread_list_create(uint32_t cap)
{
	struct uni_thread_list *list;

	cap = uni_min(uni_max(cap, 1u), (uint32_t)UNI_THREADS_MAX);
	list = calloc(1, sizeof(*list) + cap * sizeof(list->v[0]));
	if (list != NULL) {
		list->cap = cap;
		/* Touched now, so that no page fault falls into a pause. */
		memset(list->v, 0xff, cap * sizeof(list->v[0]));
	}
	return list;
}

/* The slot of that object, or the free slot for it. There are twice as many slots as threads. */
static uint32_t *slot_of(struct uni_thread_list *list, uint64_t object)
{
	size_t i = (size_t)uni_hash_pair(object, 0) % SLOTS;

	while (list->slot[i] != 0 && list->v[list->slot[i] - 1].object != object)
		i = (i + 1) % SLOTS;
	return &list->slot[i];
}

bool uni_look_cut(struct uni_look *look, enum uni_threads_cut why)
{
	if (look->list->cut == UNI_THREADS_WHOLE)
		look->list->cut = (uint8_t)why;
	return false;
}

bool uni_look_add(struct uni_look *look, uint64_t object)
{
	struct uni_thread_list *list = look->list;
	uint32_t *slot = slot_of(list, object);
	struct uni_guest_thread *t;

	if (*slot != 0)
		return uni_look_cut(look, UNI_THREADS_LOOP);
	if (list->nr == list->cap || look->steps == 0)
		return uni_look_cut(look, UNI_THREADS_MORE);
	look->steps--;
	t = &list->v[list->nr];
	memset(t, 0, sizeof(*t));
	t->object = object;
	t->vcpu = -1;
	if (!look->m->ops->read(look, t))
		return uni_look_cut(look, UNI_THREADS_FAULT);
	*slot = ++list->nr;
	return true;
}

void uni_look_list(struct uni_look *look, uint64_t first, unsigned next)
{
	for (uint64_t object = first; object != 0;) {
		if (!uni_look_add(look, object))
			return;
		if (!uni_look_member(look, object, next, &object)) {
			(void)uni_look_cut(look, UNI_THREADS_FAULT);
			return;
		}
	}
}

/* A thread that the list lacks is on a vCPU all the same. */
static struct uni_guest_thread *find_or_add(struct uni_look *look, uint64_t object)
{
	struct uni_thread_list *list = look->list;
	uint32_t *slot = slot_of(list, object);

	if (*slot == 0 && !uni_look_add(look, object))
		return NULL;
	return &list->v[*slot_of(list, object) - 1];
}

/* It is on a vCPU: a blocked one may still be there, while its scheduler looks for another. */
static void set_on_vcpu(struct uni_guest_thread *t)
{
	if (t->state == UNI_THREAD_READY || t->state == UNI_THREAD_UNKNOWN ||
		t->state == UNI_THREAD_IDLE)
		t->state = UNI_THREAD_RUNNING;
}

static void mark_current(struct uni_look *look)
{
	for (uint32_t v = 0; v < look->nr_vcpus; v++) {
		uint64_t object = 0;
		struct uni_guest_thread *t;

		if (look->regs[v].pc_valid)
			object = look->m->ops->current(look, v);
		t = object != 0 ? find_or_add(look, object) : NULL;
		if (t == NULL || t->vcpu >= 0)
			continue;
		t->vcpu = (int32_t)v;
		set_on_vcpu(t);
	}
}

/* A thread that runs, as the guest says, but is on no vCPU, is about to get one. */
static void settle_states(struct uni_thread_list *list)
{
	for (uint32_t i = 0; i < list->nr; i++) {
		struct uni_guest_thread *t = &list->v[i];

		if (t->state == UNI_THREAD_RUNNING && t->vcpu < 0)
			t->state = UNI_THREAD_READY;
	}
}

void uni_model_walk(const struct uni_model *m, struct uni_as *as, const struct uni_regs *regs,
	uint32_t nr_vcpus, struct uni_thread_list *list)
{
	struct uni_look look = { .m = m,
		.as = as,
		.regs = regs,
		.nr_vcpus = nr_vcpus,
		.list = list,
		.steps = UNI_THREADS_MAX };

	list->nr = 0;
	list->cut = UNI_THREADS_WHOLE;
	memset(list->slot, 0, sizeof(list->slot));
	m->ops->each(&look);
	mark_current(&look);
	settle_states(list);
	/* Whatever else is wrong then may come from that. */
	if (uni_as_is_spent(as))
		list->cut = UNI_THREADS_SPENT;
}

int uni_model_current(const struct uni_model *m, struct uni_as *as, const struct uni_regs *regs,
	uint32_t vcpu, struct uni_guest_thread *ret)
{
	struct uni_look look = { .m = m, .as = as, .regs = regs, .nr_vcpus = vcpu + 1 };

	memset(ret, 0, sizeof(*ret));
	ret->object = m->ops->current(&look, vcpu);
	if (ret->object == 0 || !m->ops->read(&look, ret))
		return -UNI_ENOENT;
	ret->vcpu = (int32_t)vcpu;
	set_on_vcpu(ret);
	return 0;
}
