/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a loop that pauses its guest, for pauser.c and deliver.c. */
#ifndef UNI_SAMPLING_PAUSER_H
#define UNI_SAMPLING_PAUSER_H

#include "base/hurry.h"
#include "sampling/ran.h"
#include "sampling/ways.h"
#include "sampling/schedule.h"
#include "sampling/shares.h"
#include "sampling/slab.h"
#include "recording/stats.h"
#include "sampling/threads.h"
#include "sampling/watch.h"

/* Data of one tick, taken while the guest was held; delivered when it runs again. */
struct uni_capture {
	uint64_t unknown;	   /* vCPUs without registers this time */
	struct uni_vcpuset have;   /* chain[n] holds vCPU n */
	struct uni_vcpuset waited; /* vCPUs that have not run since they were held last */
	/* For each vCPU: */
	uint64_t *t_ns, *pause_ns;
	struct uni_regs *regs;
	struct uni_chain *chain;
	/* thread[n] is what vCPU n runs, when not all are looked at */
	struct uni_vcpuset have_thread;
	struct uni_guest_thread *thread;
};

/* thread[n] is the thread on vCPU n, unless all threads are captured */
struct uni_pauser {
	struct uni_target *t;
	const struct uni_sampler_cfg *cfg;
	unsigned caps;
	uint32_t nr_vcpus;
	struct uni_vcpuset all;
	struct uni_as *as;
	struct uni_ran *ran;	   /* NULL: not known */
	struct uni_shares *shares; /* NULL: not known */
	struct uni_slab *slab;	   /* NULL: chains are followed while the guest is held */
	struct uni_watcher *watcher;
	struct uni_threads *threads; /* NULL: of vCPUs only */
	struct uni_thread_ids *ids;  /* NULL: threads are not known */
	struct uni_capture *cap;
	struct uni_sched sched;
	struct uni_hist pause;
	struct uni_record_stats stats;
	uint64_t end_at_ns; /* UINT64_MAX: none */
	uint64_t next_progress_ns, next_watch_ns;
	uint64_t own_cpu_begin_ns;
	struct uni_hurry hurry;
	uint64_t errors; /* failed ticks in a row that were no -UNI_EAGAIN */
	int error;	 /* the last of them */
	int resume;	 /* 0, or the error of the failed resume */
	/* The vCPUs' places as one number, if no interrupt could wake any since then; or 0. */
	uint64_t halted_key, halted_since_ns, halted_cpu_ns;
	enum uni_sampler_end end;
};

/* Notes since when no interrupt could wake any vCPU. A thread that we let go on runs for a moment,
 * until it has halted again at the same place: its state becomes HALTED. */
void uni_pauser_note_halted(struct uni_pauser *s);

/* With the guest running again: adds the tick to the statistics and passes its samples on. */
void uni_pauser_deliver(struct uni_pauser *s);

#endif
