/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts calls of a few functions of a guest that has no tracer, by breakpoints of its target. Each
 * call stops the whole guest. So a function that is called too often is given up.
 */
#ifndef UNI_APP_COUNTING_H
#define UNI_APP_COUNTING_H

#include "app/attach.h"
#include "backend/breaks.h"
#include "base/vec.h"

#define UNI_COUNT_CALLERS 64

struct uni_count_caller {
	uint64_t pc; /* behind the call; 0: not found */
	bool guess;
	uint64_t calls;
};

/* Times are of the guest, ns since the begin: our stops, and gaps, do not count. */
struct uni_count_function {
	const char *name; /* borrowed: as given */
	uint64_t addr;	  /* in the guest */
	uint64_t calls, first_ns, last_ns;
	bool in_a_row; /* nothing can have been missed since the last call */
	struct uni_count_caller caller[UNI_COUNT_CALLERS];
	size_t nr_callers;
	uint64_t other_callers; /* calls by those for which there is no room */
	UNI_VEC(uint64_t) interval;
	uint64_t longest_ns, shortest_ns, sum_ns, nr_intervals;
	uint64_t until_ns;  /* counted until then */
	bool refused;	    /* called too often */
	double rate, share; /* measured, for one that is refused: calls a second, of the time */
};

struct uni_count {
	struct uni_count_function f[UNI_BREAKS_MAX];
	size_t nr;
	uint64_t ran_ns;	    /* time of the guest */
	uint64_t stops, stopped_ns; /* for calls */
	uint64_t longest_ns;	    /* stop */
	uint64_t gaps, gap_ns;	    /* no breakpoints were there */
	bool ended;		    /* the guest */
};

/* Looks at each call, in place of its caller. */
struct uni_count_watcher {
	/* The guest stands: no allocation, no printing. as is that of the registers. */
	void (*look)(void *ctx, struct uni_as *as, const struct uni_regs *regs);
	/* After each stop, when the guest runs; at_ns is of the guest. 0 or -UNI_ENOMEM. */
	int (*tell)(void *ctx, uint64_t at_ns);
	void *ctx;
};

struct uni_count_args {
	const char *const *function;
	size_t nr;
	double duration;			 /* s; 0: until a signal */
	double max_pause;			 /* share of the time; 1: no limit */
	const struct uni_count_watcher *watcher; /* borrowed; NULL: callers are wanted */
};

/* Finds the functions in the image of the guest. */
int uni_count_find(const struct uni_guest *g, const struct uni_count_args *args,
	struct uni_count *ret, struct uni_err *err);
/* Counts. The breakpoints are gone afterwards. */
int uni_count_run(struct uni_guest *g, const struct uni_count_args *args, struct uni_count *c,
	struct uni_err *err);
void uni_count_deinit(struct uni_count *c);

/* The middle one of the intervals; there must be one. Sorts them. */
uint64_t uni_count_median(struct uni_count_function *f);
/* By calls, most first. */
void uni_count_sort_callers(struct uni_count_function *f);

/*
 * A target that has breakpoints, for a guest that was named: itself, or another way to the same
 * guest. *ret is the caller's to free().
 */
int uni_count_target(const char *target, char **ret, struct uni_err *err);

#endif
