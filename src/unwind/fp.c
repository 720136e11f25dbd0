/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/unwind.h"

static int step(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	const struct uni_unwinder *u = ctx;

	return u->arch->fp_step(as, u->hints, st->leaf, regs, &st->stop);
}

const struct uni_unwinder_ops uni_unwind_fp = { .name = "fp", .step = step };
