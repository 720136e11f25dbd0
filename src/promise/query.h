/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about a model: why, how late, and what is wrong. */
#ifndef UNI_PROMISE_QUERY_H
#define UNI_PROMISE_QUERY_H

#include "promise/model.h"

struct uni_promise_list_opts {
	const char *like; /* only those whose label or type matches this glob; NULL: any */
	bool open_only;
	bool all;   /* also what `nameless` and `alike` count; as with `like` */
	size_t max; /* rows; 0: all */
};

struct uni_promise_rows {
	UNI_VEC(uint32_t) all;
	size_t more;	 /* that opts->max left out */
	size_t nameless; /* without a name, and nobody waits for them: left out */
	/* Waits that have ended, but for the longest of each name and fate: a loop that sleeps
	 * makes one each time. */
	size_t alike;
};

/* First open promises that should not be, then other open ones, then by life. Returns 0 or
 * -UNI_ENOMEM. */
int uni_promise_list(const struct uni_promise_model *m, const struct uni_promise_list_opts *opts,
	struct uni_promise_rows *ret);

enum uni_step_kind {
	UNI_STEP_RESOLVED, /* who was resolved at `time`, by `by` */
	UNI_STEP_FAILED,
	UNI_STEP_BECAME, /* who became by */
	UNI_STEP_WAITED, /* who waited for by, from `begin` to `time`; `ready`: since when for a CPU
			  */
	UNI_STEP_WAITS,	 /* who waits for by since `begin`, and nothing came */
	UNI_STEP_READY,	 /* who waits for by since begin; its value came at `ready`; never ran */
	UNI_STEP_CREATED,    /* who was created by `by` at time */
	UNI_STEP_APPEARS,    /* who was there before the trace began */
	UNI_STEP_RAN,	     /* who, open, ran last until `time` and waits for nothing known */
	UNI_STEP_NEVER_RAN,  /* who, open, was created at time and never ran */
	UNI_STEP_UNRESOLVED, /* who, open, was created at time; nobody has resolved it */
	UNI_STEP_SUSPECT,    /* by may be who should have resolved who: it missed a wake-up */
	UNI_STEP_SIGNALLED,  /* who was signalled at time by `by`, to who waited for it */
	UNI_STEP_LONELY,     /* who was signalled at time by `by`, and nobody waited for it */
	UNI_STEP_HELD,	     /* who, a lock, is held by `by` since time */
	UNI_STEP_FREE,	     /* who, a lock, was given back at time by `by` */
	UNI_STEP_CIRCLE,     /* who is further up already: each waits for the other */
	UNI_STEP_CUT,	     /* there is more, no room for it */
	UNI_STEP_NR
};

struct uni_promise_step {
	uint64_t begin, ready, time;
	uint32_t who, by;
	uint8_t kind;
};

#define UNI_PROMISE_STEPS 48 /* that are returned */

/* The causes of the end of promise `who`, or of its being stuck: the newest first, each step
 * follows from the one after it. Returns the number of steps, at most cap. */
size_t uni_promise_why(const struct uni_promise_model *m, uint32_t who,
	struct uni_promise_step *steps, size_t cap);

enum uni_finding_kind {
	UNI_FINDING_LOST_WAKEUP, /* other was signalled too early for who */
	UNI_FINDING_UNRESOLVED,	 /* who should resolve and never did */
	UNI_FINDING_CIRCLE,	 /* who waits for itself, through other */
	UNI_FINDING_STARVED,	 /* who was ready, and other had the CPU */
	UNI_FINDING_ABANDONED,	 /* who waits for other, a lock that `by` had when it ended */
};

struct uni_finding {
	uint64_t time;	 /* when it went wrong */
	uint64_t ns;	 /* STARVED: how long; else since when until the end of the trace */
	uint64_t silent; /* STARVED: of that, nothing was heard of other */
	/* STARVED: minimum time of other's turn for which the host ran the guest */
	uint64_t on_cpu;
	uint32_t who, other, by;
	uint8_t kind;
};

struct uni_findings {
	UNI_VEC(struct uni_finding) all;
	UNI_VEC(struct uni_finding)
	doubts; /* STARVED: it may have been the host's doing;
		 * LOST_WAKEUP: it may have nothing to do.
		 * CIRCLE: `by`, and ABANDONED: `who`, may have given up its wait for a lock */
};

#define UNI_PROMISE_BUSY_NS 100000000 /* the default */

/*
 * A lost wake-up needs a victim: the waiter must end, or is waited for, or may have to resolve a
 * promise that must end. Unless it must end itself, one more condition holds. Either the same
 * promise had never woken it before it created the promise that must end, or it has resolved such
 * promises before. Otherwise it may be a worker without work, which is in doubt.
 *
 * A promise starved if it was ready for at least `busy_ns` while one other promise had its CPU for
 * that long. A guest does not know when the host runs something else in its place. So there has to
 * be evidence that the other promise ran. This is its events, the CPU time that the host gave the
 * guest, or that most of its turns are that long. Otherwise it is in doubt. Returns 0 or
 * -UNI_ENOMEM.
 */
int uni_promise_findings(
	const struct uni_promise_model *m, uint64_t busy_ns, struct uni_findings *ret);
void uni_findings_deinit(struct uni_findings *f);

/* Did any promise exist before the trace began whose waits then are not known? A promise that hangs
 * since then makes no event. */
bool uni_promise_begin_unknown(const struct uni_promise_model *m);
/* Tells what is not in a trace, a line each. If any is, finding nothing does not prove that all is
 * well. Returns how many lines there are. */
#define UNI_PROMISE_UNKNOWNS 4
#define UNI_PROMISE_UNKNOWN  96
size_t uni_promise_unknown(
	const struct uni_promise_model *m, char ret[UNI_PROMISE_UNKNOWNS][UNI_PROMISE_UNKNOWN]);
/* Does the guest's table, or its list of threads, name any that was open at the begin? */
bool uni_promise_is_any_told(const struct uni_promise_model *m);
/* The promise that an open promise needs next: from its only open wait, or the one that it
 * became. */
uint32_t uni_promise_needs(const struct uni_promise_model *m, uint32_t who);

/* A lock, and what its waiters lost by it. */
struct uni_lock_row {
	uint64_t waited, longest_wait, held, longest_hold; /* ns; what goes on lasts to the end */
	uint32_t lock, nr_waits, nr_holds;
	size_t first, nr; /* its part of `blames`, longest first */
};

struct uni_lock_blame {
	uint64_t ns; /* in which `waiter` waited for the lock and `owner` had it */
	uint32_t lock, waiter, owner;
};

struct uni_locks {
	UNI_VEC(struct uni_lock_row) rows; /* by `waited`, then by `held` */
	UNI_VEC(struct uni_lock_blame) blames;
};

/* All locks that were held or waited for. Returns 0 or -UNI_ENOMEM; to be deinitialized anyway. */
int uni_promise_locks(const struct uni_promise_model *m, struct uni_locks *ret);
void uni_locks_deinit(struct uni_locks *l);
/* The one that has the lock at the end; UNI_PROMISE_NONE: nobody, or it is no lock. */
uint32_t uni_promise_owner(const struct uni_promise_model *m, uint32_t lock);

/* The ended waits with the longest time from ready to running, longest first; returns how many. */
size_t uni_promise_wakeups(
	const struct uni_promise_model *m, const struct uni_promise_wait **ret, size_t cap);

/* The promises that ended after the longest chains of waits; among equal ones, those that took
 * longest. */
size_t uni_promise_longest(const struct uni_promise_model *m, uint32_t *ret, size_t cap);

#endif
