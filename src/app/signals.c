/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/signals.h"

#include <stdbool.h>
#include <stddef.h>

/* Set by the handler; the sampler looks at it between samples. */
static atomic_bool interrupted, suspended;

/* A closed terminal, or nobody who reads what we write, end the run as cleanly as Ctrl-C. */
static const int taken[UNI_SIGNALS] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP };

static void on_signal(int sig)
{
	atomic_store(sig == SIGTSTP ? &suspended : &interrupted, true);
}

void uni_signals_begin(struct uni_signals *s)
{
	struct sigaction sa = { .sa_handler = on_signal };

	atomic_store(&interrupted, false);
	atomic_store(&suspended, false);
	for (size_t i = 0; i < UNI_SIGNALS; i++)
		(void)sigaction(taken[i], &sa, &s->old[i]);
}

void uni_signals_end(struct uni_signals *s)
{
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
