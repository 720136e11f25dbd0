/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

/*
 * Is the frame pointer only likely to be one here? In functions that do not begin by setting it up,
 * and in code without rows of an image that has some, it can hold anything. Who asked for nothing
 * but frame pointers gets them.
 */
static bool doubtful(const struct uni_unwinder *u, uint64_t pc)
{
	const struct uni_unwind_hints *h = uni_hints_of(u->hints, pc);
	const struct uni_func_hint *f;

	if (h == NULL || u->stepper[1].ops == NULL)
		return false;
	f = uni_hints_find(u->hints, pc);
	if (f != NULL && (f->flags & UNI_FUNC_FRAMELESS) == 0)
		return false;
	return f != NULL || h->cfi != NULL;
}

static int step(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	const struct uni_unwinder *u = ctx;
	struct uni_regs caller = *regs;
	uint64_t target;
	int rc = u->arch->fp_step(as, u->hints, st->leaf, &caller, &st->stop);

	if (rc != 0)
		return rc;
	if (doubtful(u, st->leaf ? regs->pc : regs->pc - 1) &&
		!uni_unwind_after_call(u, as, caller.pc, &target))
		return -UNI_ENOTSUP;
	*regs = caller;
	return 0;
}

const struct uni_unwinder_ops uni_unwind_fp = { .name = "fp", .step = step };
