/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stops a thread of another process by ptrace, for its registers. Nothing stays attached between
 * two stops. If the thread that stops it ends, the kernel lets it go.
 */
#ifndef UNI_BASE_STOP_H
#define UNI_BASE_STOP_H

#include <stdbool.h>
#include <stddef.h>

struct uni_thread_stop {
	int tid;
	bool held;    /* stopped by us: must be let go */
	bool pending; /* told to stop, but has not stopped yet */
	bool firm;    /* its memory is written: held for as long as that takes */
	int signal;   /* a signal that stopped it instead: passed on when it is let go */
};

/* Returns 0, or -1 and errno. EAGAIN: not yet, or another thread of ours still lets it go. */
int uni_thread_stop_begin(struct uni_thread_stop *s);
/* Its first part: the thread is told, but has perhaps not stopped yet. */
int uni_thread_stop_tell(struct uni_thread_stop *s);
/* The registers, in the kernel's layout (NT_PRSTATUS). Returns their size, or -1 and errno. */
int uni_thread_stop_regs(const struct uni_thread_stop *s, void *regs, size_t cap);
void uni_thread_stop_end(struct uni_thread_stop *s);

#endif
