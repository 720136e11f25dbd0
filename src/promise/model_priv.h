/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_PROMISE_MODEL_PRIV_H
#define UNI_PROMISE_MODEL_PRIV_H

#include "promise/model.h"

struct uni_promise_cpu {
	uint32_t run;	  /* the open one, an index into runs, or UNI_PROMISE_NONE */
	uint32_t pause;	  /* the open hiatus, or UNI_PROMISE_NONE */
	uint32_t silence; /* the last one of that run, or UNI_PROMISE_NONE */
	uint64_t heard;	  /* time of its last event */
};

struct uni_promise_builder {
	struct uni_promise_model m;
	uint32_t *slots; /* by id: index of the newest promise + 1, 0 free */
	uint32_t nr_slots;
	uint64_t now;
	UNI_VEC(int64_t) counters; /* their values, by the string of their name */
	struct uni_promise_cpu cpus[UNI_PROMISE_CPUS];
};

/* Appends; false: no memory, or no index left (they have 32 bits, and one value means none). */
#define uni_promise_push(vec, elem) ((vec)->nr < UNI_PROMISE_NONE && uni_vec_push(vec, elem))

/* A new promise of that id takes the place of an old one: ids are addresses in some guests. */
int uni_promise_add(struct uni_promise_builder *b, uint64_t id, uint32_t *ret);
/* The promise of that id, made if it is not known; UNI_PROMISE_NONE for NOBODY. */
int uni_promise_know(struct uni_promise_builder *b, uint64_t id, uint32_t *ret);
/* The event's text, cleaned, as a string of the model. */
int uni_promise_text(
	struct uni_promise_builder *b, const struct uni_promise_event *e, uint32_t *ret);

/* `label` is a string of the model. 0 or -UNI_ENOMEM. */
int uni_promise_set_label(struct uni_promise_builder *b, uint32_t promise, uint32_t label);

/* Ends all waits of `who` now: it runs again, or has ended. `on`: whose value came;
 * UNI_PROMISE_NONE: not known. Returns the wait that woke it, or UNI_PROMISE_NONE. */
uint32_t uni_promise_stop_waits(
	struct uni_promise_builder *b, uint32_t who, uint32_t on, uint32_t cpu);
/* The promise that runs on that CPU, and how long the chain of waits is that let it run. */
uint32_t uni_promise_running(const struct uni_promise_builder *b, uint32_t cpu);
uint32_t uni_promise_chain(const struct uni_promise_builder *b, uint32_t cpu);

/* Locks (locks.c): `lock` is of that type. It waits for one now. */
bool uni_promise_waits_for_lock(const struct uni_promise_builder *b, uint32_t who);
/* It runs now, in spite of that wait: for nothing, or because it has given up. */
void uni_promise_run_in_wait(struct uni_promise_builder *b, uint32_t who);
/* That run has ended. */
void uni_promise_ran_in_wait(struct uni_promise_builder *b, const struct uni_promise_run *run);
/* It tells that it still waits. */
void uni_promise_waits_on(struct uni_promise_builder *b, uint32_t who);
/* When it stopped waiting, if it has given up by now. */
uint64_t uni_promise_gave_up(const struct uni_promise_builder *b, uint32_t who);
/* From `since` to `until`, without the time for which it ran meanwhile. */
uint64_t uni_promise_waited(const struct uni_promise *p, uint64_t since, uint64_t until);
/* Something else than its wait for a lock goes on in `who`: it has given that up. */
void uni_promise_leave_lock(
	struct uni_promise_builder *b, uint32_t who, uint32_t other, uint32_t cpu);
/* `who` has it from now on. Before it runs, its waits are told that the lock was given back. */
void uni_promise_lock_came(struct uni_promise_builder *b, uint32_t who, uint32_t lock);
int uni_promise_lock_take(
	struct uni_promise_builder *b, uint32_t who, uint32_t lock, uint32_t cpu, bool undated);
void uni_promise_lock_end(struct uni_promise_builder *b, uint32_t lock); /* with the lock */
int uni_promise_lock_give(struct uni_promise_builder *b, uint32_t lock, uint32_t cpu);

/* In a complete model, ends the open waits of `who`, which has ended itself. */
void uni_promise_end_waits(struct uni_promise_model *m, uint32_t who);
/* Since the oldest of the waits that are open, in a complete model. */
uint64_t uni_promise_open_wait_ns(const struct uni_promise_model *m, const struct uni_promise *p);
/* Marks the promises whose end matters, in a model that is complete otherwise. */
void uni_promise_mark_needed(struct uni_promise_model *m);
/* The last promise that it became, or itself. */
uint32_t uni_promise_heir(const struct uni_promise_model *m, uint32_t who);
/* The same, also for UNI_PROMISE_NONE; makes the next look-up shorter. */
uint32_t uni_promise_meant(struct uni_promise_model *m, uint32_t who);

#endif
