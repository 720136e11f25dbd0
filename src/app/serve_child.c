/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/serve_child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/side.h"
#include "base/strbuf.h"
#include "base/text.h"

/* Tells the child its parent: a program with capabilities loses PR_SET_PDEATHSIG when it begins. */
#define PARENT "UNISCOPE_PARENT"

#define ARGS_MAX 64

/* To the starter: a job to begin, or the end of the one that runs. */
#define END UNI_SERVE_JOBS
struct request {
	unsigned job, number;
};

/* From it: after each begin, and at each end. */
struct reply {
	int error, status; /* errno; its wait status */
};

char *uni_serve_path(const struct uni_serve_jobs *jobs, unsigned number)
{
	struct uni_strbuf b;

	if (jobs->output != NULL && number == 1)
		return strdup(jobs->output);
	uni_strbuf_init(&b);
	if (jobs->output == NULL) {
		uni_strbuf_addf(&b, "%s/%u.uniscope", jobs->folder, number);
	} else {
		size_t len = strlen(jobs->output);

		len -= len > 9 && strcmp(jobs->output + len - 9, ".uniscope") == 0 ? 9 : 0;
		uni_strbuf_addf(&b, "%.*s-%u.uniscope", (int)len, jobs->output, number);
	}
	return uni_strbuf_detach(&b);
}

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

/* Returns the descriptor of its messages; -1 and errno. */
static int start_recorder(
	const struct uni_serve_jobs *jobs, const struct request *q, pid_t *pid_ret)
{
	const char *const *argv = jobs->argv[q->job];
	_cleanup_free_ char *path = uni_serve_path(jobs, q->number);
	const char *all[ARGS_MAX + 3] = { 0 };
	pid_t parent = getpid();
	char text[24];
	size_t nr = 0;
	int fd[2];

	for (; nr < ARGS_MAX && argv[nr] != NULL; nr++)
		all[nr] = argv[nr];
	all[nr++] = "-o";
	all[nr] = path;
	if (path == NULL || pipe2(fd, O_CLOEXEC) != 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%d", (int)parent);
	(void)setenv(PARENT, text, 1);
	*pid_ret = fork();
	if (*pid_ret == 0)
		exec_child(all, fd[1], parent);
	(void)close(fd[1]);
	if (*pid_ret > 0)
		return fd[0];
	*pid_ret = 0;
	(void)close(fd[0]);
	return -1;
}

/* It ends with us: by the signal of its parent's death. */
static bool serve_request(int server, const struct uni_serve_jobs *jobs, pid_t *pid)
{
	struct request q;
	struct reply r = { 0 };
	int fd, none;
	bool sent;

	if (!uni_side_receive(server, &q, sizeof(q), &none))
		return false;
	if (none >= 0)
		(void)close(none);
	if (*pid != 0 || q.job >= UNI_SERVE_JOBS) {
		/* Once: after a second signal it could not write its data. */
		if (*pid != 0 && q.job == END)
			(void)kill(*pid, SIGINT);
		return true;
	}
	fd = start_recorder(jobs, &q, pid);
	r.error = fd < 0 ? errno : 0;
	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	sent = uni_side_send(server, &r, sizeof(r), fd);
	if (fd >= 0)
		(void)close(fd);
	return sent;
}

static bool tell_end(int server, pid_t pid)
{
	struct reply r = { 0 };
	pid_t n;

	do
		n = waitpid(pid, &r.status, 0);
	while (n < 0 && errno == EINTR);
	r.error = n < 0 ? errno : 0;
	return uni_side_send(server, &r, sizeof(r), -1);
}

static _Noreturn void run_starter(int server, const struct uni_serve_jobs *jobs)
{
	struct pollfd p[] = { { .fd = server, .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	pid_t pid = 0;
	bool good = true;
	sigset_t all;

	/* A Ctrl-C is for the server. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "uni-starter");
	while (good) {
		if (poll(p, uni_array_len(p), -1) <= 0)
			continue;
		if (p[1].revents != 0) {
			good = tell_end(server, pid);
			pid = 0;
			(void)close(p[1].fd);
			p[1].fd = -1;
		} else if (p[0].revents != 0) {
			good = serve_request(server, jobs, &pid);
			if (pid != 0 && p[1].fd < 0)
				p[1].fd = (int)syscall(SYS_pidfd_open, pid, 0u);
		}
	}
	_exit(0);
}

int uni_serve_child_open(
	struct uni_serve_child *c, const struct uni_serve_jobs *jobs, struct uni_err *err)
{
	pid_t pid;
	int fd[2];

	*c = (struct uni_serve_child){ 0 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0)
		return uni_err_set(err, UNI_EIO, "cannot make a socket: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		(void)close(fd[0]);
		run_starter(fd[1], jobs);
	}
	(void)close(fd[1]);
	if (pid < 0) {
		(void)close(fd[0]);
		return uni_err_set(err, UNI_EIO, "cannot fork: %s", strerror(errno));
	}
	c->starter = fd[0];
	return 0;
}

void uni_serve_child_close(struct uni_serve_child *c)
{
	if (c->starter > 0)
		(void)close(c->starter);
	c->starter = 0;
}

int uni_serve_child_start(
	struct uni_serve_child *c, enum uni_serve_job job, unsigned number, struct uni_err *err)
{
	const struct request q = { job, number };
	struct reply r = { 0 };
	int fd = -1;

	*c = (struct uni_serve_child){ .starter = c->starter };
	if (!uni_side_send(c->starter, &q, sizeof(q), -1) ||
		!uni_side_receive(c->starter, &r, sizeof(r), &fd))
		return uni_err_set(err, UNI_EIO, "the process that starts recorders has ended");
	if (r.error != 0 || fd < 0)
		return uni_err_set(err, UNI_EIO, "cannot start a recorder: %s", strerror(r.error));
	c->fd = fd;
	c->runs = true;
	return 0;
}

void uni_serve_child_ask_to_end(struct uni_serve_child *c)
{
	const struct request q = { .job = END };

	if (!c->runs || c->asked)
		return;
	c->asked = true;
	(void)uni_side_send(c->starter, &q, sizeof(q), -1);
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
	c->runs = false;
}

/* A recorder takes SIGINT from before there is anything of a session. */
static enum uni_serve_child_end end_of(const struct uni_serve_child *c, const struct reply *r)
{
	if (r->error == 0 && WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0)
		return UNI_CHILD_GOOD;
	if (r->error == 0 && c->asked && WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGINT)
		return UNI_CHILD_NEVER_BEGAN;
	return UNI_CHILD_FAILED;
}

/* The starter's word about the end. */
static enum uni_serve_child_end take_end(struct uni_serve_child *c)
{
	struct reply r = { 0 };
	int none = -1;

	if (!uni_side_receive(c->starter, &r, sizeof(r), &none))
		r.error = EIO;
	if (none >= 0)
		(void)close(none);
	note_end_of_child(c);
	return end_of(c, &r);
}

enum uni_serve_child_end uni_serve_child_look(struct uni_serve_child *c)
{
	struct pollfd p = { .fd = c->starter, .events = POLLIN };

	if (!c->runs)
		return UNI_CHILD_RUNS;
	drain_child(c);
	return poll(&p, 1, 0) > 0 ? take_end(c) : UNI_CHILD_RUNS;
}

enum uni_serve_child_end uni_serve_child_end(struct uni_serve_child *c)
{
	if (!c->runs)
		return UNI_CHILD_RUNS;
	uni_serve_child_ask_to_end(c);
	return take_end(c);
}
