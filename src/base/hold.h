/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops a thread of another process for some microseconds, by ptrace. The thread is seized for one
 * stop, and let go afterwards. So between samples no signal of the VMM passes through us, other
 * tracers can attach, and our death changes nothing. If we die during a stop, the kernel detaches,
 * and the thread runs on. waitid(WNOWAIT) leaves a signal that came with the stop pending, so it is
 * delivered even if we die before we let go. A ptrace session belongs to one thread: the same
 * thread must call ask(), wait() and let_go().
 */
#ifndef UNI_BASE_HOLD_H
#define UNI_BASE_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

enum uni_hold_state {
	UNI_HOLD_FREE,
	UNI_HOLD_SEIZED, /* traced and running */
	UNI_HOLD_ASKED,	 /* will stop, perhaps late */
	UNI_HOLD_STOPPED,
	UNI_HOLD_DYING, /* was killed while traced: its end must be collected */
};

/* The state of a thread, from /proc/PID/task/TID/syscall. */
enum uni_doing {
	UNI_DOING_RUNNING, /* on a CPU or ready to be */
	UNI_DOING_IN_RUN,  /* asleep in KVM_RUN: the guest waits for an interrupt */
	UNI_DOING_ELSE,	   /* asleep in the VMM: must not be woken */
	UNI_DOING_GONE,
	UNI_DOING_DENIED, /* we may not read it */
};

struct uni_hold {
	int tid;
	uint8_t state;	    /* enum uni_hold_state */
	uint8_t doing;	    /* enum uni_doing, at the last request to stop */
	uint8_t spin_pause; /* number of waits in which spinning is not tried */
	bool interrupted;   /* stopped by us and not by a signal: the stop interrupted a system call
			     */
	int sig;	    /* signal to deliver when it continues */
};

/* data: the text of that file. Sets *fd_ret for IN_RUN. */
enum uni_doing uni_doing_parse(const void *data, size_t size, int *fd_ret);
/* Reads the file. One small system call, no allocation. */
enum uni_doing uni_doing_read(int syscall_fd, int *fd_ret);
/*
 * Has a thread that seems to sleep been woken already? "syscall" takes it for asleep until it has
 * got on a CPU's queue; so it does with a vCPU that we have just let go. stat_fd:
 * /proc/PID/task/TID/stat.
 */
bool uni_doing_is_awake(int stat_fd);
bool uni_doing_is_awake_parse(const void *data, size_t size);

/*
 * Looks what a FREE thread does, and seizes it if it is to be stopped. A thread asleep in the VMM
 * is left alone: an interrupt would make epoll_wait() and the like return early. syscall_fd,
 * stat_fd: of this thread.
 */
void uni_hold_prepare(struct uni_hold *h, int syscall_fd, int stat_fd);
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
/* The same after a stop that came meanwhile. restart: as uni_hold_restart(). */
void uni_hold_release(struct uni_hold *h, bool restart);
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
bool uni_hold_in_run(const struct uni_hold *h, int *fd_ret);

/* --- for a worker without rights -------------------------------------------------------------- */

#define UNI_HOLD_MAX  1024 /* threads, by their place in each question */
#define UNI_HOLD_RUNS 512

enum uni_hold_flags {
	UNI_HOLD_RESTART = 1u << 0, /* uni_hold_restart() before they go on */
	UNI_HOLD_WHERE = 1u << 1,   /* find out whether they are in KVM_RUN */
};

/* Two processes hand a stopped guest to each other. For so long they yield, then they sleep. */
#define UNI_HOLD_YIELD_NS (300 * UNI_NSEC_PER_USEC)

enum uni_hold_turn {
	UNI_TURN_FREE,
	UNI_TURN_ASKED,	  /* the worker waits for the stop, and looks here */
	UNI_TURN_WAITING, /* ... and waits for a reply */
	UNI_TURN_HELD,	  /* the worker reads the guest. The holder looks here */
	UNI_TURN_ASLEEP,  /* ... the holder waits for a request */
	UNI_TURN_GO,	  /* the worker has read it */
};

struct uni_hold_page {
	_Atomic uint32_t turn; /* enum uni_hold_turn */
	uint64_t ask_ns;       /* when they were asked to stop */
	uint64_t run_delay_ns; /* of the last one, until then (/proc/PID/task/TID/schedstat) */
	struct uni_hold_seen {
		uint8_t state, doing;
		int32_t run_fd; /* of its KVM_RUN; -1: not known, or in none */
	} seen[UNI_HOLD_MAX];
};

#endif
