/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nine threads. Known answer, on-CPU: cruncher-a 60, cruncher-b 30, consumer 10 %. Off-CPU:
 * `blocked-1` and `blocked-2` wait for a semaphore that nobody posts; one waits six frames deep.
 * `sleeper` sleeps 50 ms at a time; producer, logger and main only ever take short turns.
 */
#include "lab.h"
#include "lab_thread.h"

#define UNIT \
	2000 /* turns of 4 instructions: 1/10 of a round is 8000 instructions; unit=N: others */

const char lab_app_name[] = "threads";

LAB_FN(crunch_a);
LAB_FN(crunch_b);
LAB_FN(consume);

static struct lab_semaphore work, never;
static uint64_t naps, logged, unit = UNIT;

/* Books are opened and closed between two switches: they are the vCPU's, not the thread's. */
LAB_FUNC static void crunch_a(void)
{
	LAB_ENTER(crunch_a);
	lab_burn(6 * unit);
	LAB_LEAVE(crunch_a);
}

LAB_FUNC static void crunch_b(void)
{
	LAB_ENTER(crunch_b);
	lab_burn(3 * unit);
	LAB_LEAVE(crunch_b);
}

LAB_FUNC static void consume(void)
{
	LAB_ENTER(consume);
	lab_burn(1 * unit);
	LAB_LEAVE(consume);
}

LAB_FUNC static void cruncher_a_main(void *arg)
{
	for (;;) {
		crunch_a();
		lab_thread_yield();
	}
}

LAB_FUNC static void cruncher_b_main(void *arg)
{
	for (;;) {
		crunch_b();
		lab_thread_yield();
	}
}

LAB_FUNC static void producer_main(void *arg)
{
	for (;;) {
		lab_sem_post(&work);
		lab_thread_yield();
	}
}

LAB_FUNC static void consumer_main(void *arg)
{
	for (;;) {
		lab_sem_wait(&work);
		consume();
	}
}

LAB_FUNC static void sleeper_main(void *arg)
{
	for (;;) {
		naps++;
		lab_thread_sleep(lab_truth.tsc_hz / 20);
	}
}

LAB_FUNC static void wait_deep(unsigned depth)
{
	if (depth > 1)
		wait_deep(depth - 1);
	else
		lab_sem_wait(&never);
	__asm__ volatile("");
}

LAB_FUNC static void blocked_main(void *arg)
{
	wait_deep((unsigned)(uint64_t)arg);
}

LAB_FUNC static void logger_main(void *arg)
{
	for (;;) {
		logged++;
		lab_thread_yield();
	}
}

static void create_all(void)
{
	lab_thread_init();
	lab_thread_create("cruncher-a", cruncher_a_main, NULL);
	lab_thread_create("cruncher-b", cruncher_b_main, NULL);
	lab_thread_create("producer", producer_main, NULL);
	lab_thread_create("consumer", consumer_main, NULL);
	lab_thread_create("sleeper", sleeper_main, NULL);
	lab_thread_create("blocked-1", blocked_main, (void *)1);
	lab_thread_create("blocked-2", blocked_main, (void *)6);
	lab_thread_create("logger", logger_main, NULL);
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(400000);

	unit = lab_arg("unit", UNIT);
	if (!lab_current)
		create_all();
	/* A turn of main is one of each that can run. */
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		lab_thread_yield();
	lab_printf("threads: %lu rounds, %lu naps, %lu log turns\n", rounds, naps, logged);
}
