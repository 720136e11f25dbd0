/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/slab.h"

#include <stdlib.h>

#include "base/checked.h"

#define EXTENT_FIRST (16u << 10) /* bytes of stack, while nothing is known */
#define EXTENT_MIN   1024u
#define EXTENT_MAX   (64u << 10) /* a sample's budget is 1 MiB */
#define EXTENT_SLACK 512u	 /* more than the last chain took */
#define LIVE_BEGIN   8u		 /* chains in a row that must fit, before one is followed later */
#define LIVE_FIRST   32u	 /* twice as many after the first that did not */
#define LIVE_MAX     (1u << 16)

struct stack {
	struct uni_as *as;
	uint32_t extent;   /* bytes that are copied */
	bool blind;	   /* no page tables: nothing was copied */
	bool fits;	   /* the chain that was followed while held needed no more than the copy */
	uint32_t live;	   /* so many chains in a row are still to be followed while held */
	uint32_t live_for; /* as many as that, after one that did not fit */
};

struct uni_slab {
	const struct uni_unwinder *u;
	uint32_t nr;
	struct stack stack[]; /* by vCPU */
};

static bool of_use(struct uni_target *t, const struct uni_unwinder *u)
{
	struct uni_gmem *m = t->ops->gmem(t);

	return (t->ops->caps(t) & UNI_CAP_HOLD) != 0 && uni_gmem_can_read_many(m) &&
	       u->stepper[0].ops == &uni_unwind_cfi && u->hints != NULL && u->hints->cfi != NULL;
}

int uni_slab_create(struct uni_target *t, const struct uni_unwinder *u, uint32_t nr_vcpus,
	const struct uni_as_budget *budget, bool live, struct uni_slab **ret, struct uni_err *err)
{
	struct uni_slab *s;
	int rc = 0;

	*ret = NULL;
	if (!of_use(t, u))
		return 0;
	s = calloc(1, sizeof(*s) + nr_vcpus * sizeof(s->stack[0]));
	if (s == NULL)
		return uni_err_nomem(err);
	s->u = u;
	for (; s->nr < nr_vcpus && rc == 0; s->nr++) {
		s->stack[s->nr].extent = EXTENT_FIRST;
		s->stack[s->nr].live_for = LIVE_FIRST;
		s->stack[s->nr].live = live ? LIVE_BEGIN : 0;
		rc = uni_as_create(t->ops->gmem(t), budget, &s->stack[s->nr].as, err);
	}
	if (rc != 0) {
		uni_slab_destroy(s);
		return rc;
	}
	*ret = s;
	return 0;
}

void uni_slab_destroy(struct uni_slab *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < s->nr; i++)
		uni_as_destroy(s->stack[i].as);
	free(s);
}

void uni_slab_take(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *ret)
{
	struct stack *k = &s->stack[vcpu];
	uint32_t reads;

	k->blind = uni_unwind_begin(s->u, k->as, regs) != 0;
	if (k->blind || !regs->sp_valid)
		return;
	uni_as_prefetch(k->as);
	/* The word below is the last one that was popped (unwind/skid.c). */
	uni_as_touch(k->as, uni_gva_of(regs->sp - 8), k->extent + 8);
	if (k->live == 0)
		return;
	reads = uni_as_stats(k->as)->reads;
	uni_unwind_go(s->u, k->as, regs, ret);
	k->fits = uni_as_stats(k->as)->reads == reads;
}

/* As much as the last chains took; less only slowly. */
static void adapt_extent(struct stack *k, const struct uni_regs *regs, const struct uni_chain *c)
{
	uint64_t took = c->top_sp - regs->sp;
	uint32_t less = k->extent - k->extent / 64;

	if (c->top_sp < regs->sp || took > EXTENT_MAX) /* on to another stack */
		took = 0;
	k->extent = uni_max((uint32_t)took + EXTENT_SLACK, less);
	k->extent = uni_min(uni_max(k->extent, EXTENT_MIN), EXTENT_MAX);
}

void uni_slab_unskid(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *c)
{
	if (!s->stack[vcpu].blind)
		uni_unwind_stopped(s->u, s->stack[vcpu].as, regs, c);
}

bool uni_slab_unwind(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *ret)
{
	struct stack *k = &s->stack[vcpu];

	if (k->blind) {
		uni_unwind(s->u, k->as, regs, ret); /* the pc alone: reads nothing */
		return true;
	}
	uni_as_seal(k->as);
	if (k->live != 0 && regs->sp_valid) {
		adapt_extent(k, regs, ret);
		k->live = k->fits ? k->live - 1 : k->live_for;
		return true;
	}
	uni_unwind_go(s->u, k->as, regs, ret);
	adapt_extent(k, regs, ret);
	if (!uni_as_missed(k->as))
		return true;
	k->extent = uni_min(2 * k->extent, EXTENT_MAX);
	k->live_for = uni_min(2 * k->live_for, LIVE_MAX);
	k->live = k->live_for;
	return false;
}
