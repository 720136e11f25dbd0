/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The times of samples. Time is cut into slots [start + k/F, start + (k+1)/F). With jitter each
 * slot has one deadline, uniformly distributed in it. So the schedule never drifts. Periodic
 * activity of the guest, even exactly F times a second, is sampled by its share of time. Jitter of
 * less than a slot would not do that. Two deadlines are never closer than half a period.
 *
 * After a delay the schedule is behind, and its slots are still served. It catches up slowly: at
 * first a delay of 10 ms makes periods 10 % shorter. Otherwise, what a guest does after each delay
 * would get too many samples. Two samples are never closer than half a period.
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
	bool skip_late;	      /* after uni_sched_init(): a slot that is late is not served */
	uint64_t k;	      /* slot of the deadline to serve next */
	uint64_t lag_ns;      /* by that the schedule is behind */
	uint64_t gap_ns;      /* half a period after the last sample */
	uint64_t paid_ns;     /* the guest has had its share of the time for all pauses by then */
	uint64_t nap_late_ns; /* even the best of the last naps ended that late */
	double tick_ns;	      /* of pauses since the last advance */
	double sum_ns;	      /* of all pauses before */
	double longest_ns;    /* pauses of one tick; recent ones count most */
	double mean_ns, nr_ticks; /* pauses of a tick: a slow mean, which makes the pace */
	/* Late counts slots whose time a delay changed. Skipped and throttled also count deadlines
	 * that are still to come: see uni_sched_sum. */
	uint64_t late, skipped, throttled;
	uint64_t last_throttled; /* by the last advance */
	/*
	 * Slots that the next sample stands for: its own, and those just before it that the duty
	 * limit skipped. Long pauses are of one kind of work, which would get too few samples
	 * otherwise. Slots behind a sample would make it too heavy: its own pause decides how many
	 * they are. By chance, a busy host makes one pause long. That must not make one sample half
	 * of a profile: the weight is at most four times the mean of the last.
	 */
	uint64_t weight;
	double mean_weight, carry;
};

void uni_sched_init(struct uni_sched *s, uint64_t start_ns, double frequency, double max_duty,
	bool jitter, uint64_t seed);
/* When slot s->k is to be served. */
uint64_t uni_sched_deadline(const struct uni_sched *s);
/* It is being served at now_ns: notes whether that is late. */
void uni_sched_served(struct uni_sched *s, uint64_t now_ns);
/* Its sample is of this moment. */
void uni_sched_sampled(struct uni_sched *s, uint64_t t_ns);
/*
 * Records that the guest was paused. Pauses add up to at most max_duty of the time since the start.
 * A pause begins only if the longest recent one would stay within that, or a tenth of the share is
 * left. A pause that still exceeds it is paid back: the next sample waits until its share of time
 * has passed. The unused share of the last half second is credit. Thus one long pause, which a busy
 * host causes, does not silence a profile that hardly pauses the guest.
 *
 * This alone would sample work with long pauses less often than other. So most deadlines are left
 * out at a steady pace before it comes to that, by the mean of the last pauses.
 */
void uni_sched_paused(struct uni_sched *s, uint64_t begin_ns, uint64_t end_ns);
/* Goes to the next possible slot. Skips slots that the duty limit forbids, and those that are more
 * than a second late (with skip_late, half a period), and counts both. */
void uni_sched_advance(struct uni_sched *s, uint64_t now_ns);
/* A nap until until_ns ended at now_ns, which is when this thread got a CPU of the host. */
void uni_sched_napped(struct uni_sched *s, uint64_t until_ns, uint64_t now_ns);
/*
 * Would a nap of left_ns make the next sample more than half a period late? Under Xen, dom0 may
 * wait long for a CPU whenever it has slept. Now and then a nap is tried again.
 */
bool uni_sched_avoids_nap(struct uni_sched *s, uint64_t left_ns);
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
