/* SPDX-License-Identifier: BSD-2-Clause */
/* Stopping a child for an instant, with everything that may come between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "backend/kvm/hold.h"

/* Shared with the child. */
struct shared {
	atomic_ulong turns, signals;
	atomic_bool ready;
};

struct child {
	struct shared *mem;
	struct uni_hold h;
};

static struct shared *child_mem;

static void count_signal(int sig)
{
	atomic_fetch_add(&child_mem->signals, 1);
}

static _Noreturn void run_child(void)
{
	struct sigaction sa = { .sa_handler = count_signal };

	(void)sigaction(SIGRTMIN, &sa, NULL);
	atomic_store(&child_mem->ready, true);
	for (;;)
		atomic_fetch_add(&child_mem->turns, 1);
}

static void nap(void)
{
	(void)usleep(1000);
}

static void start(struct child *c)
{
	pid_t pid;

	c->mem = mmap(
		NULL, sizeof(*c->mem), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(c->mem, MAP_FAILED);
	child_mem = c->mem;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		run_child();
	c->h = (struct uni_hold){ .tid = pid };
	while (!atomic_load(&c->mem->ready))
		nap();
}

static void end(struct child *c)
{
	int status;

	(void)kill(c->h.tid, SIGKILL);
	assert_int_equal(waitpid(c->h.tid, &status, 0), c->h.tid);
	(void)munmap(c->mem, sizeof(*c->mem));
}

static bool runs(struct child *c)
{
	unsigned long before = atomic_load(&c->mem->turns);

	for (int i = 0; i < 2000 && atomic_load(&c->mem->turns) == before; i++)
		nap();
	return atomic_load(&c->mem->turns) != before;
}

static bool stands(struct child *c)
{
	unsigned long before = atomic_load(&c->mem->turns);

	for (int i = 0; i < 20; i++)
		nap();
	return atomic_load(&c->mem->turns) == before;
}

static int stop(struct uni_hold *h)
{
	int rc = uni_hold_seize(h);

	if (rc == 0)
		rc = uni_hold_ask(h);
	if (rc == 0)
		uni_hold_wait(&h, 1, uni_now_ns() + 10 * UNI_NSEC_PER_SEC);
	return rc;
}

static void stop_and_go(void **state)
{
	struct child c;

	start(&c);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(stop(&c.h), 0);
		assert_int_equal(c.h.state, UNI_HOLD_STOPPED);
		assert_true(i != 0 || stands(&c));
		uni_hold_let_go(&c.h);
		assert_int_equal(c.h.state, UNI_HOLD_FREE);
		uni_hold_let_go(&c.h); /* harmless */
		assert_int_equal(uni_tracer_of(c.h.tid, c.h.tid), 0);
		assert_true(runs(&c));
	}
	end(&c);
}

/* Real-time signals queue, so each one that is sent must be handled once. */
static void no_signal_is_lost_or_doubled(void **state)
{
	const union sigval none = { .sival_int = 0 };
	unsigned long sent = 0;
	struct child c;

	start(&c);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(uni_hold_seize(&c.h), 0);
		assert_int_equal(sigqueue(c.h.tid, SIGRTMIN, none), 0);
		sent++;
		assert_int_equal(uni_hold_ask(&c.h), 0);
		if (i % 3 == 0) {
			assert_int_equal(sigqueue(c.h.tid, SIGRTMIN, none), 0);
			sent++;
		}
		uni_hold_wait(
			&(struct uni_hold *){ &c.h }, 1, uni_now_ns() + 10 * UNI_NSEC_PER_SEC);
		assert_int_equal(c.h.state, UNI_HOLD_STOPPED);
		uni_hold_let_go(&c.h);
	}
	for (int i = 0; i < 2000 && atomic_load(&c.mem->signals) != sent; i++)
		nap();
	assert_int_equal(atomic_load(&c.mem->signals), sent);
	end(&c);
}

/* If a user stopped the VMM by SIGSTOP, it stays so. */
static void a_stopped_process_stays_stopped(void **state)
{
	int status;
	struct child c;

	start(&c);
	assert_int_equal(kill(c.h.tid, SIGSTOP), 0);
	assert_int_equal(waitpid(c.h.tid, &status, WUNTRACED), c.h.tid);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(stop(&c.h), 0);
		assert_int_equal(c.h.state, UNI_HOLD_STOPPED);
		assert_false(c.h.interrupted);
		uni_hold_let_go(&c.h);
	}
	assert_true(stands(&c));
	assert_int_equal(kill(c.h.tid, SIGCONT), 0);
	assert_true(runs(&c));
	end(&c);
}

static void killed_while_held(void **state)
{
	struct child c;
	int status;

	start(&c);
	assert_int_equal(stop(&c.h), 0);
	assert_int_equal(kill(c.h.tid, SIGKILL), 0);
	for (int i = 0; i < 2000 && c.h.state != UNI_HOLD_FREE; i++) {
		uni_hold_let_go(&c.h);
		nap();
	}
	assert_int_equal(c.h.state, UNI_HOLD_FREE);
	/* Here tracer and parent are one, so its end is collected already. */
	assert_int_equal(waitpid(c.h.tid, &status, 0), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(uni_hold_seize(&c.h), -UNI_EGONE);
	(void)munmap(c.mem, sizeof(*c.mem));
}

static void killed_before_it_stops(void **state)
{
	struct child c;

	start(&c);
	assert_int_equal(uni_hold_seize(&c.h), 0);
	assert_int_equal(kill(c.h.tid, SIGKILL), 0);
	(void)uni_hold_ask(&c.h);
	uni_hold_wait(&(struct uni_hold *){ &c.h }, 1, uni_now_ns() + 10 * UNI_NSEC_PER_SEC);
	for (int i = 0; i < 2000 && c.h.state != UNI_HOLD_FREE; i++) {
		uni_hold_let_go(&c.h);
		nap();
	}
	assert_int_equal(c.h.state, UNI_HOLD_FREE);
	(void)munmap(c.mem, sizeof(*c.mem));
}

/* The thread cannot stop in time: nothing blocks, and the late stop is found and ended. */
static void a_late_stop_is_ended(void **state)
{
	struct child c;

	start(&c);
	assert_int_equal(uni_hold_seize(&c.h), 0);
	assert_int_equal(uni_hold_ask(&c.h), 0);
	uni_hold_let_go(&c.h); /* may be too early for it, then it stays asked */
	for (int i = 0; i < 2000 && c.h.state != UNI_HOLD_FREE; i++) {
		(void)uni_hold_poll(&c.h);
		uni_hold_let_go(&c.h);
		nap();
	}
	assert_int_equal(c.h.state, UNI_HOLD_FREE);
	assert_true(runs(&c));
	end(&c);
}

static void *say_tid(void *tid)
{
	atomic_store((atomic_int *)tid, gettid());
	for (;;)
		(void)pause();
	return NULL;
}

static _Noreturn void with_threads(atomic_int *tid)
{
	pthread_t t;

	(void)pthread_create(&t, NULL, say_tid, &tid[0]);
	(void)pthread_create(&t, NULL, say_tid, &tid[1]);
	for (;;)
		(void)pause();
}

/* One seized, one asked to stop: uncollected they would keep their process a zombie. */
static void ended_threads_are_collected(void **state)
{
	atomic_int *tid =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct uni_hold h[2] = { 0 };
	pid_t pid, r = 0;

	assert_ptr_not_equal(tid, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		with_threads(tid);
	for (int i = 0; i < 2; i++) {
		while (atomic_load(&tid[i]) == 0)
			nap();
		h[i].tid = atomic_load(&tid[i]);
		assert_int_equal(uni_hold_seize(&h[i]), 0);
	}
	(void)uni_hold_ask(&h[1]);
	assert_int_equal(kill(pid, SIGKILL), 0);
	for (int i = 0; i < 20; i++)
		nap();
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* held back by its threads */
	for (int i = 0; i < 2; i++)
		assert_true(uni_hold_end(&h[i], true, uni_now_ns() + 10 * UNI_NSEC_PER_SEC));
	for (int i = 0; i < 2000 && r == 0; i++) {
		r = waitpid(pid, NULL, WNOHANG);
		nap();
	}
	assert_int_equal(r, pid);
	(void)munmap(tid, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stop_and_go),
		cmocka_unit_test(no_signal_is_lost_or_doubled),
		cmocka_unit_test(a_stopped_process_stays_stopped),
		cmocka_unit_test(killed_while_held),
		cmocka_unit_test(killed_before_it_stops),
		cmocka_unit_test(a_late_stop_is_ended),
		cmocka_unit_test(ended_threads_are_collected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
