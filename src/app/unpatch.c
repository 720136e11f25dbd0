/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/unpatch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "backend/helper.h"
#include "tracing/lock.h"

#define NAP_NS (50 * UNI_NSEC_PER_MSEC)
#define TRY_NS (30 * UNI_NSEC_PER_SEC)

enum { ARMED = 1, ENDS };

/* "trace stop" of the guest. The words are copies: the guardian erases its command line. */
static char **stop_words(const char *target, const struct uni_tracing_args *a)
{
	const char *image = uni_images_first(&a->images);
	const size_t nr_dirs = a->debug_dirs.items.nr;
	char **argv = calloc(11 + 2 * nr_dirs, sizeof(*argv));
	size_t nr = 0;

	if (argv == NULL)
		return NULL;
#define ADD(word) (argv[nr++] = strdup(word))
	ADD("uniscope");
	ADD("trace");
	ADD("stop");
	if (image != NULL) {
		ADD("--image");
		ADD(image);
	}
	if (a->head != NULL) {
		ADD("--head");
		ADD(a->head);
	}
	if (a->qmp != NULL) {
		ADD("--qmp");
		ADD(a->qmp);
	}
	for (size_t i = 0; i < nr_dirs; i++) {
		ADD("--debug-dir");
		ADD(a->debug_dirs.items.v[i]);
	}
	ADD(target);
#undef ADD
	return argv;
}

static void free_words(char **argv)
{
	for (char **p = argv; p != NULL && *p != NULL; p++)
		free(*p);
	free(argv);
}

static bool stop_tracing(char **argv)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		sigset_t none;

		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)execv("/proc/self/exe", argv);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* Another guest may have the name of one that has ended. pid 0: it has no process here. */
static bool is_there(int pid)
{
	return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH;
}

/* False: nobody is left to say anything. */
static bool is_told(int watch, char *said_ret)
{
	ssize_t n;

	do
		n = read(watch, said_ret, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* The kernel or another helper may still be about to let go of the guest: tries for a while. */
static _Noreturn void guard_guest(int watch, int owner, int guard, char **argv, int pid)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	int fd[] = { watch, owner, guard };
	struct uni_err ignored = { 0 };
	uint64_t until_ns;
	char said = 0;

	uni_helper_begin("uni-unpatch", fd, uni_array_len(fd));
	(void)uni_privilege_limit_guardian(&ignored);
	while (said != ENDS && is_told(fd[0], &said))
		;
	if (said != ARMED)
		_exit(0);
	until_ns = uni_now_ns() + TRY_NS;
	(void)setenv(UNI_TRACE_GUARDIAN, "1", 1);
	while (is_there(pid) && !stop_tracing(argv) && uni_now_ns() < until_ns)
		(void)nanosleep(&nap, NULL);
	_exit(0);
}

int uni_unpatch_begin(struct uni_tracing *t, int pid, const char *target,
	const struct uni_tracing_args *args, struct uni_err *err)
{
	_cleanup_close_ int guard = -1;
	char **argv = stop_words(target, args);
	int fd[2] = { -1, -1 };
	int rc = argv == NULL ? uni_err_nomem(err) : uni_trace_guard(target, &guard, err);

	if (rc == 0 && pipe2(fd, O_CLOEXEC) != 0)
		rc = uni_err_set(err, UNI_EIO, "cannot make a pipe: %s", strerror(errno));
	if (rc == 0) {
		t->guardian = fork();
		if (t->guardian == 0) {
			(void)close(fd[1]);
			guard_guest(fd[0], t->owner, guard, argv, pid);
		}
		(void)close(fd[0]);
		t->guard = fd[1];
		if (t->guardian < 0) {
			(void)close(fd[1]);
			t->guard = -1;
			rc = uni_err_set(err, UNI_EIO, "cannot fork: %s", strerror(errno));
		}
	}
	free_words(argv);
	return rc;
}

static void tell_guardian(struct uni_tracing *t, char what)
{
	(void)!write(t->guard, &what, 1);
}

void uni_unpatch_arm(struct uni_tracing *t)
{
	/* Over a line of its own, only the guest itself could switch them off. */
	if (t->guard >= 0 && (t->g.t->ops->caps(t->g.t) & UNI_CAP_INSIDE) != 0)
		uni_unpatch_end(t);
	else if (t->guard >= 0)
		tell_guardian(t, ARMED);
}

void uni_unpatch_end(struct uni_tracing *t)
{
	if (t->guard < 0)
		return;
	tell_guardian(t, ENDS);
	(void)close(t->guard);
	t->guard = -1;
	while (waitpid(t->guardian, NULL, 0) < 0 && errno == EINTR)
		;
}
