/* SPDX-License-Identifier: BSD-2-Clause */
/* Cooperative round-robin threads on one vCPU. */
#include "lab.h"
#include "lab_thread.h"

#define MAX_THREADS 16
#define STACK_PAGES 4

struct lab_thread *lab_threads, *lab_current;

static struct lab_thread thread_pool[MAX_THREADS];
static unsigned nr_threads;

void lab_switch(struct lab_thread *from, struct lab_thread *to);
void lab_thread_entry(void);

static void link_new(struct lab_thread *t)
{
	t->id = nr_threads;
	if (nr_threads)
		thread_pool[nr_threads - 1].next = (uint64_t)t;
	else
		lab_threads = t;
	nr_threads++;
}

/* Reuses the place of an ended thread only if no place is free, so that the host sees ended threads
 * for as long as possible. */
static struct lab_thread *any_exited(void)
{
	for (unsigned i = 0; i < nr_threads; i++) {
		if (thread_pool[i].state == LAB_THREAD_EXITED)
			return &thread_pool[i];
	}
	lab_fail("too many threads");
}

static struct lab_thread *thread_new(const char *name)
{
	bool linked = nr_threads == MAX_THREADS;
	struct lab_thread *t = linked ? any_exited() : &thread_pool[nr_threads];
	unsigned i = 0;

	for (; name[i] && i + 1 < sizeof(t->name); i++)
		t->name[i] = name[i];
	t->name[i] = '\0';
	t->turns = 0;
	/* Linked once it is complete: the host may look at any time. */
	if (!linked)
		link_new(t);
	lab_trace_born(lab_current, t);
	return t;
}

void lab_thread_init(void)
{
	if (lab_current)
		return;
	lab_current = thread_new("main");
	lab_current->turns = 1;
	lab_main_stack(&lab_current->stack_low, &lab_current->stack_high);
}

struct lab_thread *lab_thread_create(const char *name, void (*fn)(void *arg), void *arg)
{
	struct lab_thread *t = thread_new(name);

	if (!t->stack_high) {
		t->stack_high = lab_stack_alloc(STACK_PAGES);
		t->stack_low = t->stack_high - STACK_PAGES * 4096;
	}
	t->saved_rsp = lab_first_frame(t->stack_high, lab_thread_entry, fn, arg);
	t->state = LAB_THREAD_READY;
	return t;
}

static bool can_run(struct lab_thread *t)
{
	if (t->state == LAB_THREAD_SLEEPING && lab_tsc() >= t->wake_tsc)
		t->state = LAB_THREAD_READY;
	return t->state == LAB_THREAD_READY;
}

/* The next one in turn; waits for a sleeper if need be. */
static struct lab_thread *pick_next(void)
{
	for (uint64_t turn = 1;; turn++) {
		struct lab_thread *t = &thread_pool[(lab_current->id + turn) % nr_threads];

		if (can_run(t))
			return t;
		lab_heartbeat();
	}
}

LAB_FUNC static void schedule(void)
{
	struct lab_thread *from = lab_current, *to = pick_next();

	to->state = LAB_THREAD_RUNNING;
	to->turns++;
	if (to == from)
		return;
	lab_current = to;
	lab_trace_switch(from, to);
	lab_switch(from, to);
}

LAB_FUNC void lab_thread_yield(void)
{
	lab_current->state = LAB_THREAD_READY;
	schedule();
}

LAB_FUNC void lab_thread_sleep(uint64_t cycles)
{
	lab_current->wake_tsc = lab_tsc() + cycles;
	lab_current->state = LAB_THREAD_SLEEPING;
	schedule();
}

LAB_FUNC _Noreturn void lab_thread_exit(void)
{
	lab_trace_exit(lab_current);
	lab_current->state = LAB_THREAD_EXITED;
	schedule();
	lab_fail("an exited thread ran on");
}

LAB_FUNC void lab_sem_wait(struct lab_semaphore *sem)
{
	while (!sem->count) {
		lab_current->wait_on = (uint64_t)sem;
		lab_current->state = LAB_THREAD_BLOCKED;
		schedule();
	}
	sem->count--;
}

LAB_FUNC void lab_sem_post(struct lab_semaphore *sem)
{
	sem->count++;
	for (unsigned i = 0; i < nr_threads; i++) {
		struct lab_thread *t = &thread_pool[i];

		if (t->state != LAB_THREAD_BLOCKED || t->wait_on != (uint64_t)sem)
			continue;
		t->wait_on = 0;
		t->state = LAB_THREAD_READY;
		return;
	}
}
