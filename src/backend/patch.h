/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replacing bytes of a running guest: instructions that a tracer's tables name, and the words by
 * which it is controlled. Nothing else of a guest is ever written.
 *
 * Every place must hold what is expected there (or already what it is to hold; but for `any`), else
 * nothing is written. A place lies within one or two pages that follow each other, and is written
 * by one copy that no signal can cut in two: whoever is killed leaves old bytes or new ones, never
 * half.
 */
#ifndef UNI_BACKEND_PATCH_H
#define UNI_BACKEND_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/target.h"

#define UNI_PATCH_BYTES 8 /* of one place, at most */

struct uni_patch {
	uint64_t va;  /* in the guest */
	uint64_t gpa; /* where that is mapped; of a target whose memory is virtual: va */
	uint8_t len;
	bool pieces; /* one of the two is several instructions: no vCPU may be among them */
	bool any;    /* a word that the guest changes as well: what it holds does not matter */
	uint8_t old_bytes[UNI_PATCH_BYTES], new_bytes[UNI_PATCH_BYTES];
};

struct uni_patch_job {
	const struct uni_patch *patch; /* by rising gpa, apart */
	size_t nr;
	/* Filled in: */
	size_t bad;	     /* of -UNI_EMISMATCH and -UNI_EFAULT: which one */
	uint64_t pause_ns;   /* the guest stood so long at a time; maybe several times */
	uint64_t nr_written; /* places, but for `any`; the others held the new bytes */
};

/*
 * 0; -UNI_EMISMATCH: a place holds something else; -UNI_EFAULT: it cannot be read or written;
 * -UNI_EAGAIN: not now (a vCPU could not be stopped, or stands within a place); -UNI_EGONE;
 * -UNI_ENOTSUP: the target cannot, or not now, for it holds only some vCPUs of the guest
 * (t->nr_left_off): the others would run through code that changes. Unless 0, nothing is changed
 * (as far as a dying guest tells).
 */
int uni_patch_run(struct uni_target *t, struct uni_patch_job *job);
/* False: it would be -UNI_ENOTSUP, as far as is known now. */
bool uni_patch_allowed(struct uni_target *t);

/* --- for backends ------------------------------------------------------------------------------
 */

/* Bytes that are read, changed and written in one go: of at most two pages. */
struct uni_patch_extent {
	uint64_t gpa;
	size_t first, nr; /* of job->patch */
	size_t len;
	size_t at; /* in the buffer */
};

struct uni_patch_plan {
	struct uni_patch_job *job;
	struct uni_patch_extent *extent;
	size_t nr;
	size_t size;   /* bytes of all extents */
	uint8_t *was;  /* as read */
	uint8_t *want; /* to be written */
	bool pieces;   /* any patch has them */
};

/* Everything that is needed while the guest stands. max: bytes of an extent. */
int uni_patch_plan(struct uni_patch_job *job, size_t max, struct uni_patch_plan *ret);
void uni_patch_plan_deinit(struct uni_patch_plan *p);
/* After `was` was read: makes `want`. 0 or -UNI_EMISMATCH. No allocation. */
int uni_patch_apply(struct uni_patch_plan *p);
/* What patch k's place held when `was` was read. */
const uint8_t *uni_patch_was(const struct uni_patch_plan *p, size_t k);
/* Does this vCPU stand within a place, behind its first instruction? */
bool uni_patch_hit(const struct uni_patch_plan *p, const struct uni_regs *regs);

#endif
