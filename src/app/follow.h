/* SPDX-License-Identifier: BSD-2-Clause */
/* --follow: a guest that is recorded by its name, over the VMMs that have it one after the other.
 */
#ifndef UNI_APP_FOLLOW_H
#define UNI_APP_FOLLOW_H

#include "app/attach.h"
#include "app/standing.h"
#include "recording/recording.h"

/* It is there, but cannot be recorded: that is said once, after a while. */
struct uni_hindrance {
	uint64_t since_ns;
	bool said;
};

/* rc and err: of a try to attach that failed. */
void uni_hindrance_tell(
	struct uni_hindrance *h, const char *name, int rc, const struct uni_err *err);

struct uni_follow {
	struct uni_attach_args how; /* target: the name */
	uint64_t until_ns;	    /* uni_now_ns(); UINT64_MAX: until Ctrl-C */
	bool quiet;
	bool in_kernel;		      /* only the host's kernel can sample it as asked */
	struct uni_guest *now;	      /* owned; NULL: still the first one, which is the caller's */
	struct uni_record_meta *meta; /* borrowed: gets the gaps */
	uint64_t looked_ns;	      /* for another VMM, last */
	int left_pid; /* of a VMM that is still there, but has it no more; 0: none */
};

/* Its VMM has paused it: does another one have it now? At most one look a second. */
bool uni_follow_has_moved(struct uni_follow *f, const struct uni_standing *s);
/* `before` is gone since gone_ns: waits for a guest with the same name and image at the same place,
 * and puts it into f->now. False, with a message: none came in time. */
bool uni_follow_again(struct uni_follow *f, const struct uni_guest *before, uint64_t gone_ns);
/* The statistics of the part that began last. */
void uni_follow_count(struct uni_follow *f, const struct uni_record_stats *st);
void uni_follow_deinit(struct uni_follow *f);

/* Its VMM has restored snapshots since the last call: what was sampled does not go on from there.
 * Adds such gaps, with a message; `name` is "" if it is the only guest. */
void uni_follow_restores(
	const struct uni_guest *g, const char *name, bool quiet, struct uni_record_meta *meta);

#endif
