/* SPDX-License-Identifier: BSD-2-Clause */
/* From registers to a call chain. Pure reading through a uni_as; no allocation; bounded. */
#ifndef UNI_UNWIND_UNWIND_H
#define UNI_UNWIND_UNWIND_H

#include "arch/arch.h"
#include "arch/frame.h"

#define UNI_CHAIN_MAX 512 /* frames of one chain */

struct uni_chain {
	uint16_t nr;
	uint8_t stop;		    /* enum uni_stop */
	uint64_t pc[UNI_CHAIN_MAX]; /* leaf first; pc[0] is the interrupted pc, others return
				       addresses */
	uint8_t flags[UNI_CHAIN_MAX];
};

/*
 * A way to go from a frame to its caller. step() returns 0 and rewrites regs, 1 when the chain
 * ends here (*stop_ret), or -UNI_ENOTSUP when it knows nothing of this pc and the next one may try.
 */
struct uni_unwinder_ops {
	const char *name;
	int (*step)(void *ctx, struct uni_as *as, bool leaf, struct uni_regs *regs,
		enum uni_stop *stop_ret);
};

struct uni_unwinder {
	const struct uni_arch *arch;
	const struct uni_unwind_hints *hints; /* may be NULL */
	uint16_t max_frames;		      /* 0: UNI_CHAIN_MAX */
	struct {
		const struct uni_unwinder_ops *ops;
		void *ctx;
	} stepper[4]; /* tried in order; ops NULL ends the list */
};

extern const struct uni_unwinder_ops uni_unwind_fp; /* ctx: the struct uni_unwinder itself */

/*
 * Frame pointers only, for a start. The unwinder may be moved or copied only before this call:
 * a stepper's ctx points at it.
 */
void uni_unwinder_init(
	struct uni_unwinder *u, const struct uni_arch *arch, const struct uni_unwind_hints *hints);

/*
 * Unwinds one vCPU: sets the space's root from regs (uni_as_begin), then steps. Always fills ret,
 * with at least pc[0] if the pc is known; never fails: trouble is a stop reason.
 */
void uni_unwind(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret);

#endif
