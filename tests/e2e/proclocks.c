/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process whose threads lock real mutexes and say so: guest/README.md, "Locks". Each thread is a
 * CPU of the tracer.
 *
 * proclocks TURNS: says "ready", waits for a line. In each turn one thread has a lock, and the two
 * others wait for it. It prints a book, a line for each hold and wait in the thread's order, and
 * "done": "hold LOCK THREAD LOW HIGH" or "wait ...". LOW and HIGH are ns, between which its length
 * lies: hooks were called between two looks at the clock. Then it is silent until its input ends.
 *
 * proclocks hang: two threads wait for each other's locks; then it says "ready". It keeps a table.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "uniscope/promise.h"
#include "uniscope/trace.h"

#define RING	  (4u << 20)
#define THREADS	  3
#define LOCKS	  2
#define MAX_TURNS 1000

struct look { /* a hook was called in between */
	uint64_t before, after;
};

struct line {
	bool waits;
	int lock;
	struct look begin, end;
};

static struct thread {
	pthread_t handle;
	struct uni_trace_cpu cpu __attribute__((aligned(64)));
	sem_t go;
	struct line book[2 * MAX_TURNS];
	unsigned nr;
} threads[THREADS];

static pthread_mutex_t locks[LOCKS] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static sem_t told; /* by a thread, to main */
static unsigned turns;

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t id_of(const struct thread *t)
{
	return (uint64_t)(t - threads) + 1;
}

static void await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void lock(struct thread *t, int nr)
{
	uint64_t self = id_of(t), id = (uint64_t)&locks[nr];
	struct line wait = { .waits = true, .lock = nr };
	bool waits = pthread_mutex_trylock(&locks[nr]) != 0;
	struct line *hold;

	if (waits) {
		wait.begin.before = now_ns();
		uni_promise_lock_wait(self, id);
		wait.begin.after = now_ns();
		uni_promise_switch(UNI_PROMISE_NOBODY);
		(void)sem_post(&told);
		(void)pthread_mutex_lock(&locks[nr]);
		uni_promise_switch(self);
	}
	wait.end.before = now_ns();
	uni_promise_lock_taken(self, id);
	wait.end.after = now_ns();
	if (waits)
		t->book[t->nr++] = wait;
	hold = &t->book[t->nr++];
	*hold = (struct line){ .lock = nr, .begin = wait.end };
}

static void unlock(struct thread *t, int nr)
{
	struct line *hold = &t->book[t->nr - 1];

	hold->end.before = now_ns();
	uni_promise_lock_given_back((uint64_t)&locks[nr]);
	hold->end.after = now_ns();
	(void)pthread_mutex_unlock(&locks[nr]);
}

static void begin_thread(struct thread *t)
{
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, &t->cpu) != 0)
		abort();
	uni_promise_switch(id_of(t));
}

static void *work(void *arg)
{
	struct thread *t = arg;
	const struct timespec nap = { .tv_nsec = 300000 };

	begin_thread(t);
	for (unsigned turn = 0; turn < turns; turn++) {
		bool owns = &threads[turn % THREADS] == t;

		await(&t->go);
		lock(t, (int)(turn % LOCKS));
		if (owns) {
			(void)sem_post(&told);
			await(&t->go); /* the others wait for it */
			(void)nanosleep(&nap, NULL);
		}
		unlock(t, (int)(turn % LOCKS));
		(void)sem_post(&told);
	}
	return NULL;
}

static void turn(struct thread *owner)
{
	(void)sem_post(&owner->go);
	await(&told);
	for (struct thread *t = threads; t != threads + THREADS; t++) {
		if (t == owner)
			continue;
		(void)sem_post(&t->go);
		await(&told); /* it waits */
	}
	(void)sem_post(&owner->go);
	for (unsigned i = 0; i < THREADS; i++)
		await(&told);
}

static void print_book(const struct thread *t)
{
	for (unsigned i = 0; i < t->nr; i++) {
		const struct line *l = &t->book[i];

		(void)printf("%s %d %d %lu %lu\n", l->waits ? "wait" : "hold", l->lock,
			(int)id_of(t), l->end.before - l->begin.after,
			l->end.after - l->begin.before);
	}
}

static void *hang(void *arg)
{
	struct thread *t = arg;
	int first = t == &threads[0] ? 0 : 1;

	begin_thread(t);
	lock(t, first);
	(void)sem_post(&told);
	await(&t->go); /* both have one */
	lock(t, 1 - first);
	return NULL;
}

static void name_all(void)
{
	static const char *const names[THREADS] = { "alpha", "beta", "gamma" };

	for (struct thread *t = threads; t != threads + THREADS; t++) {
		(void)sem_init(&t->go, 0, 0);
		uni_promise_named(
			UNI_PROMISE_NOBODY, id_of(t), UNI_PROMISE_THREAD, names[t - threads]);
	}
	uni_promise_named_lock(UNI_PROMISE_NOBODY, (uint64_t)&locks[0], "disk");
}

static void wait_for_line(void)
{
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)getchar();
}

static void run_hang(void)
{
	static _Alignas(64) uint8_t table[4096];

	if (uni_promise_keep(table, sizeof(table)) != 0)
		abort();
	name_all();
	for (int i = 0; i < 2; i++)
		(void)pthread_create(&threads[i].handle, NULL, hang, &threads[i]);
	await(&told);
	await(&told);
	for (int i = 0; i < 2; i++) {
		(void)sem_post(&threads[i].go);
		await(&told);
	}
	wait_for_line();
}

static void run_turns(void)
{
	wait_for_line();
	name_all();
	for (struct thread *t = threads; t != threads + THREADS; t++)
		(void)pthread_create(&t->handle, NULL, work, t);
	for (unsigned i = 0; i < turns; i++)
		turn(&threads[i % THREADS]);
	for (struct thread *t = threads; t != threads + THREADS; t++) {
		(void)pthread_join(t->handle, NULL);
		print_book(t);
	}
}

int main(int argc, char **argv)
{
	static unsigned char ring[RING];
	static struct uni_trace_cpu own __attribute__((aligned(64)));
	struct uni_trace_cpu *const cpus[] = { &own, &threads[0].cpu, &threads[1].cpu,
		&threads[2].cpu };

	if (argc != 2 || sem_init(&told, 0, 0) != 0 ||
		syscall(SYS_arch_prctl, ARCH_SET_GS, &own) != 0 ||
		uni_trace_init(ring, sizeof(ring), 4, cpus, UNI_TRACE_OVERWRITE, 0) != 0)
		return 1;
	turns = (unsigned)strtoul(argv[1], NULL, 10);
	if (turns > MAX_TURNS)
		return 1;
	if (strcmp(argv[1], "hang") == 0)
		run_hang();
	else
		run_turns();
	(void)printf("done\n");
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(0);
}
