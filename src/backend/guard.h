/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pause guard: the session layer stops a guest only through it. It measures the pause, and ends
 * it on each path: `_cleanup_pause_ struct uni_pause p; ... uni_pause_begin(&p, ...)`.
 */
#ifndef UNI_BACKEND_GUARD_H
#define UNI_BACKEND_GUARD_H

#include "backend/target.h"

struct uni_pause {
	struct uni_target *t; /* NULL: nothing is held */
	uint64_t begin_ns;    /* just before the target was told to stop, or its stop_ns */
	uint64_t end_ns;      /* just after it was told to go on */
	uint64_t tried_ns;    /* the longest failed attempt before it */
};

/* Stops the guest and reads registers; on failure nothing is held. */
int uni_pause_begin(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret);
/*
 * The same for a caller that can wait. If one vCPU waits for a CPU of the host, the others are not
 * held for that time. The stop is tried again and again for two seconds; after that, the others are
 * held. The same is done if a vCPU cannot be read for the moment.
 */
int uni_pause_begin_brief(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret);
/* Idempotent. Returns release()'s result. */
int uni_pause_end(struct uni_pause *p);
void uni_pause_cleanup(struct uni_pause *p);

#define _cleanup_pause_ __attribute__((cleanup(uni_pause_cleanup)))

#endif
