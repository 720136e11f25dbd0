/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

#include <string.h>

#include "base/checked.h"

void uni_unwinder_init(
	struct uni_unwinder *u, const struct uni_arch *arch, const struct uni_unwind_hints *hints)
{
	memset(u, 0, sizeof(*u));
	u->arch = arch;
	u->hints = hints;
	u->stepper[0].ops = &uni_unwind_fp;
	u->stepper[0].ctx = u;
}

/* One frame up with the first stepper that knows the way. 1: the chain ends. */
static int step(const struct uni_unwinder *u, struct uni_as *as, bool leaf, struct uni_regs *regs,
	enum uni_stop *stop_ret)
{
	bool had_sp = regs->sp_valid;
	uint64_t sp = regs->sp;
	int rc = -UNI_ENOTSUP;

	for (size_t i = 0; i < uni_array_len(u->stepper) && u->stepper[i].ops != NULL; i++) {
		rc = u->stepper[i].ops->step(u->stepper[i].ctx, as, leaf, regs, stop_ret);
		if (rc != -UNI_ENOTSUP)
			break;
	}
	if (rc == -UNI_ENOTSUP)
		*stop_ret = UNI_STOP_BADPC; /* code that nobody can unwind */
	if (rc != 0)
		return 1;
	/* A leaf may not have touched the stack (a return address in a register). */
	if (had_sp && regs->sp_valid && (regs->sp < sp || (regs->sp == sp && !leaf))) {
		*stop_ret = UNI_STOP_LOOP;
		return 1;
	}
	return 0;
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

void uni_unwind(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret)
{
	uint16_t max = u->max_frames;
	struct uni_regs cur = *regs;
	enum uni_stop stop = UNI_STOP_NOREGS;

	if (max == 0 || max > UNI_CHAIN_MAX)
		max = UNI_CHAIN_MAX;
	ret->nr = 0;
	ret->stop = UNI_STOP_NOREGS;
	if (!cur.pc_valid)
		return;
	ret->pc[0] = u->arch->strip(&cur, cur.pc);
	ret->flags[0] = UNI_FRAME_EXACT;
	ret->nr = 1;
	if (begin(u, as, regs) != 0)
		return;
	while (step(u, as, ret->nr == 1, &cur, &stop) == 0) {
		if (ret->nr == max) {
			stop = UNI_STOP_LIMIT;
			break;
		}
		ret->pc[ret->nr] = u->arch->strip(&cur, cur.pc);
		ret->flags[ret->nr] = 0;
		ret->nr++;
	}
	ret->stop = (uint8_t)stop;
}
