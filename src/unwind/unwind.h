/* SPDX-License-Identifier: BSD-2-Clause */
/* From registers to a call chain. Only reads, through a uni_as; no allocation; bounded. */
#ifndef UNI_UNWIND_UNWIND_H
#define UNI_UNWIND_UNWIND_H

#include "arch/arch.h"
#include "arch/frame.h"
#include "arch/skid.h"
#include "base/err.h"

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
	bool leaf;	    /* in: pc is an interrupted pc, not a return address */
	bool guessed;	    /* in: this frame was guessed, or a frame before it */
	uint64_t callee;    /* in: an address of the function that this frame called; 0: none */
	bool exact;	    /* out: the caller's pc is an interrupted pc, too */
	bool guess;	    /* out: the caller was guessed */
	bool elsewhere;	    /* out: the caller may be on another stack, also if it is not found */
	enum uni_stop stop; /* out, when the chain ends here */
};

/*
 * A way to go from a frame to its caller. step() returns 0 and rewrites regs, or 1 when the chain
 * ends here (st->stop says why). It returns -UNI_ENOTSUP when it knows nothing of this pc; then the
 * next unwinder may try. If it does not return 0, regs are unchanged.
 */
struct uni_unwinder_ops {
	const char *name;
	int (*step)(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st);
	/*
	 * Optional: appends up to max frames for which step() would surely do the same. Afterwards
	 * regs are those of the last frame. st->exact, in and out: regs->pc is an interrupted pc.
	 */
	void (*run)(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st,
		struct uni_chain *c, uint16_t max);
	bool knows;   /* where its caller is no code, the way to the root is lost */
	bool guesses; /* a last resort: also tried when another stepper found that the chain is
			 broken */
};

struct uni_skid_code { /* that u->skid was read from */
	uint64_t start, size;
};

struct uni_unwinder {
	const struct uni_arch *arch;
	const struct uni_unwind_hints *hints; /* may be NULL */
	const struct uni_skid *skid; /* vCPUs stop at blocks' starts; NULL: anywhere. Borrowed */
	uint64_t skid_bias;
	const struct uni_skid_code *skid_code; /* sorted, at the guest's addresses; borrowed */
	size_t nr_skid_code;
	uint16_t max_frames; /* then the chain ends; 0: no such limit */
	struct {
		const struct uni_unwinder_ops *ops;
		void *ctx;
	} stepper[4]; /* tried in order; ops NULL ends the list */
};

/* ctx of each of these is the struct uni_unwinder itself. */
extern const struct uni_unwinder_ops uni_unwind_cfi;  /* the image's unwind rows */
extern const struct uni_unwinder_ops uni_unwind_fp;   /* frame pointers */
extern const struct uni_unwinder_ops uni_unwind_scan; /* looks for return addresses; guesses */

/*
 * Uses unwind rows if the image has them, else frame pointers, else a scan. The unwinder may be
 * moved or copied only before this call: a stepper's ctx points at it.
 */
void uni_unwinder_init(
	struct uni_unwinder *u, const struct uni_arch *arch, const struct uni_unwind_hints *hints);

/*
 * Uses only these steppers, by name, in this order: "cfi,fp,scan". Other words: -UNI_EUSAGE, and
 * the unwinder is unchanged.
 */
int uni_unwinder_use(struct uni_unwinder *u, const char *names, struct uni_err *err);

/*
 * Is this a return address, that is, an address in the image's code and behind a call? *target_ret
 * is the start of the called function, or 0 if the call went through a register or memory.
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
 * uni_unwind() in two parts. The caller can fetch memory in between, and let the guest go before
 * the second part. begin sets the space's root from regs: 0, or as arch->paging(). go does the
 * steps.
 */
int uni_unwind_begin(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs);
void uni_unwind_go(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *ret);

/* The function whose first byte is at pc, as QEMU's TCG stops there; NULL: none. */
const struct uni_skid_entry *uni_unwind_skid_entry(const struct uni_unwinder *u, uint64_t pc);

/*
 * For a vCPU that ran and was stopped just now, with registers of that moment. Makes the chain what
 * it was in the block before, if u->skid says that this is certain; else marks it. Reads one word.
 */
void uni_unwind_unskid(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *c);
/* The same. A stop in code that u->skid was not read from is marked: it may begin a function. */
void uni_unwind_stopped(const struct uni_unwinder *u, struct uni_as *as,
	const struct uni_regs *regs, struct uni_chain *c);

#endif
