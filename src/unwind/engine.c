/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

#include <string.h>

#include "base/checked.h"

#define SWITCHES_MAX 8 /* of the stack, downwards, within one chain */

struct walk {
	const struct uni_unwinder *u;
	struct uni_as *as;
	struct uni_chain *ret;
	struct uni_regs regs; /* of the frame that was found last */
	struct uni_step st;
	unsigned switches;
};

static void add(struct uni_unwinder *u, const struct uni_unwinder_ops *ops)
{
	size_t i = 0;

	while (u->stepper[i].ops != NULL)
		i++;
	u->stepper[i].ops = ops;
	u->stepper[i].ctx = u;
}

void uni_unwinder_init(
	struct uni_unwinder *u, const struct uni_arch *arch, const struct uni_unwind_hints *hints)
{
	memset(u, 0, sizeof(*u));
	u->arch = arch;
	u->hints = hints;
	for (; hints != NULL; hints = hints->next) {
		if (hints->cfi == NULL)
			continue;
		add(u, &uni_unwind_cfi);
		break;
	}
	add(u, &uni_unwind_fp);
}

/* One frame up with the first stepper that knows the way. 1: the chain ends. */
static int step(struct walk *w)
{
	const struct uni_unwinder *u = w->u;
	bool had_sp = w->regs.sp_valid, leaf = w->st.exact;
	uint64_t sp = w->regs.sp;
	int rc = -UNI_ENOTSUP;

	for (size_t i = 0; i < uni_array_len(u->stepper) && u->stepper[i].ops != NULL; i++) {
		w->st = (struct uni_step){ .leaf = leaf };
		rc = u->stepper[i].ops->step(u->stepper[i].ctx, w->as, &w->regs, &w->st);
		if (rc != -UNI_ENOTSUP)
			break;
	}
	if (rc == -UNI_ENOTSUP)
		w->st.stop = UNI_STOP_BADPC; /* code that nobody can unwind */
	if (rc != 0)
		return 1;
	if (!had_sp || !w->regs.sp_valid || w->regs.sp > sp)
		return 0;
	/* A leaf may not have touched the stack (a return address in a register). */
	if (w->regs.sp == sp && leaf)
		return 0;
	/* What was interrupted may have been on another stack, but not without end. */
	if (w->st.exact && w->switches++ < SWITCHES_MAX)
		return 0;
	w->st.stop = UNI_STOP_LOOP;
	return 1;
}

static int begin(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs)
{
	struct uni_pt_root root;
	int rc;

	if (uni_gmem_space(uni_as_gmem(as)) == UNI_GMEM_VIRTUAL) {
		uni_as_begin(as, NULL);
		return 0;
	}
	rc = u->arch->paging(regs, &root);
	if (rc == 0)
		uni_as_begin(as, &root);
	return rc;
}

/* Appends a frame of what the walk's registers and last step say. */
static void append(struct walk *w)
{
	struct uni_chain *c = w->ret;

	c->pc[c->nr] = w->u->arch->strip(&w->regs, w->regs.pc);
	c->flags[c->nr] = (uint8_t)((w->st.exact ? UNI_FRAME_EXACT : 0) |
				    (w->st.guess ? UNI_FRAME_GUESS : 0));
	c->nr++;
}

void uni_unwind(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret)
{
	struct walk w = { .u = u, .as = as, .ret = ret, .regs = *regs, .st.exact = true };
	uint16_t max = u->max_frames;

	if (max == 0 || max > UNI_CHAIN_MAX)
		max = UNI_CHAIN_MAX;
	ret->nr = 0;
	ret->stop = UNI_STOP_NOREGS;
	if (!regs->pc_valid)
		return;
	append(&w);
	if (begin(u, as, regs) != 0)
		return;
	while (step(&w) == 0) {
		if (ret->nr == max) {
			w.st.stop = UNI_STOP_LIMIT;
			break;
		}
		append(&w);
	}
	ret->stop = (uint8_t)w.st.stop;
}
