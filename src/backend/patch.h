/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replaces bytes of a running guest: instructions that a tracer's tables name, and the words that
 * control the tracer. Nothing else of a guest is ever written. Every place must have the old bytes
 * that are expected, or already the new ones (except with `any`); otherwise nothing is written.
 * A place is within one page, or within two that follow each other. One copy writes it, which no
 * signal can interrupt halfway. So a killed process leaves old bytes or new ones, never a mixture.
 */
#ifndef UNI_BACKEND_PATCH_H
#define UNI_BACKEND_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/target.h"

#define UNI_PATCH_BYTES 8 /* at most, for one place */

struct uni_patch {
	uint64_t va;  /* in the guest */
	uint64_t gpa; /* the address that va maps to; for a target with virtual memory: va */
	uint8_t len;
	bool pieces; /* the old or the new bytes are several instructions: no vCPU may be among them
		      */
	bool any;    /* a word that the guest changes as well: its old value does not matter */
	uint8_t old_bytes[UNI_PATCH_BYTES], new_bytes[UNI_PATCH_BYTES];
};

struct uni_patch_job {
	const struct uni_patch *patch; /* by rising gpa, not overlapping */
	size_t nr;
	/* Filled in by the call: */
	size_t bad;	   /* for -UNI_EMISMATCH and -UNI_EFAULT: the number of the place */
	uint64_t pause_ns; /* longest time that the guest was stopped; there may be several stops */
	uint64_t nr_written; /* places that were written, without `any`; the others had the new
				bytes */
};

/*
 * Returns 0, or an error; then nothing is changed (as far as a dying guest tells).
 * -UNI_EMISMATCH: a place has other bytes.
 * -UNI_EFAULT: a place cannot be read or written.
 * -UNI_EAGAIN: not now. A vCPU could not be stopped, or is within a place.
 * -UNI_EGONE: the guest has ended.
 * -UNI_ENOTSUP: the target cannot do this, or not now. If it holds only some vCPUs of the guest
 * (t->nr_left_off), the others would run through code that changes.
 */
int uni_patch_run(struct uni_target *t, struct uni_patch_job *job);
/* False: it would return -UNI_ENOTSUP, as far as is known now. */
bool uni_patch_allowed(struct uni_target *t);

/* --- for backends ------------------------------------------------------------------------------
 */

/* Bytes that are read, changed and written together, in at most two pages. */
struct uni_patch_extent {
	uint64_t gpa;
	size_t first, nr; /* indices into job->patch */
	size_t len;
	size_t at; /* offset in the buffer */
};

struct uni_patch_plan {
	struct uni_patch_job *job;
	struct uni_patch_extent *extent;
	size_t nr;
	size_t size;   /* bytes in all extents */
	uint8_t *was;  /* as read */
	uint8_t *want; /* as they will be */
	bool pieces;   /* some patch has `pieces` */
};

/* Allocates everything that is needed while the guest is stopped. max: bytes of an extent. */
int uni_patch_plan(struct uni_patch_job *job, size_t max, struct uni_patch_plan *ret);
void uni_patch_plan_deinit(struct uni_patch_plan *p);
/* Makes `want` from `was`, which was read before. 0 or -UNI_EMISMATCH. No allocation. */
int uni_patch_apply(struct uni_patch_plan *p);
/* The bytes of patch k's place in `was`. */
const uint8_t *uni_patch_was(const struct uni_patch_plan *p, size_t k);
/* Is this vCPU within a place, behind its first instruction? */
bool uni_patch_hit(const struct uni_patch_plan *p, const struct uni_regs *regs);

#endif
