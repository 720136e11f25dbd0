/* SPDX-License-Identifier: BSD-2-Clause */
/* From registers to a call chain. Pure reading through a uni_as; no allocation; bounded. */
#ifndef UNI_UNWIND_UNWIND_H
#define UNI_UNWIND_UNWIND_H

#include "arch/arch.h"
#include "arch/frame.h"
#include "arch/skid.h"
#include "base/err.h"

#define UNI_CHAIN_MAX 512 /* frames of one chain */

struct uni_chain {
	uint16_t nr;
	uint8_t stop;	 /* enum uni_stop */
	uint64_t top_sp; /* stack pointer of the last frame: the stack up to there was needed */
	uint64_t pc[UNI_CHAIN_MAX]; /* leaf first; pc[0] is the interrupted pc, others return
				       addresses */
	uint64_t sp[UNI_CHAIN_MAX]; /* stack pointer in each frame; 0: not known */
	uint8_t flags[UNI_CHAIN_MAX];
};

/* One step from a frame to its caller. */
struct uni_step {
	bool leaf;	    /* in: pc is an interrupted one, no return address */
	bool guessed;	    /* in: so was this frame, or one before it */
	uint64_t callee;    /* in: an address of the function that this frame called; 0: none */
	bool exact;	    /* out: so is the caller's, which was interrupted */
	bool guess;	    /* out: the caller was guessed */
	enum uni_stop stop; /* out, when the chain ends here */
};

/*
 * A way to go from a frame to its caller. step() returns 0 and rewrites regs, 1 when the chain
 * ends here (stop says why), or -UNI_ENOTSUP when it knows nothing of this pc and the next one may
 * try; regs are then, both times, as they were.
 */
struct uni_unwinder_ops {
	const char *name;
	int (*step)(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st);
	/*
	 * Optional: appends as many frames as it surely knows, for which step() would do the same,
	 * up to max in all; regs are then those of the last. st->exact in and out: regs->pc is an
	 * interrupted pc.
	 */
	void (*run)(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st,
		struct uni_chain *c, uint16_t max);
	bool guesses; /* a last resort: also tried where another one found that the chain is broken
		       */
};

struct uni_unwinder {
	const struct uni_arch *arch;
	const struct uni_unwind_hints *hints; /* may be NULL */
	const struct uni_skid *skid; /* vCPUs stop at blocks' starts; NULL: anywhere. Borrowed */
	uint64_t skid_bias;
	uint16_t max_frames; /* 0: UNI_CHAIN_MAX */
	struct {
		const struct uni_unwinder_ops *ops;
		void *ctx;
	} stepper[4]; /* tried in order; ops NULL ends the list */
};

/* ctx of each: the struct uni_unwinder itself. */
extern const struct uni_unwinder_ops uni_unwind_cfi;  /* the image's unwind rows */
extern const struct uni_unwinder_ops uni_unwind_fp;   /* frame pointers */
extern const struct uni_unwinder_ops uni_unwind_scan; /* looks for return addresses; guesses */

/*
 * Unwind rows where the image has them, else frame pointers, else a scan. The unwinder may be moved
 * or copied only before this call: a stepper's ctx points at it.
 */
void uni_unwinder_init(
	struct uni_unwinder *u, const struct uni_arch *arch, const struct uni_unwind_hints *hints);

/*
 * Only these steppers, by name, in this order: "cfi,fp,scan". -UNI_EUSAGE for other words; the
 * unwinder is then as it was.
 */
int uni_unwinder_use(struct uni_unwinder *u, const char *names, struct uni_err *err);

/*
 * Is this a return address, in the image's code and behind a call? Of a function's start, or
 * through a register or memory; target_ret is 0 then.
 */
bool uni_unwind_after_call(
	const struct uni_unwinder *u, struct uni_as *as, uint64_t ret_addr, uint64_t *target_ret);

/*
 * Unwinds one vCPU: sets the space's root from regs (uni_as_begin), then steps. Always fills ret,
 * with at least pc[0] if the pc is known; never fails: trouble is a stop reason.
 */
void uni_unwind(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret);

/*
 * The same in two parts, so that memory can be fetched in between and the guest be let go before
 * the second: the space's root from regs (0, or as arch->paging()), and the steps.
 */
int uni_unwind_begin(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs);
void uni_unwind_go(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret);

/*
 * Of a vCPU that runs and was stopped just now, by registers of that moment: the chain as it was in
 * the block before, where u->skid says that this is certain; else it is marked. Reads one word.
 */
void uni_unwind_unskid(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *c);

#endif
