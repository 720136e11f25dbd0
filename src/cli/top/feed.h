/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampling thread of `top`, and what comes out of it: samples through a ring without locks,
 * statistics as a copy. Nothing that the other side does, or fails to do, keeps it waiting.
 */
#ifndef UNI_CLI_TOP_FEED_H
#define UNI_CLI_TOP_FEED_H

#include "cli/attach.h"
#include "session/sampler.h"

/* As of the last fifth of a second or so. */
struct uni_feed_status {
	uint64_t at_ns; /* 0: nothing is known yet */
	struct uni_record_stats stats;
	uint64_t dropped; /* samples that were taken, but the reader was too slow for them */
	/* Once it has ended: */
	bool ended;
	enum uni_sampler_end end;
	int rc; /* of the sampler; err says why */
	struct uni_err err;
};

struct uni_feed;

/*
 * Starts to sample g, which is borrowed and must not be used for anything else until
 * uni_feed_stop(). The caller has blocked SIGCHLD or not: it is blocked from now on in the calling
 * thread, because a target may wait for it in the other one.
 */
int uni_feed_start(
	struct uni_guest *g, double frequency, struct uni_feed **ret, struct uni_err *err);
/* Ends it, waits for the thread, frees. NULL-safe. */
void uni_feed_stop(struct uni_feed *f);

/* The next sample; its pc and flags are valid until the next call. False: none now. */
bool uni_feed_next(struct uni_feed *f, struct uni_sample *ret);
void uni_feed_status(struct uni_feed *f, struct uni_feed_status *ret);

/*
 * Before this process stops itself (Ctrl-Z): returns when no guest is held and none will be until
 * uni_feed_go_on(), or after a second.
 */
void uni_feed_hold(struct uni_feed *f);
void uni_feed_go_on(struct uni_feed *f);

#endif
