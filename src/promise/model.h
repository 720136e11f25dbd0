/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who lived, ran and waited for whom: made of promise events in the order of time, from any moment
 * on (a ring has lost its beginning) and across gaps. Nothing in an event is believed but that it
 * happened: ids that were never created appear when they are first named.
 *
 * One CPU runs one promise at a time. A wait begins when a promise wants a value that is not there,
 * and ends when it runs again; in between the value may arrive: from then on it is the scheduler
 * that lets it wait.
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

#define UNI_PROMISE_NONE  UINT32_MAX /* an index */
#define UNI_PROMISE_OPEN  UINT64_MAX /* a time: not in this trace */
#define UNI_PROMISE_CPUS  256
#define UNI_PROMISE_WAITS 1024 /* that one promise has at a time */

enum uni_promise_fate {
	UNI_FATE_OPEN, /* nothing ended it */
	UNI_FATE_RESOLVED,
	UNI_FATE_FAILED,
	UNI_FATE_BECAME, /* another one, which `other` names */
};

struct uni_promise {
	uint64_t id;
	uint64_t begin, end; /* ns; end UNI_PROMISE_OPEN while its fate is */
	uint64_t last;	     /* its last event: what is open and silent is probably garbage */
	uint64_t run_ns, wait_ns;
	uint32_t creator, resolver; /* who ran then; UNI_PROMISE_NONE: nobody, or not known */
	uint32_t other;		    /* BECAME: which one */
	uint32_t label, failure;    /* strings of the model, cleaned; 0 none */
	uint32_t nr_runs, nr_waits;
	uint32_t first_wait;	       /* its own, newest first, by `next` */
	uint32_t nr_open;	       /* of these, that have not ended */
	uint32_t waiters, last_waiter; /* of it, not ready, newest first, by `next_on` */
	uint32_t
		depth; /* of the chain of waits that led to its end, each woken by the one before */
	uint32_t nr_lonely; /* signals of it that nobody waited for */
	uint64_t lonely;    /* time of the last of them */
	uint32_t lonely_by; /* who ran then */
	uint8_t type, fate;
	bool created;	     /* its creation is in the trace */
	bool should_resolve; /* its program said that it ends */
};

/* A stretch in which one promise had a CPU. */
struct uni_promise_run {
	uint64_t begin, end;
	uint32_t promise, cpu;
	uint32_t wait; /* the wait that its beginning ended, or UNI_PROMISE_NONE */
};

struct uni_promise_wait {
	uint64_t begin;
	uint64_t ready; /* when what it waited for was there, or UNI_PROMISE_OPEN */
	uint64_t end;	/* when it ran again, or UNI_PROMISE_OPEN */
	uint32_t waiter, on;
	uint32_t waker;	  /* who resolved or signalled, UNI_PROMISE_NONE: not known */
	uint32_t next;	  /* of the same waiter, older */
	uint32_t next_on; /* for the same promise, older; while neither is ready */
	uint32_t cpu;	  /* where it ran again */
	uint32_t depth;	  /* 1, and more if the waker had itself waited before it ran: its chain */
	bool given_up;	  /* ended by something else: a timeout, another one of several */
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

/* A pause: garbage collection, or nothing to do. */
struct uni_promise_pause {
	uint64_t begin, end;
	uint32_t cpu;
	uint8_t kind; /* UNI_PE_GC, UNI_PE_HIATUS */
	uint8_t why;  /* enum uni_promise_hiatus */
};

struct uni_promise_model {
	struct uni_strtab *text;
	UNI_VEC(struct uni_promise) all;
	UNI_VEC(struct uni_promise_run) runs;	  /* by their end */
	UNI_VEC(struct uni_promise_wait) waits;	  /* by their beginning */
	UNI_VEC(struct uni_promise_edge) edges;	  /* by time */
	UNI_VEC(struct uni_promise_label) labels; /* by time */
	UNI_VEC(struct uni_promise_count) counts; /* by time */
	UNI_VEC(struct uni_promise_pause) pauses; /* by their end */
	uint64_t begin, end;			  /* of the trace, ns */
	uint64_t events, lost;			  /* lost: as far as known */
	uint64_t gaps;
	uint64_t last_gap;  /* ns; 0 none: what came before may have been told by what is missing */
	uint64_t not_kept;  /* waits beyond UNI_PROMISE_WAITS of one promise */
	uint64_t backwards; /* events whose time lay before the one before */
};

struct uni_promise_builder;
/* NULL: out of memory. */
struct uni_promise_builder *uni_promise_builder_create(void);
/* 0 or -UNI_ENOMEM, after which the builder may only be destroyed. */
int uni_promise_builder_add(struct uni_promise_builder *b, const struct uni_promise_event *event);
/*
 * A name from elsewhere, for the newest promise of that id if it has none and is a thread, or of no
 * known type. 0 or -UNI_ENOMEM.
 */
int uni_promise_builder_name(struct uni_promise_builder *b, uint64_t id, const char *name);
/* The model, complete: open runs end with the trace. Owned by the builder. */
const struct uni_promise_model *uni_promise_builder_finish(struct uni_promise_builder *b);
void uni_promise_builder_destroy(struct uni_promise_builder *b); /* NULL-safe */

/* The newest promise of that id, or UNI_PROMISE_NONE. */
uint32_t uni_promise_find(const struct uni_promise_builder *b, uint64_t id);

/* Its label, else "TYPE ID"; borrowed or in buf. */
const char *uni_promise_name(
	const struct uni_promise_model *m, uint32_t promise, char *buf, size_t cap);

#endif
