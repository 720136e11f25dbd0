/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/hold.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <linux/kvm.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/io.h"

/*
 * A nap is short enough that a stop of the guest is not noticed. The awaited thread may itself wait
 * for a CPU, even for this one, and naps must leave it one. So naps grow with the time that has
 * passed.
 */
#define SPIN_NS	   (25 * UNI_NSEC_PER_USEC)
#define SPIN_PAUSE 30 /* after a wait that spun in vain, so many waits nap at once */
#define NAP_NS	   (50 * UNI_NSEC_PER_USEC)
#define NAP_PART   8
#define NAP_MAX_NS UNI_NSEC_PER_MSEC

int uni_hold_seize(struct uni_hold *h)
{
	if (ptrace(PTRACE_SEIZE, h->tid, NULL, NULL) != 0)
		return errno == ESRCH ? -UNI_EGONE : -UNI_EPERM;
	h->state = UNI_HOLD_SEIZED;
	h->sig = 0;
	h->interrupted = false;
	return 0;
}

int uni_hold_ask(struct uni_hold *h)
{
	h->state = UNI_HOLD_ASKED; /* also if it is dying: poll collects its end */
	return ptrace(PTRACE_INTERRUPT, h->tid, NULL, NULL) == 0 ? 0 : -UNI_EGONE;
}

/* Collects the end of a traced thread; otherwise the VMM's parent would wait for us. */
static void collect_ended_thread(struct uni_hold *h)
{
	siginfo_t si = { 0 };

	if (waitid(P_PID, (id_t)h->tid, &si, WEXITED | WNOHANG | __WALL) != 0 || si.si_pid != 0)
		h->state = UNI_HOLD_FREE;
	else
		h->state = UNI_HOLD_DYING;
}

int uni_hold_poll(struct uni_hold *h)
{
	siginfo_t si = { 0 };

	if (h->state == UNI_HOLD_DYING) {
		collect_ended_thread(h);
		return -UNI_EGONE;
	}
	if (waitid(P_PID, (id_t)h->tid, &si, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) !=
		0) {
		h->state = UNI_HOLD_FREE; /* ECHILD: it is no longer ours */
		return -UNI_EGONE;
	}
	if (si.si_pid == 0)
		return -UNI_EAGAIN;
	if (si.si_code != CLD_TRAPPED && si.si_code != CLD_STOPPED) {
		collect_ended_thread(h);
		return -UNI_EGONE;
	}
	/*
	 * Either stop is fine. A job-control stop is an event as well, and continues after DETACH.
	 */
	h->interrupted = si.si_status >> 8 == PTRACE_EVENT_STOP && (si.si_status & 0xff) == SIGTRAP;
	h->sig = si.si_status >> 8 == 0 ? si.si_status : 0;
	h->state = UNI_HOLD_STOPPED;
	return 0;
}

/* Is spinning worth it? Not if it was in vain recently. */
static bool may_spin(struct uni_hold *const *h, uint32_t nr)
{
	bool spin = true;

	for (uint32_t i = 0; i < nr; i++) {
		if (h[i]->spin_pause == 0)
			continue;
		h[i]->spin_pause--;
		spin = false;
	}
	return spin;
}

static void spin_failed(struct uni_hold *const *h, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		if (h[i]->state == UNI_HOLD_ASKED)
			h[i]->spin_pause = SPIN_PAUSE;
	}
}

void uni_hold_wait(struct uni_hold *const *h, uint32_t nr, uint64_t deadline_ns)
{
	uint64_t begin = uni_now_ns();
	bool spin = may_spin(h, nr);
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);

	for (;;) {
		uint32_t waiting = 0;
		struct timespec ts;
		uint64_t now, nap;

		for (uint32_t i = 0; i < nr; i++)
			waiting +=
				h[i]->state == UNI_HOLD_ASKED && uni_hold_poll(h[i]) == -UNI_EAGAIN;
		if (waiting == 0)
			return;
		now = uni_now_ns();
		if (now >= deadline_ns)
			return;
		if (spin && now - begin < SPIN_NS)
			continue;
		if (spin)
			spin_failed(h, nr);
		spin = false;
		nap = uni_min(uni_max((now - begin) / NAP_PART, NAP_NS), NAP_MAX_NS);
		ts = uni_ns_timespec(nap);
		/* A stop sends SIGCHLD, which ends this nap at once if the caller blocks it. */
		(void)sigtimedwait(&child, NULL, &ts);
	}
}

void uni_hold_let_go(struct uni_hold *h)
{
	switch ((enum uni_hold_state)h->state) {
	case UNI_HOLD_FREE:
		return;
	case UNI_HOLD_DYING:
		collect_ended_thread(h);
		return;
	case UNI_HOLD_SEIZED: /* a running thread cannot be detached */
		(void)uni_hold_ask(h);
		return;
	case UNI_HOLD_ASKED:
		return;
	case UNI_HOLD_STOPPED:
		if (ptrace(PTRACE_DETACH, h->tid, NULL, (void *)(intptr_t)h->sig) == 0)
			h->state = UNI_HOLD_FREE;
		else
			collect_ended_thread(h); /* it was killed while stopped */
		return;
	}
}

/* Does the kernel show KVM_RUN at the stop: ioctl(fd, KVM_RUN, 0)? */
static bool regs_in_run(const struct user_regs_struct *r)
{
	return r->orig_rax == SYS_ioctl && (uint32_t)r->rsi == KVM_RUN;
}

bool uni_hold_in_run(struct uni_hold *h, int *fd_ret)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, h->tid, NULL, &r) != 0 || !regs_in_run(&r))
		return false;
	*fd_ret = (int)r.rdi;
	return true;
}

/*
 * Is this a call that returns EINTR after any stop, without having done anything (signal(7))? The
 * kernel restarts poll() and the like by itself.
 */
static bool may_begin_again(const struct user_regs_struct *r)
{
	return regs_in_run(r) || r->orig_rax == SYS_epoll_wait || r->orig_rax == SYS_epoll_pwait ||
	       r->orig_rax == SYS_epoll_pwait2;
}

int uni_hold_restart(struct uni_hold *h)
{
	struct user_regs_struct r;

	if (!h->interrupted)
		return 0;
	if (ptrace(PTRACE_GETREGS, h->tid, NULL, &r) != 0)
		return -UNI_EGONE;
	if (r.rax != (unsigned long long)-EINTR || !may_begin_again(&r))
		return 0;
	r.rip -= 2; /* the length of the SYSCALL instruction */
	r.rax = r.orig_rax;
	r.orig_rax = (unsigned long long)-1;
	return ptrace(PTRACE_SETREGS, h->tid, NULL, &r) == 0 ? 0 : -UNI_EGONE;
}

bool uni_hold_end(struct uni_hold *h, bool restart, uint64_t deadline_ns)
{
	const struct timespec nap = uni_ns_timespec(NAP_MAX_NS);

	for (;;) {
		if (h->state == UNI_HOLD_ASKED)
			(void)uni_hold_poll(h);
		if (h->state == UNI_HOLD_STOPPED && restart)
			(void)uni_hold_restart(h);
		uni_hold_let_go(h);
		if (h->state == UNI_HOLD_FREE)
			return true;
		if (uni_now_ns() >= deadline_ns)
			return false;
		(void)nanosleep(&nap, NULL);
	}
}

int uni_tracer_of(int pid, int tid)
{
	char path[64], buf[2048];
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	if (uni_read_small(path, buf, sizeof(buf)) <= 0)
		return -1;
	line = strstr(buf, "\nTracerPid:\t");
	return line != NULL ? (int)strtol(line + 12, NULL, 10) : -1;
}
