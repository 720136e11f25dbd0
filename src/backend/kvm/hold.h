/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stopping a thread of another process for some microseconds, by ptrace.
 *
 * The thread is seized for one stop and let go again afterwards, so between samples no signal of
 * the VMM passes through us, other tracers can attach, and our death changes nothing. During a stop
 * the kernel detaches when we die and the thread runs on. waitid(WNOWAIT) leaves a signal that
 * came with the stop where it is, so it is delivered even if we die before letting go.
 *
 * ptrace belongs to a thread: ask(), wait() and let_go() are called by the same one.
 */
#ifndef UNI_BACKEND_KVM_HOLD_H
#define UNI_BACKEND_KVM_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum uni_hold_state {
	UNI_HOLD_FREE,
	UNI_HOLD_SEIZED, /* traced and running */
	UNI_HOLD_ASKED,	 /* will stop; may be late */
	UNI_HOLD_STOPPED,
	UNI_HOLD_DYING, /* was killed while traced: its end has to be collected */
};

struct uni_hold {
	int tid;
	uint8_t state;	    /* enum uni_hold_state */
	uint8_t spin_pause; /* waits for which spinning is not tried */
	bool interrupted;   /* stopped by us and by no signal: a system call was cut short for us */
	int sig;	    /* signal to deliver when it goes on */
};

/* 0, -UNI_EGONE, -UNI_EPERM (no right, or another tracer). No effect on the thread. */
int uni_hold_seize(struct uni_hold *h);
/* Asks a seized thread to stop. 0 or -UNI_EGONE. */
int uni_hold_ask(struct uni_hold *h);
/* Has it stopped? 0, -UNI_EAGAIN (not yet), -UNI_EGONE (it ended). */
int uni_hold_poll(struct uni_hold *h);
/*
 * Waits until none of nr threads is ASKED, or until the deadline (uni_now_ns() clock). It looks
 * again and again for 25 us, longer than a stop takes on an idle host; where that was in vain the
 * thread needs this very CPU to get to its stop, and the next waits sleep at once. A stop sends
 * SIGCHLD, which ends the sleep where the caller (and every thread of its process) blocks that
 * signal; else it ends by itself a little later. Never yields: one that wakes up preempts others
 * where one that yielded waits for their time slices. The pause of a sample, median and p99, idle
 * and busy host: so 16 to 38 and 25 to 60 us; by short naps 36 to 90 and 350 to 1000 us; yielding,
 * on a busy host, 6 ms.
 */
void uni_hold_wait(struct uni_hold *const *h, uint32_t nr, uint64_t deadline_ns);
/* Lets it run on. One that has not stopped yet stays ASKED: poll it again. NULL-safe states. */
void uni_hold_let_go(struct uni_hold *h);
/*
 * Lets go of it whatever its state, and waits for what takes time: a stop that is late (restart: as
 * uni_hold_restart()), the end of a thread that was killed. False if it is not FREE by the
 * deadline.
 */
bool uni_hold_end(struct uni_hold *h, bool restart, uint64_t deadline_ns);
/*
 * If the stop cut KVM_RUN or epoll_wait() short, makes it go on as if nothing had happened, as the
 * kernel does for calls that it restarts: for threads that may not expect EINTR. Not after a signal
 * of the VMM's own, which it may want to see by that EINTR. 0 or -UNI_EGONE.
 */
int uni_hold_restart(struct uni_hold *h);
/* Is the stopped thread inside ioctl(fd, KVM_RUN)? *fd_ret is that fd. */
bool uni_hold_in_run(struct uni_hold *h, int *fd_ret);

/* Who traces a thread: 0 nobody, -1 unknown. */
int uni_tracer_of(int pid, int tid);

#endif
