/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of `top`, without a terminal. Samples go in. Each refresh computes a table of
 * functions, and the calls below (or above) the selected one. It also computes the activity of each
 * vCPU, and the quality of the sampling.
 */
#ifndef UNI_TOP_MODEL_H
#define UNI_TOP_MODEL_H

#include "top/feed.h"
#include "profile/live.h"
#include "profile/outline.h"

#define UNI_TOP_NAME_MAX 256

/* Shares of wall time, 0 to 1; negative: not known. */
struct uni_top_vcpu {
	double guest, kvm, vmm, idle, stolen;
	double unsampled; /* on a CPU, but no sample tells in which of the first three */
	double exits;	  /* a second; negative: not counted */
	bool split;	  /* guest and kvm are separate */
	bool sampled;	  /* estimated from the states of samples in the window */
};

/* The quality of the sampling. Numbers are of the time between the last two refreshes, unless
 * stated otherwise. */
struct uni_top_quality {
	uint64_t samples; /* in the window */
	double rate;	  /* samples a second, all vCPUs */
	double complete;  /* share of the window's chains that reached their root */
	uint64_t lost,
		dropped; /* since the start: by the sampling; by a screen that was too slow */
	uint64_t failed; /* since the start: no registers */
	double skipped;	 /* share of the deadlines since the start */
	bool paused;	 /* the guest is stopped for samples */
	double duty;	 /* share of the time since the start that it was */
	uint64_t p50_ns, p99_ns, max_ns;
	double host_ns;	 /* CPU time of the host a sample, since the start; negative: not known */
	double guest_ns; /* the same of the guest, where that makes them itself */
	double host_cpu; /* CPUs of the host that this program uses */
};

struct uni_top_setup {
	struct uni_live_guests guests; /* its pointers are borrowed */
	size_t memory_bytes;
	uint64_t start_ns;
};

struct uni_top {
	struct uni_top_setup setup; /* guests.first_vcpu is that below */
	uint32_t first_vcpu[UNI_GUEST_MAX + 1];
	struct uni_history *history;
	uint64_t start_ns; /* of the view "since start" */

	/* Settings; changes take effect at the next uni_top_refresh() or _rearrange(). */
	uint64_t window_ns; /* 0: since the start */
	enum uni_live_sort sort;
	char filter[UNI_TOP_NAME_MAX];
	int64_t guest, vcpu; /* only this one; -1: all */
	bool idle, callers;
	struct uni_naming naming;
	uint64_t frozen_ns; /* nothing later is shown; 0: not frozen */

	/* The displayed data. */
	struct uni_profile *profile; /* NULL before the first refresh */
	struct uni_live_sums sums;
	struct uni_func_row *rows;
	size_t nr_rows;
	bool held;	      /* the selection stays with its function, else with the first row */
	size_t selected;      /* row, SIZE_MAX: not among them */
	uint64_t selected_at; /* address */
	char selected_name[UNI_TOP_NAME_MAX];
	struct uni_profile *focus; /* the selected function's calls; NULL: none */
	struct uni_outline outline;
	uint64_t shown_ns, from_ns; /* the window */
	struct uni_top_quality quality;
	struct uni_top_vcpu vcpus[UNI_SESSION_VCPUS_MAX]; /* of all guests */

	struct uni_feed_status last; /* at the last refresh */
	bool ended;
};

int uni_top_init(struct uni_top *top, const struct uni_top_setup *setup);
void uni_top_deinit(struct uni_top *top); /* also of a zeroed one */

/* One more sample. Those for which there is no memory count as dropped. */
void uni_top_add(struct uni_top *top, const struct uni_sample *s);
/* Everything anew, as of now. 0 or -UNI_ENOMEM; then the old view stays. */
int uni_top_refresh(struct uni_top *top, uint64_t now_ns, const struct uni_feed_status *status);
/* The same time, other settings. */
int uni_top_again(struct uni_top *top);
/* Forgets everything that was sampled. */
void uni_top_clear(struct uni_top *top, uint64_t now_ns);

/* Selects a row and stays with its function; SIZE_MAX: the first row, whatever it is. */
int uni_top_select(struct uni_top *top, size_t row);
/* Selects the function of a frame of the profile, or of the name (exact), also if filtered away. */
int uni_top_select_frame(struct uni_top *top, uint32_t frame);
int uni_top_select_name(struct uni_top *top, const char *name);

/* A node of the profile; UNI_NODE_NONE: it has no samples now. */
uint32_t uni_top_selected_frame(const struct uni_top *top);
/* The chains that are shown, with their weights; fn's non-zero result ends it. Or -UNI_ENOMEM. */
int uni_top_each(
	const struct uni_top *top, int (*fn)(void *ctx, const struct uni_sample *s), void *ctx);

/* Number of vCPUs of all guests. */
uint32_t uni_top_nr_vcpus(const struct uni_top *top);

struct uni_top_place {
	uint32_t guest, vcpu;
};

/* The guest of vCPU number i of all. */
struct uni_top_place uni_top_place(const struct uni_top *top, uint32_t i);
/* Cleaned, never NULL. */
const char *uni_top_row_name(const struct uni_top *top, size_t row);
/* In percent of the profile's total. */
double uni_top_percent(const struct uni_top *top, double value);

#endif
