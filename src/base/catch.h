/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds where a thread of another process is at a moment that it cannot choose. The caller sleeps
 * on the CPU of the thread until a timer's interrupt preempts the thread, at any place. Before the
 * thread runs on, it is told to stop, so it stops at that place. A stop from another CPU would
 * arrive too late: it would often end in a system call that began meanwhile.
 *
 * The kernel's records of switches tell whether the thread was on the CPU. They are permitted to
 * ordinary users (kernel.perf_event_paranoid 2).
 */
#ifndef UNI_BASE_CATCH_H
#define UNI_BASE_CATCH_H

#include <stdint.h>
#include <sys/user.h>

struct uni_thread_stop;

enum uni_catch_what {
	UNI_CATCH_NONE, /* it was not on that CPU, or cannot be told */
	UNI_CATCH_USER, /* it ran its own code */
	UNI_CATCH_CALL, /* in a system call */
	UNI_CATCH_FAULT,
	UNI_CATCH_SLEPT, /* in a system call, in which it went to sleep at once: left alone */
};

#define UNI_CATCH_STACK 7680u

/* The last three kinds have registers (SLEPT: pc and sp only), and what lies above sp. */
struct uni_catch {
	uint32_t what;
	uint32_t stack_size;
	uint64_t stopped_ns; /* for so long; 0: it was not stopped */
	struct user_regs_struct regs;
	uint8_t stack[UNI_CATCH_STACK];
};

/*
 * Sleeps for half a millisecond. cpu: on which the thread s->tid of the process ran last. Returns
 * 0, or -1 and errno if it may not be stopped, or is traced already. If it does not stop in time, s
 * stays `pending`, and the next call lets it go.
 */
int uni_catch_thread(int pid, struct uni_thread_stop *s, int cpu, struct uni_catch *ret);

enum uni_there_what {
	UNI_THERE_RAN,	  /* on that CPU, until then */
	UNI_THERE_WAITED, /* for a CPU, or this cannot be told */
	UNI_THERE_LEFT,	  /* it was about to sleep, and sleeps now; not stopped */
	UNI_THERE_ASLEEP, /* not stopped */
	UNI_THERE_AWAY,	  /* on another CPU, or it has ended; not stopped */
};

struct uni_there {
	uint32_t what;
	uint32_t reserved;
	uint64_t stop_ns; /* since when it stands still because of us */
	struct user_regs_struct regs;
};

/*
 * The same by the kernel's counts of the thread's times alone, without its records; and the thread
 * stays stopped: s->held. Sleeps for 0.1 to 0.2 ms. Returns 0, or -1 and errno
 * as uni_thread_stop_begin().
 */
int uni_catch_there(int pid, struct uni_thread_stop *s, int cpu, struct uni_there *ret);

#endif
