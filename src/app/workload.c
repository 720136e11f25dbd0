/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/workload.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/signals.h"
#include "app/term.h"

#define PATIENCE_S 10 /* from SIGTERM to SIGKILL */

/* From the keeper, once: the end of the command, or why it did not begin. */
struct report {
	int why; /* errno of exec */
	int status;
	uint64_t end_ns;
};

/* Ours only set a flag. */
static void use_default_signals(void)
{
	sigset_t none;

	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void exec_workload(char *const *argv, int gate, pid_t parent)
{
	struct report r = { 0 };

	use_default_signals();
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(126);
	(void)execvp(argv[0], argv);
	r.why = errno;
	(void)send(gate, &r, sizeof(r), MSG_NOSIGNAL);
	_exit(127);
}

/* Until the command ends. A byte is a request to end it: 't' at first, 'k'; so is our end. */
static void pass_requests(int gate, pid_t pid, int pidfd)
{
	struct pollfd p[] = { { .fd = pidfd, .events = POLLIN }, { .fd = gate, .events = POLLIN } };

	for (;;) {
		char word = 't';
		ssize_t n;

		if (poll(p, uni_array_len(p), -1) <= 0)
			continue;
		if (p[0].revents != 0)
			return;
		n = recv(gate, &word, 1, 0);
		(void)kill(pid, word == 'k' ? SIGKILL : SIGTERM);
		if (n <= 0)
			p[1].fd = -1;
	}
}

/*
 * The command's parent has the rights of the caller, also when the recorder has given up its own.
 * A Ctrl-C is for the command and the recorder.
 */
static _Noreturn void keep_workload(char *const *argv, int gate, pid_t recorder)
{
	struct report r = { 0 };
	pid_t self = getpid(), pid = -1;
	int pidfd = -1, status = 0;
	char word;

	(void)prctl(PR_SET_NAME, "uni-command");
	if (getppid() != recorder || recv(gate, &word, 1, 0) != 1)
		_exit(126);
	pid = fork();
	if (pid == 0)
		exec_workload(argv, gate, self);
	pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0u) : -1;
	if (pidfd >= 0)
		pass_requests(gate, pid, pidfd);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	r.why = pid < 0 ? EAGAIN : 0;
	r.end_ns = uni_now_ns();
	r.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	(void)send(gate, &r, sizeof(r), MSG_NOSIGNAL);
	_exit(0);
}

/* The words, cleaned, as far as they fit. */
static void join_words(char *const *argv, char *ret, size_t cap)
{
	size_t len = 0;

	ret[0] = '\0';
	for (size_t i = 0; argv[i] != NULL && len + 2 < cap; i++) {
		if (i != 0)
			ret[len++] = ' ';
		(void)uni_text_clean(ret + len, cap - len, argv[i], strlen(argv[i]));
		len += strlen(ret + len);
	}
}

int uni_workload_prepare(struct uni_workload *w, char *const *argv, struct uni_err *err)
{
	pid_t parent = getpid();
	sigset_t all, old;
	int fd[2];

	if (argv == NULL)
		return 0;
	join_words(argv, w->work.command, sizeof(w->work.command));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return uni_err_set(err, UNI_EIO, "cannot make a socket: %s", strerror(errno));
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	w->pid = fork();
	if (w->pid == 0) {
		(void)close(fd[0]);
		keep_workload(argv, fd[1], parent);
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	(void)close(fd[1]);
	w->gate = fd[0];
	if (w->pid > 0)
		return 0;
	w->pid = 0;
	(void)close(w->gate);
	return uni_err_set(err, UNI_EIO, "cannot fork: %s", strerror(errno));
}

/* A thread of its own, so that the end of the command is seen at once. */
static void *wait_for_workload(void *arg)
{
	struct uni_workload *w = arg;
	struct report r = { .status = 128 + SIGKILL }; /* of the keeper, if it says nothing */
	ssize_t n;

	do
		n = recv(w->gate, &r, sizeof(r), 0);
	while (n < 0 && errno == EINTR);
	atomic_store(&w->failed, r.why);
	w->work.end_ns = n == (ssize_t)sizeof(r) ? r.end_ns : uni_now_ns();
	w->work.status = r.status;
	atomic_store(&w->ended, true);
	uni_signals_ask_to_stop();
	return NULL;
}

void uni_workload_go(struct uni_workload *w)
{
	if (w == NULL || w->pid == 0 || atomic_exchange(&w->begun, true))
		return;
	w->work.begin_ns = uni_now_ns();
	if (pthread_create(&w->waiter, NULL, wait_for_workload, w) != 0) {
		atomic_store(&w->failed, EAGAIN);
		atomic_store(&w->begun, false);
		uni_signals_ask_to_stop();
		return;
	}
	(void)send(w->gate, "", 1, MSG_NOSIGNAL);
}

static void end_workload(struct uni_workload *w)
{
	struct timespec until;

	if (!atomic_load(&w->ended)) {
		uni_note("the recording is over, and %s is not: it gets SIGTERM", w->work.command);
		(void)send(w->gate, "t", 1, MSG_NOSIGNAL);
	}
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	if (pthread_timedjoin_np(w->waiter, NULL, &until) == 0)
		return;
	(void)send(w->gate, "k", 1, MSG_NOSIGNAL);
	(void)pthread_join(w->waiter, NULL);
}

int uni_workload_finish(struct uni_workload *w, struct uni_err *err)
{
	int why;

	if (w == NULL || w->pid == 0)
		return 0;
	if (atomic_load(&w->begun))
		end_workload(w);
	(void)close(w->gate);
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		;
	w->pid = 0;
	why = atomic_load(&w->failed);
	if (why != 0)
		return uni_err_set(err, why == ENOENT ? UNI_ENOENT : UNI_EIO, "cannot run '%s': %s",
			w->work.command, strerror(why));
	if (!atomic_load(&w->begun))
		w->work.command[0] = '\0';
	if (w->work.status != 0)
		uni_note("'%s' failed (status %d): do not compare this session as known work",
			w->work.command, w->work.status);
	return 0;
}
