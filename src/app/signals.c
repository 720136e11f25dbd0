/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/signals.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Set by the handler; the sampler looks at it between samples. */
static atomic_bool interrupted, suspended;
static atomic_bool signalled; /* interrupted by the user */
static unsigned begun;	      /* a recording within `run` keeps a Ctrl-C that came before it */
static atomic_int_least64_t first_ns; /* time of the first Ctrl-C; 0: not yet */

/* timeout and sudo signal both a process and its group: that is one request. */
#define AGAIN_NS 300000000

/* A closed terminal, or a closed reader of our output, ends the run as cleanly as Ctrl-C. */
static const int taken[UNI_SIGNALS] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP };

/* A second request does not wait: the kernel ends us, and the helper that holds the guest on our
 * behalf (backend/helper.h) lets it go. */
static void end_at_once(int sig)
{
	struct timespec t;
	int_least64_t now, first = 0;

	if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
		return;
	now = (int_least64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	if (atomic_compare_exchange_strong(&first_ns, &first, now) || now - first < AGAIN_NS)
		return;
	(void)signal(sig, SIG_DFL);
	(void)raise(sig);
}

static void on_signal(int sig)
{
	if (sig == SIGINT || sig == SIGTERM)
		end_at_once(sig);
	if (sig != SIGTSTP)
		atomic_store(&signalled, true);
	atomic_store(sig == SIGTSTP ? &suspended : &interrupted, true);
}

void uni_signals_begin(struct uni_signals *s)
{
	struct sigaction sa = { .sa_handler = on_signal };

	if (begun++ == 0) {
		atomic_store(&interrupted, false);
		atomic_store(&signalled, false);
		atomic_store(&first_ns, 0);
		atomic_store(&suspended, false);
	}
	for (size_t i = 0; i < UNI_SIGNALS; i++)
		(void)sigaction(taken[i], &sa, &s->old[i]);
}

void uni_signals_end(struct uni_signals *s)
{
	begun--;
	for (size_t i = 0; i < UNI_SIGNALS; i++)
		(void)sigaction(taken[i], &s->old[i], NULL);
}

const atomic_bool *uni_signals_stop(void)
{
	return &interrupted;
}

void uni_signals_ask_to_stop(void)
{
	atomic_store(&interrupted, true);
}

bool uni_signals_go_on(void)
{
	atomic_store(&interrupted, false);
	if (!atomic_load(&signalled))
		return true;
	uni_signals_ask_to_stop();
	return false;
}

bool uni_signals_is_suspending(void)
{
	return atomic_load(&suspended);
}

void uni_signals_suspend(pthread_rwlock_t *gate)
{
	if (!atomic_exchange(&suspended, false))
		return;
	(void)pthread_rwlock_wrlock(gate);
	(void)raise(SIGSTOP);
	(void)pthread_rwlock_unlock(gate);
}

void uni_signals_init_gate(pthread_rwlock_t *gate)
{
	pthread_rwlockattr_t attr;

	(void)pthread_rwlockattr_init(&attr);
	(void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(gate, &attr);
	(void)pthread_rwlockattr_destroy(&attr);
}
