/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/opener.h"
#include "base/side.h"

int64_t uni_side_ask(int to, const struct uni_side_talk *t, int *fd_ret)
{
	int64_t result = -EIO;

	*fd_ret = -1;
	(void)pthread_mutex_lock(t->asking);
	if (uni_side_send(to, t->request, t->request_size, t->fd) &&
		uni_side_receive(to, t->reply, t->reply_size, fd_ret))
		memcpy(&result, t->reply, sizeof(result));
	(void)pthread_mutex_unlock(t->asking);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* The guests' descriptors are none of the child's business. */
static int keep_only(struct uni_opener_job *job)
{
	if (dup2(job->socket, STDIN_FILENO) < 0 || dup2(job->ready, STDOUT_FILENO) < 0)
		return -1;
	job->socket = STDIN_FILENO;
	job->ready = STDOUT_FILENO;
	return close_range(STDERR_FILENO + 1, ~0u, 0);
}

static bool is_as_safe(const struct stat *st, const struct stat *own)
{
	return (st->st_uid == 0 || st->st_uid == own->st_uid) &&
	       (st->st_mode & 022 & ~own->st_mode) == 0;
}

/* Whoever may change the program, or put another one there, must be one who may change this one. */
static int open_program(void)
{
	static const char *const places[] = { "", "../libexec/uniscope/" };
	struct stat own, st;
	char exe[PATH_MAX - 64], path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (len <= 0 || stat("/proc/self/exe", &own) != 0)
		return -1;
	exe[len] = '\0';
	*(strrchr(exe, '/') + 1) = '\0';
	for (size_t i = 0; i < uni_array_len(places); i++) {
		_cleanup_close_ int dir = -1, fd = -1;

		(void)snprintf(path, sizeof(path), "%s%s", exe, places[i]);
		dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 || fstat(dir, &st) != 0 || !is_as_safe(&st, &own))
			continue;
		fd = openat(dir, UNI_OPENER_PROGRAM, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_as_safe(&st, &own))
			return uni_take_fd(&fd);
	}
	return -1;
}

static void keep_on_exec(int fd)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, 0);
}

/* Returns if there is no such program: a single file was copied, or an upgrade is going on. */
static void execute_program(const struct uni_opener_job *job)
{
	char text[128], *argv[] = { (char[]){ UNI_OPENER_PROGRAM }, text, NULL }, *env[] = { NULL };
	struct uni_err err = { 0 };
	int fd = open_program();

	(void)snprintf(text, sizeof(text), UNI_OPENER_JOB, uni_opener_id, (int)job->kind, job->caps,
		job->pid, job->rules, job->socket, job->ready, job->parent);
	if (fd < 0 || uni_caps_keep(job->caps, true, &err) != 0)
		return;
	keep_on_exec(job->rules);
	keep_on_exec(job->socket);
	keep_on_exec(job->ready);
	(void)fexecve(fd, argv, env);
}

/* As the program would have begun: an end of a pipe that stays open here would keep its reader. */
static void close_rest(const struct uni_opener_job *job)
{
	int next = STDERR_FILENO + 1, keep;

	do {
		const int all[] = { job->rules, job->socket, job->ready };

		keep = -1;
		for (size_t i = 0; i < uni_array_len(all); i++) {
			if (all[i] >= next && (keep < 0 || all[i] < keep))
				keep = all[i];
		}
		if (keep != next)
			(void)close_range((unsigned)next, keep < 0 ? ~0u : (unsigned)keep - 1, 0);
		next = keep + 1;
	} while (keep >= 0);
}

static _Noreturn void run_child(struct uni_opener_job *job)
{
	sigset_t all;

	/* A Ctrl-C is meant for its caller. SIGSYS is the filter's. */
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGSYS);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (job->kind != UNI_OPENER_FILES && keep_only(job) != 0)
		_exit(1);
	execute_program(job);
	close_rest(job);
	uni_opener_run(job);
}

static void close_both(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			(void)close(fd[i]);
	}
}

/* It has closed its end without a word. */
static int explain_end(pid_t pid, struct uni_err *err)
{
	int status = 0;
	pid_t r;

	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	if (r == pid && WIFEXITED(status) && WEXITSTATUS(status) == UNI_OPENER_OTHER)
		return uni_err_set(err, UNI_EPERM,
			"the " UNI_OPENER_PROGRAM " beside uniscope is of another build: install "
			"both of one build, or start uniscope again after an upgrade");
	return uni_err_set(
		err, UNI_EPERM, "the process that opens files cannot give up its rights");
}

int uni_side_begin(struct uni_opener_job *job, int *fd_ret, struct uni_err *err)
{
	int pair[2] = { -1, -1 }, ready[2] = { -1, -1 };
	pid_t pid = -1;
	ssize_t n;
	bool ok;
	char c;

	job->parent = getpid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
		pipe2(ready, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		(void)close(ready[0]);
		job->socket = pair[1];
		job->ready = ready[1];
		run_child(job);
	}
	if (pid < 0) {
		int e = errno;

		close_both(pair);
		close_both(ready);
		return uni_err_set(
			err, UNI_EIO, "cannot start the process that opens files: %s", strerror(e));
	}
	(void)close(pair[1]);
	(void)close(ready[1]);
	do
		n = read(ready[0], &c, 1);
	while (n < 0 && errno == EINTR);
	ok = n == 1;
	(void)close(ready[0]);
	if (ok)
		*fd_ret = pair[0];
	else
		(void)close(pair[0]);
	return ok ? 0 : explain_end(pid, err);
}
