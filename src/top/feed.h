/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampling thread of `top`, and its output: samples through a ring without locks, statistics as
 * a copy. The other side can never keep it waiting. */
#ifndef UNI_TOP_FEED_H
#define UNI_TOP_FEED_H

#include <stddef.h>
#include <string.h>

#include "app/attach.h"
#include "app/standing.h"
#include "sampling/sampler.h"

struct uni_top_args;

/* As of the last fifth of a second or so. */
struct uni_feed_status {
	uint64_t at_ns;		       /* 0: nothing is known yet */
	struct uni_record_stats stats; /* the sum of all guests */
	uint64_t dropped; /* samples that were taken, but the reader was too slow for them */
	bool streams;	  /* some are made in the host's kernel */
	bool inside;	  /* all are made by the guests themselves */
	char held[UNI_STANDING_TEXT]; /* who keeps one of them from running now; "": nobody */
	/* As in uni_live_guests; it grows when vCPUs are plugged in. All 0: not known. */
	uint32_t first_vcpu[UNI_GUEST_MAX + 1];
	/* Once it has ended: */
	bool ended;
	enum uni_sampler_end end;
	size_t nr_failed; /* guests that could not be sampled */
	int rc; /* the sampler's error, if all guests have one; err is the first guest's */
	struct uni_err err;
	/* The vCPUs of all guests, one guest after the other: the number of filled entries. */
	uint32_t nr_vcpus;
	struct uni_feed_vcpu {
		bool timed; /* the target has times; else times is 0 */
		struct uni_vcpu_times times;
	} vcpu[UNI_SESSION_VCPUS_MAX];
};

/* No more of it than is filled. */
static inline void uni_feed_status_copy(
	struct uni_feed_status *to, const struct uni_feed_status *from)
{
	memcpy(to, from,
		offsetof(struct uni_feed_status, vcpu) + from->nr_vcpus * sizeof(from->vcpu[0]));
}

struct uni_feed;

/*
 * Starts to sample g[nr]. They are borrowed, and must not be used for anything else until
 * uni_feed_stop(). Samples carry their number. VM exits are counted if possible and wanted.
 * Blocks SIGCHLD in the calling thread from now on, because a target may wait for it in the other
 * one.
 */
int uni_feed_start(struct uni_guest *const *g, size_t nr, const struct uni_top_args *args,
	struct uni_feed **ret, struct uni_err *err);
/* Ends it, waits for the thread, frees. NULL-safe. */
void uni_feed_stop(struct uni_feed *f);

/* The next sample; its pc and flags are valid until the next call. False: none now. */
bool uni_feed_next(struct uni_feed *f, struct uni_sample *ret);
void uni_feed_status(struct uni_feed *f, struct uni_feed_status *ret);
/* The statistics of one guest, with its times; ret must be initialised. */
void uni_feed_guest_stats(struct uni_feed *f, size_t i, struct uni_record_stats *ret);
/* All guests have ended, and all their samples can be taken out. */
bool uni_feed_ended(const struct uni_feed *f);

/*
 * Before this process stops itself (Ctrl-Z): returns when no guest is held and none will be until
 * uni_feed_go_on(), or after a second.
 */
void uni_feed_hold(struct uni_feed *f);
void uni_feed_go_on(struct uni_feed *f);

#endif
