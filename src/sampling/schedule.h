/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times of samples. Time is cut into slots [start + k/F, start + (k+1)/F). With jitter each
 * slot has one deadline, uniformly distributed in it. So the schedule never drifts, and deadlines
 * never change order. Periodic activity of the guest, even exactly F times a second, is sampled by
 * its share of time. Jitter of less than a slot would not do that.
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
	double longest_ns; /* pauses of one tick; recent ones count most */
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
 * Records that the guest was paused. Pauses add up to at most max_duty of the time since the start.
 * A pause begins only if the longest recent one would stay within that, or a tenth of the share is
 * left. A pause that still exceeds it is paid back: the next sample waits until its share of time
 * has passed. The unused share of the last half second is credit. Thus one long pause, which a busy
 * host causes, does not silence a profile that hardly pauses the guest.
 */
void uni_sched_paused(struct uni_sched *s, uint64_t begin_ns, uint64_t end_ns);
/* Goes to the next possible slot. Skips deadlines that are half a period late (no bursts after a
 * delay) and those that the duty limit forbids, and counts both. */
void uni_sched_advance(struct uni_sched *s, uint64_t now_ns);
/* The run ends at until_ns, before the deadline of slot s->k was served: skips slots that are
 * over. */
void uni_sched_end(struct uni_sched *s, uint64_t until_ns);
/* Numbers of skipped deadlines up to until_ns, for a run that ends then. */
void uni_sched_sum(const struct uni_sched *s, uint64_t until_ns, uint64_t *skipped_ret,
	uint64_t *throttled_ret);

/*
 * Interval for fetching the samples that the host's kernel took: 200 ms. If that would be more than
 * 2000 samples, it is shorter, down to 20 ms, because the kernel's buffer is bounded. A stream that
 * must be read after turn_samples of a vCPU (0: need not) makes it shorter still, down to 10 ms.
 */
uint64_t uni_sched_drain_ns(double frequency, uint32_t nr_vcpus, uint32_t turn_samples);

#endif
