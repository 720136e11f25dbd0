/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/serve_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

/* Tells the child its parent: a program with capabilities loses PR_SET_PDEATHSIG when it begins. */
#define PARENT "UNISCOPE_PARENT"

void uni_serve_child_begin(void)
{
	const char *text = getenv(PARENT);
	uint64_t parent;

	if (text == NULL || !uni_parse_u64(text, &parent))
		return;
	(void)unsetenv(PARENT);
	(void)prctl(PR_SET_PDEATHSIG, SIGINT);
	if ((uint64_t)getppid() != parent)
		_exit(1);
}

/* Calls only functions that are allowed between fork and exec. */
static _Noreturn void exec_child(const char *const *argv, int said, pid_t parent)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	/* It ends with us, and is not for the terminal's Ctrl-C: we pass that on. */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGINT);
	if (getppid() != parent)
		_exit(1);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(said, 2) < 0)
		_exit(1);
	(void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
	_exit(127);
}

int uni_serve_child_start(struct uni_serve_child *c, const char *const *argv, struct uni_err *err)
{
	pid_t parent = getpid();
	char text[24];
	int fd[2];

	*c = (struct uni_serve_child){ 0 };
	if (pipe2(fd, O_CLOEXEC) != 0)
		return uni_err_set(err, UNI_EIO, "cannot make a pipe: %s", strerror(errno));
	(void)snprintf(text, sizeof(text), "%d", (int)parent);
	(void)setenv(PARENT, text, 1);
	c->pid = fork();
	if (c->pid == 0)
		exec_child(argv, fd[1], parent);
	(void)unsetenv(PARENT);
	(void)close(fd[1]);
	if (c->pid < 0) {
		c->pid = 0;
		(void)close(fd[0]);
		return uni_err_set(err, UNI_EIO, "cannot fork: %s", strerror(errno));
	}
	(void)fcntl(fd[0], F_SETFL, O_NONBLOCK);
	c->fd = fd[0];
	return 0;
}

void uni_serve_child_ask_to_end(struct uni_serve_child *c)
{
	/* Once: after a second signal it could not write its data. */
	if (c->pid == 0 || c->asked)
		return;
	c->asked = true;
	(void)kill(c->pid, SIGINT);
}

/* The last line that is not empty. */
static void keep_last_line(struct uni_serve_child *c, const char *text, size_t len)
{
	static const char ours[] = "uniscope: ";

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n') {
			c->len = 0;
			continue;
		}
		if (c->len + 1 < sizeof(c->said)) {
			c->said[c->len++] = text[i];
			c->said[c->len] = '\0';
		}
	}
	if (strncmp(c->said, ours, sizeof(ours) - 1) == 0) {
		memmove(c->said, c->said + sizeof(ours) - 1, strlen(c->said) - sizeof(ours) + 2);
		c->len -= c->len >= sizeof(ours) - 1 ? sizeof(ours) - 1 : c->len;
	}
}

static void drain_child(struct uni_serve_child *c)
{
	char buf[512];
	ssize_t n;

	/* A bounded piece: what talks without end is asked again. */
	for (unsigned i = 0; i < 64 && (n = read(c->fd, buf, sizeof(buf))) > 0; i++)
		keep_last_line(c, buf, (size_t)n);
}

static void note_end_of_child(struct uni_serve_child *c)
{
	char clean[sizeof(c->said)];

	drain_child(c);
	(void)uni_text_clean(clean, sizeof(clean), c->said, strlen(c->said));
	memcpy(c->said, clean, sizeof(clean));
	(void)close(c->fd);
	c->pid = 0;
}

/* A recorder takes SIGINT from before there is anything of a session. */
static enum uni_serve_child_end end_of(const struct uni_serve_child *c, pid_t r, int status)
{
	if (r > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return UNI_CHILD_GOOD;
	if (r > 0 && c->asked && WIFSIGNALED(status) && WTERMSIG(status) == SIGINT)
		return UNI_CHILD_NEVER_BEGAN;
	return UNI_CHILD_FAILED;
}

enum uni_serve_child_end uni_serve_child_look(struct uni_serve_child *c)
{
	enum uni_serve_child_end end;
	int status = 0;
	pid_t r;

	if (c->pid == 0)
		return UNI_CHILD_RUNS;
	drain_child(c);
	r = waitpid(c->pid, &status, WNOHANG);
	if (r == 0 || (r < 0 && errno == EINTR))
		return UNI_CHILD_RUNS;
	end = end_of(c, r, status);
	note_end_of_child(c);
	return end;
}

enum uni_serve_child_end uni_serve_child_end(struct uni_serve_child *c)
{
	enum uni_serve_child_end end;
	int status = 0;
	pid_t r;

	if (c->pid == 0)
		return UNI_CHILD_RUNS;
	uni_serve_child_ask_to_end(c);
	do {
		r = waitpid(c->pid, &status, 0);
	} while (r < 0 && errno == EINTR);
	end = end_of(c, r, status);
	note_end_of_child(c);
	return end;
}
