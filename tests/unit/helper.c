/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the profiler that a helper process keeps, and those that it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "backend/helper.h"

/* The child's report of itself. */
struct report {
	int open;     /* descriptors */
	int kept;     /* of those that it was to keep, how many are the same file as before */
	int standard; /* of the first three, how many are /dev/null */
	bool own_session, deaf;
	char name[16];
};

static bool same_file(int fd, const struct stat *want)
{
	struct stat s;

	return fstat(fd, &s) == 0 && s.st_dev == want->st_dev && s.st_ino == want->st_ino;
}

static void look(struct report *r)
{
	struct stat null;
	sigset_t set;

	if (stat("/dev/null", &null) != 0)
		_exit(1);
	for (int fd = 0; fd < 256; fd++)
		r->open += fcntl(fd, F_GETFD) >= 0;
	for (int fd = 0; fd < 3; fd++)
		r->standard += same_file(fd, &null);
	r->own_session = getsid(0) == getpid();
	(void)sigprocmask(SIG_BLOCK, NULL, &set);
	r->deaf = sigismember(&set, SIGINT) == 1 && sigismember(&set, SIGTERM) == 1;
	(void)prctl(PR_GET_NAME, r->name);
}

/* A child that is to keep so many of its descriptors, these; the last one leads to us. */
static void run(int *fd, size_t nr, struct report *ret)
{
	struct stat before[4];
	struct report r = { 0 };

	for (size_t i = 0; i < nr; i++) {
		if (fstat(fd[i], &before[i]) != 0)
			_exit(2);
	}
	uni_helper_begin("uni-testing", fd, nr);
	look(&r);
	for (size_t i = 0; i < nr; i++)
		r.kept += same_file(fd[i], &before[i]);
	_exit(write(fd[nr - 1], &r, sizeof(r)) == (ssize_t)sizeof(r) ? 0 : 3);
}

/* Moves the descriptors that it keeps, a pipe and its other end, to these numbers. */
static void expect(int first, int second)
{
	struct report r;
	int pair[2], status;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		int fd[] = { dup2(pair[0], first), dup2(pair[1], second) };

		for (int other = 40; other < 60; other++) {
			if (other != first && other != second)
				(void)dup2(pair[1], other);
		}
		run(fd, uni_array_len(fd), &r);
	}
	assert_true(pid > 0);
	(void)close(pair[1]);
	/* The second read ends when nobody has the other end any more. */
	assert_int_equal(read(pair[0], &r, sizeof(r)), sizeof(r));
	assert_int_equal(read(pair[0], &status, sizeof(status)), 0);
	(void)close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(r.kept, 2);
	assert_int_equal(r.open, 3 + 2);
	assert_int_equal(r.standard, 3);
	assert_true(r.own_session);
	assert_true(r.deaf);
	assert_string_equal(r.name, "uni-testing");
}

static void keeps_what_it_is_given(void **state)
{
	expect(45, 50);
	expect(50, 45);
	expect(45, 46);
	expect(30, 200);
}

static void frees_the_standard_ones(void **state)
{
	expect(0, 45);
	expect(45, 1);
	expect(2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_it_is_given),
		cmocka_unit_test(frees_the_standard_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
