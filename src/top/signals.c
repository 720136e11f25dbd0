/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/signals.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/checked.h"

static const int taken[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGPIPE };

/* State for the handlers: the process's own, not a library's. */
static atomic_bool ended, suspended;
static struct sigaction old[uni_array_len(taken)];
static bool have_old;

static void on_signal(int sig)
{
	atomic_store(sig == SIGTSTP ? &suspended : &ended, true);
}

void uni_top_signals_take(void)
{
	for (size_t i = 0; i < uni_array_len(taken); i++) {
		struct sigaction sa = { .sa_handler = taken[i] == SIGPIPE ? SIG_IGN : on_signal };

		(void)sigaction(taken[i], &sa, have_old ? NULL : &old[i]);
	}
	have_old = true;
}

void uni_top_signals_restore(void)
{
	for (size_t i = 0; i < uni_array_len(taken); i++)
		(void)sigaction(taken[i], &old[i], NULL);
	have_old = false;
	atomic_store(&ended, false);
	atomic_store(&suspended, false);
}

bool uni_top_asked_to_end(void)
{
	return atomic_load(&ended);
}

bool uni_top_asked_to_suspend(void)
{
	return atomic_exchange(&suspended, false);
}
