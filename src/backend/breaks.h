/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Breakpoints of a target, to count calls: the guest stops before an instruction, is looked at, and
 * goes on over it. The backend removes them whatever happens to us.
 */
#ifndef UNI_BACKEND_BREAKS_H
#define UNI_BACKEND_BREAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/regs.h"
#include "base/err.h"

#define UNI_BREAKS_MAX 4 /* as many as x86 has debug registers for */

struct uni_target;

/*
 * A vCPU is about to execute the instruction at breakpoint `which`. The guest is stopped: no
 * allocation, no printing. Guest memory may be read.
 */
typedef void (*uni_break_fn)(void *ctx, unsigned which, uint32_t vcpu, const struct uni_regs *regs);

struct uni_break_stop {
	uint64_t stop_ns;  /* when we learnt of the stop, uni_now_ns() */
	uint64_t pause_ns; /* from then until the guest ran again */
	uint64_t there_ns; /* when they were last seen to be there; stays, if they were not */
	bool removed;	   /* -UNI_EGONE: it ended after the breakpoints had been removed */
};

struct uni_break_ops {
	/*
	 * Inserts a breakpoint at each address that is not 0; its number is the index. All or
	 * none. None may be there.
	 */
	int (*set)(struct uni_target *t, const uint64_t addr[UNI_BREAKS_MAX], struct uni_err *err);
	/*
	 * Waits until vCPUs run into breakpoints, calls fn for each, steps them over, and lets the
	 * guest run. The other vCPUs stand meanwhile. Returns 1 after that; 0 if nothing came until
	 * then; -UNI_EGONE; or -UNI_EAGAIN: the breakpoints are gone, and may be set again. That
	 * happens if we gave no sign of life, or lost the connection for a while.
	 */
	int (*wait)(struct uni_target *t, uint64_t until_ns, uni_break_fn fn, void *ctx,
		struct uni_break_stop *ret);
	/* Removes breakpoint `which`. Idempotent. */
	int (*clear)(struct uni_target *t, unsigned which);
};

#endif
