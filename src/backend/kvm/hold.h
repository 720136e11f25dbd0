/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops a thread of another process for some microseconds, by ptrace. The thread is seized for one
 * stop, and let go afterwards. So between samples no signal of the VMM passes through us, other
 * tracers can attach, and our death changes nothing. If we die during a stop, the kernel detaches,
 * and the thread runs on. waitid(WNOWAIT) leaves a signal that came with the stop pending, so it is
 * delivered even if we die before we let go. A ptrace session belongs to one thread: the same
 * thread must call ask(), wait() and let_go().
 */
#ifndef UNI_BACKEND_KVM_HOLD_H
#define UNI_BACKEND_KVM_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum uni_hold_state {
	UNI_HOLD_FREE,
	UNI_HOLD_SEIZED, /* traced and running */
	UNI_HOLD_ASKED,	 /* will stop, perhaps late */
	UNI_HOLD_STOPPED,
	UNI_HOLD_DYING, /* was killed while traced: its end must be collected */
};

struct uni_hold {
	int tid;
	uint8_t state;	    /* enum uni_hold_state */
	uint8_t spin_pause; /* number of waits in which spinning is not tried */
	bool interrupted;   /* stopped by us and not by a signal: the stop interrupted a system call
			     */
	int sig;	    /* signal to deliver when it continues */
};

/*
 * Returns 0, -UNI_EGONE, or -UNI_EPERM (no right, or another tracer). Does not affect the thread.
 */
int uni_hold_seize(struct uni_hold *h);
/* Asks a seized thread to stop. Returns 0 or -UNI_EGONE. */
int uni_hold_ask(struct uni_hold *h);
/* Has it stopped? Returns 0, -UNI_EAGAIN (not yet), or -UNI_EGONE (it has ended). */
int uni_hold_poll(struct uni_hold *h);
/*
 * Waits until none of nr threads is ASKED, or until the deadline (uni_now_ns() clock).
 * It spins for 25 us, longer than a stop takes on an idle host. If that was in vain, the thread
 * needs this very CPU to reach its stop, and the next waits sleep at once. A stop sends SIGCHLD.
 * That ends the sleep if every thread of the calling process blocks that signal; otherwise the
 * sleep ends by itself a little later. It never yields: a thread that wakes up preempts others, but
 * a thread that yielded waits for their time slices.
 * Measured pauses of a sample, median and p99:
 *   this way: 16 to 38 us on an idle host, 25 to 60 us on a busy one.
 *   with short naps: 36 to 90 us, and 350 to 1000 us.
 *   with yielding, on a busy host: 6 ms.
 */
void uni_hold_wait(struct uni_hold *const *h, uint32_t nr, uint64_t deadline_ns);
/*
 * Lets it run on. A thread that has not stopped yet stays ASKED: poll it again. Fine in all states.
 */
void uni_hold_let_go(struct uni_hold *h);
/*
 * Lets go of it in any state. Waits for a late stop (restart: as uni_hold_restart()), or for the
 * end of a killed thread. False if it is not FREE by the deadline.
 */
bool uni_hold_end(struct uni_hold *h, bool restart, uint64_t deadline_ns);
/*
 * If the stop interrupted KVM_RUN or epoll_wait(), restarts the call, as the kernel does for other
 * calls. For threads that may not expect EINTR. Does nothing after a signal of the VMM's own, as
 * the VMM may need that EINTR. Returns 0 or -UNI_EGONE.
 */
int uni_hold_restart(struct uni_hold *h);
/* Is the stopped thread inside ioctl(fd, KVM_RUN)? *fd_ret is that fd. */
bool uni_hold_in_run(struct uni_hold *h, int *fd_ret);

/* The tracer of a thread; 0: none; -1: unknown. */
int uni_tracer_of(int pid, int tid);

#endif
