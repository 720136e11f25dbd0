/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a trace, merged by time over its CPUs. Each thread has its own stack. It keeps the stack
 * when it is switched off a CPU and on again, maybe on another CPU.
 *
 * A return record has the stack pointer, not the function. It ends the newest call, unless the
 * stack pointer shows that an older call returns now. (longjmp, a tail call or a function that does
 * not return has left the newer calls.) Calls in between end with the older one (UNI_CALL_CUT). If
 * events are lost, nobody knows which calls returned: the open calls are cut, too. Calls still open
 * at the end of the trace end there (UNI_CALL_CUT), unless it is live.
 *
 * Memory is bounded whatever the packets hold: see the limits below. Calls and threads above a
 * limit are counted.
 */
#ifndef UNI_TRACE_CALLS_H
#define UNI_TRACE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/only.h"
#include "trace/funcs.h"
#include "trace/input.h"

#define UNI_CALLS_DEPTH_MAX   65535 /* calls of a thread that are open at once */
#define UNI_CALLS_THREADS_MAX 16384

enum uni_call_type {
	UNI_CALL_ENTER,	 /* a call that a LEAVE will end */
	UNI_CALL_LEAVE,	 /* func, duration, self, off; time is its end */
	UNI_CALL_LEAF,	 /* a whole call that made none, begun at this time; its end is not known */
	UNI_CALL_ENTRY,	 /* a call of which only this is known (function mode) */
	UNI_CALL_RETURN, /* of a call whose beginning is not in the trace: func is UNI_FUNC_NONE */
	UNI_CALL_SWITCH, /* thread: goes; next: comes */
	UNI_CALL_LOST,	 /* count events are missing here on this CPU; thread 0 runs from now on */
	UNI_CALL_EXT,	 /* another extended record: cls, nr, words; just before an ENTER or ENTRY
			    its arguments (UNI_TRACE_CLASS_ENTRY_ARGS), before a LEAVE its value
			    (UNI_TRACE_CLASS_EXIT_VALUE): func is told then */
};

enum uni_call_flags {
	UNI_CALL_CUT = 1,   /* LEAVE: not seen to return; the time is when that was noticed */
	UNI_CALL_BEGAN = 2, /* ENTER, LEAVE: the call began before the time window; time and
			       duration are the window's part */
	UNI_CALL_OPEN = 4,  /* with CUT: open at the end of the trace, or of the window */
};

struct uni_call_event {
	uint8_t type, flags;
	uint16_t cpu;
	uint32_t thread;   /* uni_calls_thread() */
	uint32_t func;	   /* of the struct uni_funcs */
	uint32_t depth;	   /* open calls of the thread below it; of LEAVE as its ENTER */
	uint64_t tsc;	   /* CPU 0's counter */
	uint64_t ns;	   /* host CLOCK_MONOTONIC */
	uint64_t duration; /* LEAVE, ns */
	uint64_t self;	   /* LEAVE: of that, neither in traced calls it made nor in `off` */
	union {
		uint32_t caller; /* ENTER, LEAF, ENTRY; UNI_FUNC_NONE: not known */
		uint64_t off; /* LEAVE: the thread was on no CPU, while this call was its newest */
		uint64_t count; /* LOST */
		struct {
			uint32_t next, reason; /* SWITCH */
		};
		struct {
			uint16_t cls, nr; /* EXT: the words are uni_calls_words() */
			uint32_t first;
		};
	};
};

struct uni_call_rule;
struct uni_params;

/* Rules for the calls of single functions (rules.h). */
struct uni_calls_rules {
	struct uni_call_rule *rule;
	size_t nr;
	/* Parameters of a function, given its number and its address here; NULL: not known. */
	const struct uni_params *(*params)(void *ctx, uint32_t func, uint64_t address);
	/* The name of a variable, by the low half of its address; NULL: none is known. */
	const char *(*variable)(void *ctx, uint32_t low);
	void *ctx;
	bool all; /* tell also the events of CPUs and threads that are not chosen (walk_calls.h) */
	/* Set while it is read: calls left out because an argument of a condition is not known. */
	uint64_t unknown;
};

/* Selects events; a zeroed one selects all. */
struct uni_calls_filter {
	/* host time; calls across an end are cut to the part within; to_ns 0: no end */
	uint64_t from_ns, to_ns;
	struct uni_only cpu;
	const uint64_t *thread; /* ids; NULL: all, also events of no known thread */
	size_t nr_thread;
	/* also those between other threads: which thread ran on which CPU, and when */
	bool switches;
	/* glob: calls of these functions, and calls made in them; NULL: all */
	const char *function;
	/* Leave out calls, with those in them. Depths stay, as a shown call's callers are all
	 * shown. The time of a call left out counts as its caller's own. NULL: none. */
	struct uni_calls_rules *rules;
};

struct uni_calls_thread {
	uint64_t id; /* of switch records */
	bool known;  /* false: the thread is not known (yet); id is the CPU then */
};

/* Numbers of records, and of losses and damage. */
struct uni_calls_stats {
	uint64_t events;   /* records: entries, returns, leaves; of all functions */
	uint64_t lost;	   /* events that are missing; also those of other threads */
	uint64_t damaged;  /* bytes that are no packets, or no records */
	uint64_t returns;  /* without a beginning */
	uint64_t cut;	   /* calls not seen to return */
	uint64_t too_deep; /* calls below UNI_CALLS_DEPTH_MAX: not reported */
	uint64_t woven;	   /* returns on another stack than their call: threads are mixed */
	uint64_t mixed; /* calls whose own calls returned on two stacks: of threads, or handlers */
	uint64_t switches; /* of threads, that were reported */
	uint64_t epochs;   /* times that a CPU's counter went back: time then stands still */
	uint64_t begin_ns, end_ns; /* of the trace; complete at its end */
};

#define UNI_CALLS_WOVEN 8 /* returns on other stacks: fewer may have other reasons */

/* Does the trace mix calls of several threads, because the guest does not record which one runs? */
static inline bool uni_calls_are_woven(
	const struct uni_calls_stats *st, const struct uni_trace_input *in)
{
	return st->switches == 0 && st->events != 0 &&
	       (st->woven >= UNI_CALLS_WOVEN ||
		       (in->nr_threads > in->info.nr_cpus && st->returns + st->cut != 0));
}

/* The same, or handlers of interrupts have a stack of their own? */
static inline bool uni_calls_may_be_woven(const struct uni_calls_stats *st)
{
	return st->switches == 0 && st->mixed >= UNI_CALLS_WOVEN;
}

struct uni_calls; /* opaque */

/* Both must outlive it; filter NULL: all. funcs gets the functions added that come up. */
int uni_calls_open(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_calls **ret, struct uni_err *err);
void uni_calls_close(struct uni_calls *c); /* NULL-safe */

/* The next events, valid until the next call: *nr_ret of them, at least 1. Returns 1 if there are
 * events, or -UNI_ENOMEM. Returns 0 at the end of the present data: see uni_calls_more(). */
int uni_calls_read(struct uni_calls *c, const struct uni_call_event **ret, size_t *nr_ret);
/* For live traces: *in now has the data that follows (earlier data is gone), or `live` is now
 * false. Reads may go on. */
void uni_calls_more(struct uni_calls *c);

/*
 * For a trace that grows while it is read: *in has more data at the same place, after the old data.
 * Names of threads may have changed. From now on reads go up to `until`, CPU 0's counter.
 * -UNI_EAGAIN: the new data is older than data that was read.
 */
int uni_calls_grown(struct uni_calls *c, uint64_t until);
/*
 * For such a trace: how the open calls would end if the trace ended here. Later reads go on as if
 * they had not ended. The caller frees *ret. -UNI_ENOTSUP: the tracer is being stopped, and not all
 * CPUs have noticed yet.
 */
int uni_calls_ends(const struct uni_calls *c, struct uni_call_event **ret, size_t *nr_ret);

struct uni_calls_thread uni_calls_thread(const struct uni_calls *c, uint32_t thread);
uint32_t uni_calls_nr_threads(const struct uni_calls *c);
/* "NAME" and number of a thread, as in text formats; the name is "tid" if it has none. */
const char *uni_calls_thread_name(struct uni_calls *c, uint32_t thread, uint64_t *number_ret);
const uint64_t *uni_calls_words(const struct uni_calls *c, const struct uni_call_event *e);
const struct uni_calls_stats *uni_calls_stats(const struct uni_calls *c);

#endif
