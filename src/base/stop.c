/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/stop.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define STOP_NS (100 * UNI_NSEC_PER_MSEC)
#define NAP_NS	20000u
#define MEET_NS 50000u
#define MORE_NS 450000u /* at most, so that no program is in step with it */

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

static bool read_file(int tid, const char *name, char text[64])
{
	char path[48];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, 63);
		(void)close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/*
 * Sleeps a moment on the CPU of the thread. The timer's interrupt that ends the sleep finds it at
 * any place, and while we run there, it does not. Returns 0; ECANCELED: it sleeps now; EBUSY: it
 * did not run meanwhile.
 */
static int meet_thread(struct uni_thread_stop *s)
{
	const struct timespec nap = uni_ns_timespec(MEET_NS + uni_now_ns() * 7919 % MORE_NS);
	char before[64], after[64];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)s->near - 1, &one); /* none, if there is no room for its number */
	if (sched_setaffinity(0, sizeof(one), &one) != 0 || !read_file(s->tid, "schedstat", before))
		return 0;
	(void)nanosleep(&nap, NULL);
	/* "running", or a number */
	if (read_file(s->tid, "syscall", after) && after[0] != 'r')
		return ECANCELED;
	/* Time on a CPU, and more; "0" if the kernel does not count that. */
	return read_file(s->tid, "schedstat", after) && after[0] != '0' &&
			       strcmp(before, after) == 0
		       ? EBUSY
		       : 0;
}

/* Returns 0, or an errno. */
static int tell_to_stop(struct uni_thread_stop *s)
{
	if (ptrace(PTRACE_SEIZE, s->tid, NULL, NULL) != 0)
		return errno;
	s->pending = true;
	s->told_ns = uni_now_ns();
	return ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL) == 0 ? 0 : EAGAIN;
}

int uni_thread_stop_begin(struct uni_thread_stop *s)
{
	cpu_set_t old;
	bool near = s->near > 0 && sched_getaffinity(0, sizeof(old), &old) == 0;
	int e;

	if (s->pending)
		return wait_for_stop(s);
	e = near ? meet_thread(s) : 0;
	e = e == 0 ? tell_to_stop(s) : e;
	if (near)
		(void)sched_setaffinity(0, sizeof(old), &old);
	errno = e;
	return e == 0 ? wait_for_stop(s) : -1;
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
