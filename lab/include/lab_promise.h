/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promises and conditions for the lab's threads, as small as possible. They tell the tracer what a
 * promise library of a real unikernel would tell it.
 */
#ifndef LAB_PROMISE_H
#define LAB_PROMISE_H

#include <stdbool.h>
#include <stdint.h>

#include "lab_thread.h"
#include "uniscope/promise.h"

struct lab_promise {
	bool resolved;
	unsigned nr_waiting;
	struct lab_semaphore sem;
};

struct lab_condition {
	unsigned nr_waiting;
	struct lab_thread *waiting[8];
	struct lab_semaphore sem;
};

/* A place for one value. A thread that takes from an empty place waits, and so does a thread that
 * puts into a full one.
 */
struct lab_mvar {
	bool full;
	uint64_t value;
	struct lab_semaphore changed;
};

/* The running thread, as an id for the tracer. */
uint64_t lab_self(void);

void lab_promise_make(struct lab_promise *p, enum uni_promise_kind_of type, const char *name);
void lab_promise_resolve(struct lab_promise *p);
void lab_promise_await(struct lab_promise *p); /* until it is resolved */

void lab_condition_make(struct lab_condition *c, const char *name);
/* Wakes all that wait now. Whoever comes later has missed it. */
void lab_condition_broadcast(struct lab_condition *c);
void lab_condition_wait(struct lab_condition *c);

/* Semaphores of lab_thread.h that tell the tracer about waits and posts. */
void lab_told_sem_make(struct lab_semaphore *sem, const char *name);
void lab_told_sem_wait(struct lab_semaphore *sem);
void lab_told_sem_post(struct lab_semaphore *sem);

void lab_mvar_make(struct lab_mvar *m, const char *name);
void lab_mvar_put(struct lab_mvar *m, uint64_t value);
uint64_t lab_mvar_take(struct lab_mvar *m);

#endif
