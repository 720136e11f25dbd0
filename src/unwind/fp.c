/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

/*
 * Is the frame pointer only likely to be a frame pointer here? The register can hold anything in a
 * function that does not begin by setting it up. So it can in code without rows, if the rest of its
 * image has rows. If the user asked for frame pointers only, they are used.
 */
static bool is_fp_doubtful(const struct uni_unwinder *u, uint64_t pc)
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

/*
 * A chain is complete only with evidence: a frame pointer of 0 may be any number. A return address
 * of 0 is the end, unless an unlikely frame pointer points at it.
 */
static enum uni_stop judge_end(const struct uni_unwinder *u, struct uni_as *as,
	const struct uni_regs *regs, const struct uni_step *st)
{
	uint64_t pc = st->leaf ? regs->pc : regs->pc - 1, fp = regs->r[u->arch->fp_reg], word;
	const struct uni_func_hint *f = uni_hints_find(u->hints, pc);

	if (st->stop == UNI_STOP_BADPTR && fp == 0 &&
		uni_hints_is_end(u->hints, st->guessed ? 0 : st->callee, pc))
		return UNI_STOP_ROOT;
	if (st->stop != UNI_STOP_ROOT || (f != NULL && (f->flags & UNI_FUNC_ENTRY) != 0) ||
		!is_fp_doubtful(u, pc) || fp > UINT64_MAX - 8)
		return st->stop;
	if (uni_as_read_u64(as, uni_gva_of(fp + 8), &word) == 0 && word == 0)
		return UNI_STOP_BADPTR;
	return st->stop;
}

static int step_fp(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	const struct uni_unwinder *u = ctx;
	struct uni_regs caller = *regs;
	uint64_t target;
	int rc = u->arch->fp_step(as, u->hints, st->leaf, &caller, &st->stop);

	if (rc != 0) {
		st->stop = judge_end(u, as, regs, st);
		return rc;
	}
	if (is_fp_doubtful(u, st->leaf ? regs->pc : regs->pc - 1) &&
		!uni_unwind_after_call(u, as, caller.pc, &target))
		return -UNI_ENOTSUP;
	*regs = caller;
	return 0;
}

const struct uni_unwinder_ops uni_unwind_fp = { .name = "fp", .step = step_fp };
