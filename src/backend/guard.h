/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pause guard: the only way in which the session layer stops a guest. It measures the pause
 * and ends it on each path: `_cleanup_pause_ struct uni_pause p; ... uni_pause_begin(&p, ...)`.
 */
#ifndef UNI_BACKEND_GUARD_H
#define UNI_BACKEND_GUARD_H

#include "backend/target.h"

struct uni_pause {
	struct uni_target *t; /* NULL: nothing is held */
	uint64_t begin_ns;    /* just before the target was asked to stop, or its stop_ns */
	uint64_t end_ns;      /* just after it was told to go on */
	uint64_t tried_ns;    /* the longest of the stops before it that came to nothing */
};

/* Stops and reads registers; on failure nothing is held. */
int uni_pause_begin(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret);
/*
 * The same, for who needs the guest to stand but not just now: while one vCPU waits for a CPU of
 * the host the others do not stand for it. It is tried again and again, for two seconds; then
 * they do. Also where a vCPU cannot be read for the moment.
 */
int uni_pause_begin_brief(struct uni_pause *p, struct uni_target *t, const struct uni_vcpuset *set,
	struct uni_regs *regs_ret);
/* Idempotent. Returns release()'s result. */
int uni_pause_end(struct uni_pause *p);
void uni_pause_cleanup(struct uni_pause *p);

#define _cleanup_pause_ __attribute__((cleanup(uni_pause_cleanup)))

#endif
