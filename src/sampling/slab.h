/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwinding after the guest runs again. While it is held only registers and the memory that the
 * chain will need are copied: what the last chains needed in one request, and the piece of stack
 * above the stack pointer that they took. Where that was not enough the vCPU has to be looked at
 * again, and its chain be followed while it is held.
 */
#ifndef UNI_SAMPLING_SLAB_H
#define UNI_SAMPLING_SLAB_H

#include "backend/target.h"
#include "unwind/unwind.h"

struct uni_slab;

/*
 * Borrows t and u. *ret is NULL where it is of no use: the target cannot copy many pieces at once,
 * or the image has no unwind rows (without these each step looks at code, which is not at hand).
 * All memory it will need is allocated here.
 */
int uni_slab_create(struct uni_target *t, const struct uni_unwinder *u, uint32_t nr_vcpus,
	const struct uni_as_budget *budget, struct uni_slab **ret, struct uni_err *err);
void uni_slab_destroy(struct uni_slab *s); /* NULL-safe */

/* With the vCPU held. */
void uni_slab_take(struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs);

/*
 * With the vCPU running again; regs as at uni_slab_take(). False: memory was needed that is not in
 * the slab. ret then holds what could be had, and the next slab is larger.
 */
bool uni_slab_unwind(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *ret);
/* The same of what it made: uni_unwind_unskid(). */
void uni_slab_unskid(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *c);

#endif
