/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

static int step(
	void *ctx, struct uni_as *as, bool leaf, struct uni_regs *regs, enum uni_stop *stop_ret)
{
	const struct uni_unwinder *u = ctx;

	return u->arch->fp_step(as, u->hints, leaf, regs, stop_ret);
}

const struct uni_unwinder_ops uni_unwind_fp = { .name = "fp", .step = step };
