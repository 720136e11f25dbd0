/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwinding after the guest runs again. While it is held, only registers and the memory that the
 * chain will need are copied. One request gets the memory that the last chains needed, and as much
 * stack above the stack pointer as they used. If that was not enough, the chain stays short: a
 * second look would be at another moment, and would take samples away from deep stacks. The next
 * chains are followed while the guest is held, until enough of them have fitted.
 */
#ifndef UNI_SAMPLING_SLAB_H
#define UNI_SAMPLING_SLAB_H

#include "backend/target.h"
#include "unwind/unwind.h"

struct uni_slab;

/*
 * Borrows t and u. *ret is NULL if the target cannot copy many pieces at once, or the image has no
 * unwind rows. (Without rows each step looks at code, which is not copied.) Allocates all memory
 * that it will need. live: also the first chains are followed while the guest is held.
 */
int uni_slab_create(struct uni_target *t, const struct uni_unwinder *u, uint32_t nr_vcpus,
	const struct uni_as_budget *budget, bool live, struct uni_slab **ret, struct uni_err *err);
void uni_slab_destroy(struct uni_slab *s); /* NULL-safe */

/* With the vCPU held. ret: for uni_slab_unwind(). */
void uni_slab_take(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *ret);

/*
 * With the vCPU running again; regs and ret as at uni_slab_take(). False: memory was needed that is
 * not in the slab. ret then holds what could be had, and the next chain is followed while the vCPU
 * is held.
 */
bool uni_slab_unwind(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *ret);
/* The same for its own chain: uni_unwind_stopped(). */
void uni_slab_unskid(
	struct uni_slab *s, uint32_t vcpu, const struct uni_regs *regs, struct uni_chain *c);

#endif
