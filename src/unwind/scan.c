/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last resort: searches up the stack for a word that can be a return address, because it points
 * behind a call. Such a word may be left over from an earlier call. So the result is a guess, and
 * marked as such.
 */
#include "base/checked.h"
#include "base/cursor.h"
#include "unwind/unwind.h"

#define SCAN_WORDS 512 /* 4 KiB above the stack pointer */
#define CHUNK	   64  /* words read at once */

bool uni_unwind_after_call(
	const struct uni_unwinder *u, struct uni_as *as, uint64_t ret_addr, uint64_t *target_ret)
{
	const struct uni_unwind_hints *h = u->hints;
	const struct uni_func_hint *callee;
	uint8_t before[UNI_CALL_BYTES];

	if (h == NULL || u->arch->after_call == NULL || ret_addr < sizeof(before) ||
		uni_hints_of(h, ret_addr - 1) == NULL)
		return false;
	if (uni_as_read(as, uni_gva_of(ret_addr - sizeof(before)), before, sizeof(before)) != 0 ||
		!u->arch->after_call(before, ret_addr, target_ret))
		return false;
	if (*target_ret == 0)
		return true;
	/* Stubs of the hypervisor are called at any place in their page. */
	if (uni_hints_in_stubs(h, *target_ret))
		return true;
	callee = uni_hints_find(h, *target_ret);
	return callee == NULL ? uni_hints_of(h, *target_ret) != NULL : callee->start == *target_ret;
}

/* The place of a return address; slot 0: none was found. */
struct found {
	uint64_t slot, pc;
};

/*
 * The lowest word behind a call of the function that starts at `callee` (0: not known), else the
 * lowest one behind any call.
 */
static struct found search_stack(
	const struct uni_unwinder *u, struct uni_as *as, uint64_t sp, uint64_t callee)
{
	uint8_t chunk[CHUNK * 8];
	struct found any = { 0 };
	unsigned have = 0; /* words that were read: fewer at the end of what is mapped */

	for (unsigned i = 0; i < SCAN_WORDS; i++) {
		uint64_t slot = sp + i * 8, pc, target;

		if (i % CHUNK == 0)
			have = (unsigned)(uni_as_read_some(
						  as, uni_gva_of(slot), chunk, sizeof(chunk)) /
					  8);
		if (i % CHUNK >= have)
			break;
		pc = uni_le64(chunk + i % CHUNK * 8);
		if (!uni_unwind_after_call(u, as, pc, &target))
			continue;
		if (target == callee && callee != 0)
			return (struct found){ slot, pc };
		if (any.slot == 0)
			any = (struct found){ slot, pc };
	}
	return any;
}

static int step_scan(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	const struct uni_unwinder *u = ctx;
	const struct uni_func_hint *f;
	struct found found;

	if (u->hints == NULL || !regs->sp_valid || (regs->sp & 7) != 0 ||
		regs->sp > UINT64_MAX - SCAN_WORDS * 8)
		return -UNI_ENOTSUP;
	f = uni_hints_find(u->hints, st->leaf ? regs->pc : regs->pc - 1);
	if (f != NULL && ((f->flags & UNI_FUNC_ENTRY) != 0 ||
				 (!st->leaf && (f->flags & UNI_FUNC_CLEARS_FP) != 0))) {
		st->stop = UNI_STOP_ROOT;
		return 1;
	}
	found = search_stack(u, as, regs->sp, f != NULL ? f->start : 0);
	if (found.slot == 0)
		return -UNI_ENOTSUP;
	/* The frame pointer may still be the caller's; nothing else is known. */
	regs->valid &= 1ull << u->arch->fp_reg;
	regs->pc = found.pc;
	regs->sp = found.slot + 8;
	uni_regs_set(regs, u->arch->pc_reg, regs->pc);
	uni_regs_set(regs, u->arch->sp_reg, regs->sp);
	st->guess = true;
	return 0;
}

const struct uni_unwinder_ops uni_unwind_scan = {
	.name = "scan", .step = step_scan, .guesses = true
};
