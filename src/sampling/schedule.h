/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to sample. Time is cut into slots [start + k/F, start + (k+1)/F); with jitter each slot has
 * one deadline, anywhere in it with equal chance. So the schedule never drifts, deadlines never
 * change order, and whatever the guest does periodically, even exactly F times a second, each
 * part of it is sampled by its share of time. Less jitter than the whole slot would not do that.
 */
#ifndef UNI_SAMPLING_SCHEDULE_H
#define UNI_SAMPLING_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct uni_sched {
	uint64_t start_ns, seed;
	double period_ns;
	double max_duty;
	bool jitter;
	uint64_t k;	   /* slot of the deadline to serve next */
	uint64_t paid_ns;  /* the guest has had its share of the time for all pauses by then */
	double tick_ns;	   /* of pauses since the last advance */
	double sum_ns;	   /* of all pauses before */
	double longest_ns; /* pauses of one tick, the recent ones counting most */
	/* Skipped and throttled also count deadlines that are still to come: see uni_sched_sum. */
	uint64_t late, skipped, throttled;
	uint64_t last_throttled; /* by the last advance */
};

void uni_sched_init(struct uni_sched *s, uint64_t start_ns, double frequency, double max_duty,
	bool jitter, uint64_t seed);
/* The deadline of slot s->k. */
uint64_t uni_sched_deadline(const struct uni_sched *s);
/* It is being served at now_ns: notes whether that is late. */
void uni_sched_served(struct uni_sched *s, uint64_t now_ns);
/*
 * The guest was paused. Pauses add up to at most max_duty of the time since the start, and one
 * begins only if the longest of late would keep to that, or a tenth of the share is left. One that
 * takes longer still may exceed it, and is paid back: nothing is sampled until its share of the
 * time has gone by. What was not used of the last half second is credit: one long pause, which is
 * a busy host's doing, must not silence a profile that hardly pauses the guest at all.
 */
void uni_sched_paused(struct uni_sched *s, uint64_t begin_ns, uint64_t end_ns);
/*
 * To the next slot that can be served: passes over deadlines that are half a period gone (no
 * bursts after a delay) and those that the duty cap forbids, and counts both.
 */
void uni_sched_advance(struct uni_sched *s, uint64_t now_ns);
/* The run ends at until_ns, before the deadline of slot s->k was served: what is gone is skipped.
 */
void uni_sched_end(struct uni_sched *s, uint64_t until_ns);
/* How many deadlines up to until_ns were passed over: what a run that ends then has skipped. */
void uni_sched_sum(const struct uni_sched *s, uint64_t until_ns, uint64_t *skipped_ret,
	uint64_t *throttled_ret);

/*
 * How often to fetch the samples that the host's kernel took of a guest: 200 ms apart, and closer,
 * down to 20 ms, where that would be more than 2000, for what is kept in the kernel is bounded.
 */
uint64_t uni_sched_drain_ns(double frequency, uint32_t nr_vcpus);

#endif
