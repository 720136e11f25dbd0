/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/stop.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

#define STOP_NS (100 * UNI_NSEC_PER_MSEC)
#define NAP_NS	20000u

/* Naps are short against the time that it took already: the thread may want this CPU. */
static int wait_for_stop(struct uni_thread_stop *s)
{
	uint64_t begin_ns = uni_now_ns(), took_ns = 0;

	while (took_ns < STOP_NS) {
		struct timespec nap = uni_ns_timespec(NAP_NS + took_ns / 32);
		int status;
		pid_t r = waitpid(s->tid, &status, WNOHANG | __WALL);

		if (r == s->tid && WIFSTOPPED(status)) {
			s->pending = false;
			s->held = true;
			s->signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
			return 0;
		}
		if (r != 0) {
			s->pending = false;
			break;
		}
		(void)nanosleep(&nap, NULL);
		took_ns = uni_now_ns() - begin_ns;
	}
	errno = EAGAIN;
	return -1;
}

int uni_thread_stop_tell(struct uni_thread_stop *s)
{
	if (ptrace(PTRACE_SEIZE, s->tid, NULL, NULL) != 0)
		return -1;
	s->pending = true;
	if (ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL) == 0)
		return 0;
	errno = EAGAIN;
	return -1;
}

int uni_thread_stop_begin(struct uni_thread_stop *s)
{
	return !s->pending && uni_thread_stop_tell(s) != 0 ? -1 : wait_for_stop(s);
}

int uni_thread_stop_regs(const struct uni_thread_stop *s, void *regs, size_t cap)
{
	struct iovec iov = { regs, cap };

	return ptrace(PTRACE_GETREGSET, s->tid, (void *)NT_PRSTATUS, &iov) == 0 ? (int)iov.iov_len
										: -1;
}

void uni_thread_stop_end(struct uni_thread_stop *s)
{
	if (!s->held && s->pending)
		(void)wait_for_stop(s);
	if (s->held)
		(void)ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->signal);
	s->held = false;
}
