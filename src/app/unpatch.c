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
#include "backend/helper.h"
#include "tracing/lock.h"

#define NAP_NS (50 * UNI_NSEC_PER_MSEC)
#define TRY_NS (30 * UNI_NSEC_PER_SEC)

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

/* The kernel or another helper may still be about to let go of the guest: tries for a while. */
static _Noreturn void guard_guest(int watch, int owner, int guard, char **argv, int pid)
{
	const struct timespec nap = uni_ns_timespec(NAP_NS);
	int fd[] = { watch, owner, guard };
	uint64_t until_ns;
	ssize_t n;
	char c;

	uni_helper_begin("uni-unpatch", fd, uni_array_len(fd));
	do
		n = read(fd[0], &c, 1);
	while (n < 0 && errno == EINTR);
	if (n != 0)
		_exit(0);
	until_ns = uni_now_ns() + TRY_NS;
	(void)setenv(UNI_TRACE_GUARDIAN, "1", 1);
	while (is_there(pid) && !stop_tracing(argv) && uni_now_ns() < until_ns)
		(void)nanosleep(&nap, NULL);
	_exit(0);
}

int uni_unpatch_begin(struct uni_tracing *t, const char *target,
	const struct uni_tracing_args *args, struct uni_err *err)
{
	_cleanup_close_ int guard = -1;
	char **argv;
	int fd[2] = { -1, -1 };
	int rc;

	/* Over a serial line, only the guest itself could switch them off. */
	if ((t->g.t->ops->caps(t->g.t) & UNI_CAP_INSIDE) != 0)
		return 0;
	argv = stop_words(target, args);
	rc = argv == NULL ? uni_err_nomem(err) : uni_trace_guard(target, &guard, err);

	if (rc == 0 && pipe2(fd, O_CLOEXEC) != 0)
		rc = uni_err_set(err, UNI_EIO, "cannot make a pipe: %s", strerror(errno));
	if (rc == 0) {
		t->guardian = fork();
		if (t->guardian == 0) {
			(void)close(fd[1]);
			guard_guest(fd[0], t->owner, guard, argv, t->g.info.pid);
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

void uni_unpatch_end(struct uni_tracing *t)
{
	if (t->guard < 0)
		return;
	(void)!write(t->guard, "", 1);
	(void)close(t->guard);
	t->guard = -1;
	while (waitpid(t->guardian, NULL, 0) < 0 && errno == EINTR)
		;
}
