/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_UNWIND_LOST_H
#define UNI_UNWIND_LOST_H

#include "unwind/unwind.h"

/* A step by rows, with the registers at hand; as struct uni_unwinder_ops.step(). */
typedef int uni_unwind_rows(const struct uni_unwinder *u, struct uni_as *as, struct uni_regs *regs,
	struct uni_step *st);

/*
 * A step that rows could not do, as they count from a register that is not known. Finds the frame
 * by its return address. As step(), and -UNI_ENOTSUP if no return address is sure.
 */
int uni_unwind_lost(const struct uni_unwinder *u, struct uni_as *as, struct uni_regs *regs,
	struct uni_step *st, uni_unwind_rows *rows);

#endif
