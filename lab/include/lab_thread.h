/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cooperative threads, and the list by which a profiler finds them. Usable from host tests.
 *
 * The global lab_threads points to the first thread, `next` to the others, NULL ends the list;
 * lab_current points to the one on the CPU. Threads are never taken off the list.
 *
 * A thread that is not on the CPU left its registers on its stack in lab_switch():
 *
 *   saved_rsp + 0   r15      + 24  r12
 *             + 8   r14      + 32  rbx
 *             + 16  r13      + 40  rbp           start of the frame-pointer chain
 *                            + 48  return address into the caller of lab_switch, or, before its
 *                                  first turn, the start of lab_thread_entry
 *
 * or, on aarch64,
 *
 *   saved_rsp + 0   x29       + 16  x19       + 48  x23       + 80  x27
 *             + 8   x30       + 24  x20       + 56  x24       + 88  x28
 *                             + 32  x21       + 64  x25
 *                             + 40  x22       + 72  x26
 *
 * with that return address in x30, and goes on at lab_switch_resume. saved_rsp of the thread on the
 * CPU is stale.
 */
#ifndef LAB_THREAD_H
#define LAB_THREAD_H

#include <stddef.h>
#include <stdint.h>

enum lab_thread_state {
	LAB_THREAD_RUNNING = 0,
	LAB_THREAD_READY = 1,
	LAB_THREAD_SLEEPING = 2, /* until wake_tsc */
	LAB_THREAD_BLOCKED = 3,	 /* on the semaphore at wait_on */
	LAB_THREAD_EXITED = 4,
};

struct lab_thread {
	uint64_t next; /* address of the next struct lab_thread */
	uint64_t saved_rsp;
	uint64_t stack_low;  /* lowest address */
	uint64_t stack_high; /* behind the highest */
	uint64_t wait_on;
	uint64_t wake_tsc;
	uint64_t turns; /* times it was put on the CPU */
	uint32_t id;
	uint32_t state; /* enum lab_thread_state */
	char name[32];
};

_Static_assert(offsetof(struct lab_thread, saved_rsp) == 8, "layout, known to lab_switch");
_Static_assert(offsetof(struct lab_thread, id) == 56, "layout");
_Static_assert(sizeof(struct lab_thread) == 96, "layout");

/* The rest is for guests. */
struct lab_semaphore {
	uint64_t count;
};

extern struct lab_thread *lab_threads, *lab_current;

void lab_thread_init(void); /* the caller becomes thread "main" */
struct lab_thread *lab_thread_create(const char *name, void (*fn)(void *arg), void *arg);
void lab_thread_yield(void);
void lab_thread_sleep(uint64_t cycles);
_Noreturn void lab_thread_exit(void);
void lab_sem_wait(struct lab_semaphore *sem);
void lab_sem_post(struct lab_semaphore *sem);

#endif
