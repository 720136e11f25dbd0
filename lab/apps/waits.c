/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Six threads, like a server's. Known answer: `worker` has nearly all of the CPU. `acceptor`,
 * `reader` and `flusher` are blocked for ever, each in functions of its own. They wait for clients,
 * for the disk and for a lock that nobody gives back. `ticker` sleeps 20 ms at a time, `main` takes
 * short turns.
 */
#include "lab.h"
#include "lab_thread.h"

#define UNIT 20000 /* turns of 4 instructions */

const char lab_app_name[] = "waits";

LAB_FN(work);

static struct lab_semaphore clients, disk, journal_lock;
static uint64_t ticks;

LAB_FUNC static void work(void)
{
	LAB_ENTER(work);
	lab_burn(UNIT);
	LAB_LEAVE(work);
}

LAB_FUNC static void worker_main(void *arg)
{
	for (;;) {
		work();
		lab_thread_yield();
	}
}

LAB_FUNC static void wait_for_client(void)
{
	lab_sem_wait(&clients);
	__asm__ volatile("");
}

LAB_FUNC static void acceptor_main(void *arg)
{
	for (;;)
		wait_for_client();
}

LAB_FUNC static void wait_for_disk(void)
{
	lab_sem_wait(&disk);
	__asm__ volatile("");
}

LAB_FUNC static void read_block(void)
{
	wait_for_disk();
	__asm__ volatile("");
}

LAB_FUNC static void read_file(void)
{
	read_block();
	__asm__ volatile("");
}

LAB_FUNC static void reader_main(void *arg)
{
	for (;;)
		read_file();
}

LAB_FUNC static void take_lock(struct lab_semaphore *lock)
{
	lab_sem_wait(lock);
	__asm__ volatile("");
}

LAB_FUNC static void flush_journal(void)
{
	take_lock(&journal_lock);
	__asm__ volatile("");
}

LAB_FUNC static void flusher_main(void *arg)
{
	for (;;)
		flush_journal();
}

LAB_FUNC static void ticker_main(void *arg)
{
	for (;;) {
		ticks++;
		lab_thread_sleep(lab_truth.tsc_hz / 50);
	}
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(40000);

	if (!lab_current) {
		lab_thread_init();
		lab_thread_create("worker", worker_main, NULL);
		lab_thread_create("acceptor", acceptor_main, NULL);
		lab_thread_create("reader", reader_main, NULL);
		lab_thread_create("flusher", flusher_main, NULL);
		lab_thread_create("ticker", ticker_main, NULL);
	}
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		lab_thread_yield();
	lab_printf("waits: %lu rounds, %lu ticks\n", rounds, ticks);
}
