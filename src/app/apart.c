/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/apart.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "app/signals.h"

#define NAP_NS (100 * UNI_NSEC_PER_MSEC) /* a child that ends, or a signal, ends it early */

struct answer {
	int rc;
	struct uni_err err;
};

void *uni_apart_share(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

void uni_apart_unshare(void *shared, size_t size)
{
	if (shared != NULL)
		(void)munmap(shared, size);
}

static _Noreturn void do_work(const struct uni_apart *a, struct answer *answer, pid_t parent)
{
	/* As a signal to this process would end it: what was recorded is kept. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	answer->rc = a->work(a->ctx, &answer->err);
	(void)fflush(NULL);
	_exit(0);
}

/*
 * A signal may have been meant for this process alone. A terminal sends its Ctrl-C to both, and
 * this process may come late: a second SIGINT would end the other one at once.
 */
static int wait_for_work(const struct uni_apart *a, pid_t pid, int *status_ret)
{
	const struct timespec nap = uni_ns_timespec(a->nap_ns != 0 ? a->nap_ns : NAP_NS);
	pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER; /* nothing is held */
	sigset_t child, old;
	bool told = false;
	pid_t r;

	/* Blocked, it is kept for sigtimedwait() if it comes before. */
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)pthread_sigmask(SIG_BLOCK, &child, &old);
	while ((r = waitpid(pid, status_ret, WNOHANG)) == 0 || (r < 0 && errno == EINTR)) {
		if (atomic_load(uni_signals_stop()) && !told)
			told = kill(pid, SIGHUP) == 0;
		uni_signals_suspend(&gate);
		if (a->idle != NULL)
			a->idle(a->ctx);
		(void)sigtimedwait(&child, NULL, &nap);
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r == pid && WIFEXITED(*status_ret) && WEXITSTATUS(*status_ret) == 0 ? 0 : -UNI_EIO;
}

int uni_apart_run(const struct uni_apart *a, struct uni_err *err)
{
	struct answer *answer = uni_apart_share(sizeof(*answer));
	pid_t parent = getpid(), pid = -1;
	int status = 0, rc;

	(void)fflush(NULL);
	if (answer != NULL)
		pid = fork();
	if (pid == 0)
		do_work(a, answer, parent);
	if (pid < 0)
		rc = uni_err_set(err, UNI_ENOMEM, "cannot start a process to %s: %s", a->what,
			strerror(errno));
	else if (wait_for_work(a, pid, &status) != 0)
		rc = uni_err_set(err, UNI_EIO,
			"the process that was to %s without rights has ended (%s %d)", a->what,
			WIFSIGNALED(status) ? "signal" : "status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	else {
		rc = answer->rc;
		answer->err.msg[sizeof(answer->err.msg) - 1] = '\0';
		if (rc != 0 && answer->err.code != 0)
			(void)uni_err_set(
				err, (enum uni_errcode)answer->err.code, "%s", answer->err.msg);
	}
	uni_apart_unshare(answer, sizeof(*answer));
	return rc;
}
