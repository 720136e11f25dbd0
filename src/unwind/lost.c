/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A frame whose rows count from a register that is not known: as of a thread that sleeps. The
 * frame's return address is the lowest word behind a call of this very function. A word left over
 * from an earlier call may be so, too, but then the frames above it do not fit together.
 */
#include "unwind/lost.h"

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/cursor.h"

#define LOST_WORDS 512 /* 4 KiB above the stack pointer */
#define LOST_CHUNK 64  /* words read at once */
#define FRAMES_FIT 8   /* above a return address */

struct lost {
	const struct uni_unwinder *u;
	struct uni_as *as;
	const struct uni_regs *regs;
	const struct uni_step *in;
	const struct uni_cfi_rule *rule;
	const struct uni_func_hint *func;
	uni_unwind_rows *rows;
};

/* A step by rows, if the function's return address is at slot. */
static int step_from(const struct lost *l, uint64_t slot, struct uni_regs *ret, struct uni_step *st)
{
	uint64_t cfa = slot - (uint64_t)(int64_t)l->rule->ra.arg;

	*ret = *l->regs;
	uni_regs_set(ret, l->rule->cfa.reg, cfa - (uint64_t)(int64_t)l->rule->cfa.arg);
	return l->rows(l->u, l->as, ret, st);
}

/* Is a caller behind a call of this function, or by a pointer? */
static bool is_behind_call(const struct lost *l, uint64_t pc, const struct uni_func_hint *callee)
{
	uint64_t target;

	return uni_unwind_after_call(l->u, l->as, pc, &target) &&
	       (target == 0 || (callee != NULL && target == callee->start));
}

/*
 * Do the frames above a return address fit together, up to one that rows do not know, or that may
 * be on another stack? The one right above it must be known, or be the root.
 */
static bool do_frames_fit(const struct lost *l, struct uni_regs regs)
{
	for (unsigned i = 0; i < FRAMES_FIT; i++) {
		const struct uni_func_hint *f = uni_hints_find(l->u->hints, regs.pc - 1);
		struct uni_step st = { .leaf = false };
		uint64_t sp = regs.sp;
		int rc = l->rows(l->u, l->as, &regs, &st);

		if (rc == 1)
			return st.stop == UNI_STOP_ROOT;
		if (rc != 0 || st.exact || st.guess)
			return i != 0;
		/* Another call of the function, above it: which of them is the newest? */
		if (f == l->func)
			return false;
		if (regs.sp <= sp)
			return i != 0 && st.elsewhere;
		if (!is_behind_call(l, regs.pc, f))
			return false;
	}
	return true;
}

/* Do rows lead from this slot to a caller, and do the frames above it fit? */
static bool is_sure(const struct lost *l, uint64_t slot, uint64_t pc)
{
	struct uni_step st = *l->in;
	struct uni_regs regs;

	return step_from(l, slot, &regs, &st) == 0 && regs.pc == pc && do_frames_fit(l, regs);
}

/* The place of the return address; 0: none is sure. */
static uint64_t find_return(const struct lost *l)
{
	uint8_t chunk[LOST_CHUNK * 8];
	size_t have = 0; /* words that were read: fewer at the end of what is mapped */

	for (unsigned i = 0; i < LOST_WORDS; i++) {
		uint64_t slot = l->regs->sp + i * 8, pc, target;

		if (i % LOST_CHUNK == 0)
			have = uni_as_read_some(l->as, uni_gva_of(slot), chunk, sizeof(chunk)) / 8;
		if (i % LOST_CHUNK >= have)
			return 0;
		pc = uni_le64(chunk + i % LOST_CHUNK * 8);
		if (uni_unwind_after_call(l->u, l->as, pc, &target) && target == l->func->start)
			return is_sure(l, slot, pc) ? slot : 0;
	}
	return 0;
}

static const struct uni_cfi_rule *rule_of(const struct uni_unwinder *u, uint64_t pc)
{
	const struct uni_cfi_rule *ret = NULL;

	for (const struct uni_unwind_hints *h = u->hints; h != NULL && ret == NULL; h = h->next)
		ret = h->cfi != NULL ? uni_cfi_recall(h->cfi, pc) : NULL;
	return ret;
}

int uni_unwind_lost(const struct uni_unwinder *u, struct uni_as *as, struct uni_regs *regs,
	struct uni_step *st, uni_unwind_rows *rows)
{
	uint64_t pc = st->leaf ? regs->pc : regs->pc - 1, slot, ignored;
	struct lost l = {
		.u = u, .as = as, .regs = regs, .in = st, .rows = rows, .rule = rule_of(u, pc)
	};
	struct uni_regs caller;

	if (l.rule == NULL || l.rule->cfa.how != UNI_CFI_REG || l.rule->ra.how != UNI_CFI_AT_CFA ||
		uni_regs_get(regs, l.rule->cfa.reg, &ignored) || !regs->sp_valid ||
		(regs->sp & 7) != 0 || regs->sp > UINT64_MAX - LOST_WORDS * 8)
		return -UNI_ENOTSUP;
	l.func = uni_hints_find(u->hints, pc);
	slot = l.func != NULL ? find_return(&l) : 0;
	if (slot == 0 || step_from(&l, slot, &caller, st) != 0)
		return -UNI_ENOTSUP;
	*regs = caller;
	return 0;
}
