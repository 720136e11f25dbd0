/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lives, runs and waits of promises, made from events in the order of time. The events may
 * begin at any moment (a ring has lost its beginning) and may have gaps. An event proves only that
 * it happened: ids that were never created appear when they are first named.
 *
 * One CPU runs one promise at a time. A wait begins when a promise wants a value that is not there.
 * It ends when the promise runs again or has ended itself. The value may arrive in between: from
 * then on the promise waits for the scheduler. A promise that has ended may still run, and want
 * values. Such a wait also ends when it runs again; if it does not, when the value arrives; else as
 * soon as it began.
 *
 * A promise that has become another one is the same as that one. Later events with its id mean the
 * other one, as in MirageOS' Lwt, which goes on with the id of the first.
 */
#ifndef UNI_PROMISE_MODEL_H
#define UNI_PROMISE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "promise/event.h"

#define UNI_PROMISE_NONE   UINT32_MAX /* an index */
#define UNI_PROMISE_OPEN   UINT64_MAX /* a time: not in this trace */
#define UNI_PROMISE_CPUS   256
#define UNI_PROMISE_SILENT 2000000 /* ns: a host that runs somebody else does it for longer */
#define UNI_PROMISE_WAITS  1024	   /* that one promise has at a time */

enum uni_promise_fate {
	UNI_FATE_OPEN, /* nothing ended it */
	UNI_FATE_RESOLVED,
	UNI_FATE_FAILED,
	UNI_FATE_BECAME, /* another one, which `other` names */
};

struct uni_promise {
	uint64_t id;
	uint64_t begin, end; /* ns; end UNI_PROMISE_OPEN while its fate is */
	/* its last event: an open promise that is silent is probably garbage */
	uint64_t last;
	uint64_t run_ns, wait_ns;
	/* the running promise then; UNI_PROMISE_NONE: nobody, or not known */
	uint32_t creator, resolver;
	uint32_t other; /* BECAME: which one */
	/* a step towards the last promise that it became; itself: none */
	uint32_t heir;
	uint32_t label, failure; /* strings of the model, cleaned; 0 none */
	uint32_t nr_runs, nr_waits;
	uint64_t ran;		       /* end of the newest run that has ended */
	uint64_t ran_ns;	       /* for which it ran within the waits that are open */
	uint32_t first_wait;	       /* its own, newest first, by `next` */
	uint32_t nr_open;	       /* of these, that have not ended */
	uint32_t waiters, last_waiter; /* of it, not ready, newest first, by `next_on` */
	uint32_t
		/* length of the chain of waits that led to its end, each woken by the one before */
		depth;
	uint32_t nr_lonely; /* its signals without a waiter */
	uint64_t lonely;    /* time of the last of them */
	uint32_t lonely_by; /* the running promise then */
	uint32_t hold;	    /* of a lock: the newest, or UNI_PROMISE_NONE */
	uint8_t type, fate;
	bool created;	     /* its creation is in the trace */
	bool told;	     /* it was open when the trace began, and its wait is known */
	bool taken;	     /* its value was taken since the last of nr_lonely */
	bool should_resolve; /* its program stated that it ends */
	/* For open promises, known at the end of the trace: */
	bool must_end;	     /* it should resolve, or a promise that became it should */
	bool awaited;	     /* another promise waits for it */
	bool owes;	     /* it created one that must end, and for which none is known to work */
	uint64_t owes_since; /* the newest of these */
	/* it resolved a promise that had to end, of a creator with open ones */
	bool settles;
};

/* A stretch in which one promise had a CPU. */
struct uni_promise_run {
	uint64_t begin, end;
	uint32_t promise, cpu;
	uint32_t wait;	  /* the wait that its beginning ended, or UNI_PROMISE_NONE */
	uint32_t silence; /* the first one in it, or UNI_PROMISE_NONE */
};

struct uni_promise_wait {
	uint64_t begin;
	uint64_t ready; /* time at which its value was there, or UNI_PROMISE_OPEN */
	uint64_t end;	/* when it ran again or ended, or UNI_PROMISE_OPEN */
	/* for a lock: its waiter ran last from then on, and has not told that it still waits;
	 * UNI_PROMISE_OPEN: it did not run */
	uint64_t ran;
	uint32_t waiter, on;
	uint32_t waker;	  /* the promise that resolved or signalled, UNI_PROMISE_NONE: not known */
	uint32_t next;	  /* of the same waiter, older */
	uint32_t next_on; /* for the same promise, older; while neither is ready */
	uint32_t cpu;	  /* of its next run, or of its end */
	uint32_t depth;	  /* 1, and more if the waker had itself waited before it ran: its chain */
	bool given_up;	  /* ended by something else: a timeout, another one of several */
	bool listed;	  /* only the guest's list of threads at the end tells of it ... */
	bool undated;	  /* ... and nothing tells since when */
	bool after_end;	  /* its waiter had ended before, and did not run again after it */
};

/* A stretch in which one promise had a lock. Holds of one lock do not overlap. */
struct uni_promise_hold {
	uint64_t begin, end; /* end UNI_PROMISE_OPEN: to the end of the trace */
	uint32_t owner;	     /* UNI_PROMISE_NONE: not known */
	uint32_t lock;
	uint32_t depth; /* of the chain of waits that let its owner give it back */
	bool undated;	/* it began before `begin`, and nothing tells when */
};

/* An arrow: something came from one promise to another. */
struct uni_promise_edge {
	uint64_t time;
	uint32_t from, to;
	uint8_t kind; /* READ, RESOLVE, FAIL, SIGNAL, TRY_READ, NOTIFY ... */
};

struct uni_promise_label {
	uint64_t time;
	uint32_t promise, text;
};

struct uni_promise_count {
	uint64_t time;
	int64_t value;
	uint32_t counter; /* a string of the model */
	uint32_t promise; /* that ran, or UNI_PROMISE_NONE */
};

/* Within a run, nothing was heard of the CPU: its promise computed, or the host ran another one. */
struct uni_promise_silence {
	uint64_t begin, end;
	uint32_t next; /* of the same run, or UNI_PROMISE_NONE */
};

/* The host had run the guest's only CPU for on_ns in all, counted up to `ns`. A hypervisor below
 * the host may have stolen some of that time from any of the host's CPUs. */
struct uni_promise_on_cpu {
	uint64_t ns, on_ns, stolen_ns;
	uint64_t late; /* set by the model: how often until then the host stated too much time */
};

/* A pause: garbage collection, or nothing to do. */
struct uni_promise_pause {
	uint64_t begin, end;
	uint32_t cpu;
	uint8_t kind; /* UNI_PE_GC, UNI_PE_HIATUS */
	uint8_t why;  /* enum uni_promise_hiatus */
};

/* The first id that has a label. */
struct uni_promise_named {
	uint64_t id;
	bool used, shared; /* shared: another id has it, too */
};

struct uni_promise_model {
	struct uni_strtab *text;
	UNI_VEC(struct uni_promise) all;
	UNI_VEC(struct uni_promise_named) named;      /* by label */
	UNI_VEC(struct uni_promise_run) runs;	      /* by their end */
	UNI_VEC(struct uni_promise_wait) waits;	      /* by their beginning */
	UNI_VEC(struct uni_promise_hold) holds;	      /* by their beginning, of each lock */
	UNI_VEC(struct uni_promise_edge) edges;	      /* by time */
	UNI_VEC(struct uni_promise_label) labels;     /* by time */
	UNI_VEC(struct uni_promise_count) counts;     /* by time */
	UNI_VEC(struct uni_promise_pause) pauses;     /* by their end */
	UNI_VEC(struct uni_promise_silence) silences; /* from UNI_PROMISE_SILENT on */
	UNI_VEC(struct uni_promise_on_cpu) on_cpu;    /* by time; empty: not known */
	uint64_t on_cpu_error;			      /* ns: its times and the others' differ so */
	uint64_t begin, end;			      /* of the trace, ns */
	uint64_t events, lost;			      /* lost: as far as known */
	bool end_told;	       /* what the guest's list of threads says of the end is in it ... */
	uint64_t end_unnamed;  /* ... but for threads that wait for something unknown */
	bool begin_told;       /* promises that were open at the beginning are in it ... */
	uint64_t begin_missed; /* ... except this number of changes */
	bool lost_at_most;     /* each overwritten word counts as one there */
	bool nobody_owes;      /* as `owes`, for promises without a creator */
	uint64_t gaps;
	uint64_t last_gap;  /* ns; 0 none: events before it may be missing */
	uint64_t not_kept;  /* waits of one promise beyond UNI_PROMISE_WAITS */
	uint64_t backwards; /* events that were earlier than the one before */
};

struct uni_promise_builder;
/* NULL: out of memory. */
struct uni_promise_builder *uni_promise_builder_create(void);
/* 0 or -UNI_ENOMEM, after which the builder may only be destroyed. */
int uni_promise_builder_add(struct uni_promise_builder *b, const struct uni_promise_event *event);
/* Something else was heard of the CPU then. 0 or -UNI_ENOMEM. */
int uni_promise_builder_heard(struct uni_promise_builder *b, uint32_t cpu, uint64_t time);
/* A name from elsewhere, for the newest promise of that id if it has none and is a thread, or of
 * unknown type. Returns 0 or -UNI_ENOMEM. */
int uni_promise_builder_name(struct uni_promise_builder *b, uint64_t id, const char *name);
/* Calls fn for each lock, or thing of unknown kind, without a name, and gives it that one; "":
 * none. 0 or -UNI_ENOMEM. */
int uni_promise_builder_name_things(struct uni_promise_builder *b,
	void (*fn)(void *ctx, uint64_t id, char *ret, size_t cap), void *ctx);
/* The same for that one promise, if it is such a thing. */
int uni_promise_builder_name_thing(struct uni_promise_builder *b, uint32_t promise,
	void (*fn)(void *ctx, uint64_t id, char *ret, size_t cap), void *ctx);
/* As far as it has come: nothing that is open has ended. The builder's. */
const struct uni_promise_model *uni_promise_builder_model(const struct uni_promise_builder *b);
/* The recording lasted until `time`, even after the last event. Ignored without any event, or
 * before the last one. */
void uni_promise_builder_end(struct uni_promise_builder *b, uint64_t time);
/* The total loss: losses without an event were before the first one, or after the last. */
void uni_promise_builder_lost(struct uni_promise_builder *b, uint64_t total, bool at_most);
/*
 * The CPU time that the host gave the guest, for a trace of one CPU. Its times match those of
 * events to within error_ns. A look that cannot follow the one before is ignored. Returns 0 or
 * -UNI_ENOMEM.
 */
int uni_promise_builder_on_cpu(
	struct uni_promise_builder *b, const struct uni_promise_on_cpu *look, uint64_t error_ns);
/* The model, complete: open runs end with the trace. Owned by the builder. */
const struct uni_promise_model *uni_promise_builder_finish(struct uni_promise_builder *b);
void uni_promise_builder_destroy(struct uni_promise_builder *b); /* NULL-safe */

/* The newest promise of that id, or UNI_PROMISE_NONE. */
uint32_t uni_promise_find(const struct uni_promise_builder *b, uint64_t id);

/* Its type is known, or it has run or waited: a thread does that. Others are only waited for. */
bool uni_promise_has_kind(const struct uni_promise *p);
/* A thread or a lock whose label another one has, too. */
bool uni_promise_shares_label(const struct uni_promise_model *m, uint32_t promise);
/* Its label, else "TYPE ID"; borrowed or in buf. If it shares its label: "LABEL ID", in buf. */
const char *uni_promise_name(
	const struct uni_promise_model *m, uint32_t promise, char *buf, size_t cap);

#endif
