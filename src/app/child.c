/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/door.h"
#include "base/io.h"
#include "base/outdir.h"
#include "base/text.h"
#include "app/term.h"

#define NAP_NS	(10 * UNI_NSEC_PER_MSEC)
#define STOP_NS (3 * UNI_NSEC_PER_SEC)
#define KILL_NS (10 * UNI_NSEC_PER_SEC)

static void sleep_a_bit(void)
{
	struct timespec ts = uni_ns_timespec(NAP_NS);

	(void)nanosleep(&ts, NULL);
}

void uni_child_add(struct uni_child_args *a, const char *word)
{
	char *copy = strdup(word);

	if (copy == NULL || !uni_vec_push(&a->v, copy)) {
		free(copy);
		a->failed = true;
	}
}

void uni_child_args_deinit(struct uni_child_args *a)
{
	uni_vec_foreach (p, &a->v)
		free(*p);
	uni_vec_free(&a->v);
}

static void quote_word(const char *word, struct uni_strbuf *ret)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_=+,./:@%";

	if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
		uni_strbuf_adds(ret, word);
		return;
	}
	uni_strbuf_addc(ret, '\'');
	for (; *word != '\0'; word++) {
		if (*word == '\'')
			uni_strbuf_adds(ret, "'\\'");
		uni_strbuf_addc(ret, *word);
	}
	uni_strbuf_addc(ret, '\'');
}

void uni_child_quote(const struct uni_child_args *a, struct uni_strbuf *ret)
{
	for (size_t i = 0; i < a->v.nr && a->v.v[i] != NULL; i++) {
		if (i != 0)
			uni_strbuf_addc(ret, ' ');
		quote_word(a->v.v[i], ret);
	}
}

int uni_child_console(const char *path, int *fd_ret, struct uni_err *err)
{
	_cleanup_(uni_outdir_close) struct uni_outdir dir = { .fd = -1 };
	int rc = uni_outdir_open(AT_FDCWD, path, true, &dir, err);

	if (rc != 0)
		return rc;
	*fd_ret = openat(dir.fd, dir.name,
		O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (dir.magic ? 0 : O_NOFOLLOW), 0600);
	if (*fd_ret < 0)
		return uni_err_set(err, errno == EACCES || errno == EROFS ? UNI_EPERM : UNI_EIO,
			"cannot write %s, where the guest's console goes: %s (--console FILE "
			"names another)",
			path, strerror(errno));
	return 0;
}

/* In the child. */
static void exec_child(const struct uni_child_args *a, int out, pid_t parent)
{
	int in = open("/dev/null", O_RDONLY);
	struct uni_err err = { 0 };

	if (uni_child_give_up_rights(a->v.v[0], &a->rights, &err) != 0) {
		(void)dprintf(out, "%s\n", err.msg);
		_exit(126);
	}
	/* Ends with us even if we are killed; checked against a parent that is already gone. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || in < 0)
		_exit(126);
	/* Ctrl-C is for us: the guest has to live until the recording is written. */
	(void)setpgid(0, 0);
	(void)dup2(in, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)dup2(out, STDERR_FILENO);
	(void)execvp(a->v.v[0], a->v.v);
	_exit(127);
}

int uni_child_start(
	struct uni_child_args *a, int console, const char *what, pid_t *ret, struct uni_err *err)
{
	pid_t parent = getpid(), pid = -1;
	int gate[2];
	char none;

	if (pipe2(gate, O_CLOEXEC) != 0)
		return uni_err_set(err, UNI_EIO, "cannot start %s: %s", what, strerror(errno));
	if (!uni_vec_push(&a->v, NULL))
		a->failed = true;
	if (!a->failed)
		pid = fork();
	if (pid == 0)
		exec_child(a, console, parent);
	/* It is that program from here on: exec closes the other end. */
	(void)close(gate[1]);
	while (pid > 0 && read(gate[0], &none, 1) < 0 && errno == EINTR)
		;
	(void)close(gate[0]);
	if (pid < 0)
		return uni_err_set(err, UNI_ENOMEM, "cannot start %s: %s", what, strerror(errno));
	*ret = pid;
	return 0;
}

bool uni_child_ended(pid_t *pid, int *status_ret)
{
	int status = 0;
	pid_t r;

	if (*pid <= 0)
		return true;
	r = waitpid(*pid, &status, WNOHANG);
	/* A thread that is traced by us reports its stops, too. ECHILD: collected as such a thread.
	 */
	if (r == 0 || (r < 0 && errno != ECHILD) || (r > 0 && WIFSTOPPED(status)))
		return false;
	*status_ret = r > 0 ? status : 0;
	*pid = 0;
	return true;
}

void uni_child_tell(pid_t *pid, struct uni_child_fate *fate)
{
	if (*pid > 0 && uni_child_ended(pid, &fate->status))
		fate->ended = true;
}

bool uni_child_has_ended(const struct uni_child_fate *fate, pid_t *pid, int *status_ret)
{
	if (fate == NULL)
		return uni_child_ended(pid, status_ret);
	if (*pid > 0 && !fate->ended)
		return false;
	if (fate->ended)
		*status_ret = fate->status;
	*pid = 0;
	return true;
}

bool uni_child_is_ending(const struct uni_child_fate *fate, pid_t *pid, int *status_ret)
{
	uint64_t until = uni_now_ns() + STOP_NS;

	while (!uni_child_has_ended(fate, pid, status_ret)) {
		if (!uni_process_is_ending(*pid) || uni_now_ns() > until)
			return false;
		sleep_a_bit();
	}
	return true;
}

bool uni_child_ending(pid_t *pid, int *status_ret)
{
	return uni_child_is_ending(NULL, pid, status_ret);
}

/* Ended threads that we traced, should any be left: uncollected they keep a VMM a zombie. */
static void collect_threads(pid_t *pid)
{
	int status;
	pid_t r;

	while ((r = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (r == *pid && !WIFSTOPPED(status))
			*pid = 0;
	}
}

void uni_child_end(pid_t *pid, const char *what)
{
	uint64_t begin = uni_now_ns(), took = 0;
	int status;

	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGTERM);
	while (!uni_child_ended(pid, &status) && took < STOP_NS + KILL_NS) {
		if (took > STOP_NS) {
			(void)kill(*pid, SIGKILL);
			collect_threads(pid);
		}
		sleep_a_bit();
		took = uni_now_ns() - begin;
	}
	if (*pid > 0)
		uni_note("%s, pid %d, was killed and does not end: not waiting for it", what,
			(int)*pid);
	*pid = 0;
}

/* The end of what was written; its length, -1. */
static ssize_t read_console(const char *console, char *buf, size_t cap)
{
	_cleanup_close_ int fd = uni_door_openat(AT_FDCWD, console, O_RDONLY | O_CLOEXEC, 0);
	ssize_t len;

	if (fd < 0)
		return -1;
	if (lseek(fd, -(off_t)(cap - 1), SEEK_END) < 0)
		(void)lseek(fd, 0, SEEK_SET);
	len = read(fd, buf, cap - 1);
	if (len >= 0)
		buf[len] = '\0';
	return len;
}

void uni_child_last_words(const char *console, char *ret, size_t cap)
{
	char buf[512];
	ssize_t len = read_console(console, buf, sizeof(buf));
	char *line;

	(void)snprintf(ret, cap, "nothing");
	while (len > 0 && (buf[len - 1] == '\n' || buf[len - 1] == '\r'))
		len--;
	if (len <= 0)
		return;
	buf[len] = '\0';
	line = strrchr(buf, '\n');
	(void)uni_text_clean(
		ret, cap, line != NULL ? line + 1 : buf, strlen(line != NULL ? line + 1 : buf));
}

bool uni_child_has_said(const char *console, const char *words)
{
	char buf[16384];
	ssize_t len = read_console(console, buf, sizeof(buf));

	return len > 0 && memmem(buf, (size_t)len, words, strlen(words)) != NULL;
}

bool uni_child_line(const char *console, const char *begin, char *ret, size_t cap)
{
	char buf[16384];
	ssize_t len = read_console(console, buf, sizeof(buf));
	const char *line = len > 0 ? memmem(buf, (size_t)len, begin, strlen(begin)) : NULL;

	if (line == NULL)
		return false;
	(void)uni_text_clean(ret, cap, line, strcspn(line, "\r\n"));
	return true;
}
