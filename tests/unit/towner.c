/* SPDX-License-Identifier: BSD-2-Clause */
/* One tracer of a guest at a time: by process, domain or name; nothing is left of who was killed.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracing/lock.h"

static int own(const struct uni_target_info *info, const char *target, struct uni_err *err)
{
	int fd = -1;

	*err = (struct uni_err){ 0 };
	return uni_trace_own(info, target, &fd, err) == 0 ? fd : -1;
}

static void each_guest_has_one(void **state)
{
	/* Guests of this test alone: others may run at the same time. */
	const struct uni_target_info a = { .pid = getpid() }, b = { .pid = getpid() + 4194304 },
				     dom = { .domid = (uint32_t)getpid() }, none = { 0 };
	struct uni_err err;
	char name[2][200], text[32];
	int fd[4];

	for (int i = 0; i < 2; i++)
		(void)snprintf(name[i], sizeof(name[i]), "gdb:unix=/%0150d/%d", i, (int)getpid());
	fd[0] = own(&a, "x", &err);
	fd[1] = own(&b, "x", &err);
	fd[2] = own(&dom, "x", &err);
	fd[3] = own(&none, name[0], &err);
	for (int i = 0; i < 4; i++)
		assert_true(fd[i] >= 0);
	(void)snprintf(text, sizeof(text), "process %d:", (int)getpid());
	assert_int_equal(own(&a, "another name of it", &err), -1);
	assert_int_equal(err.code, UNI_EBUSY);
	assert_non_null(strstr(err.msg, text));
	assert_int_equal(own(&dom, "x", &err), -1);
	assert_int_equal(own(&none, name[0], &err), -1);
	(void)close(fd[0]);
	fd[0] = own(&a, "x", &err);
	assert_true(fd[0] >= 0);
	for (int i = 0; i < 4; i++)
		(void)close(fd[i]);
}

static void the_dead_own_nothing(void **state)
{
	const struct uni_target_info a = { .pid = getpid() };
	struct uni_err err;
	char text[32], byte = 0;
	int line[2], fd, pid;

	assert_int_equal(pipe(line), 0);
	pid = fork();
	if (pid == 0) {
		byte = own(&a, "x", &err) >= 0;
		(void)!write(line[1], &byte, 1);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(line[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	(void)snprintf(text, sizeof(text), "process %d:", pid);
	assert_int_equal(own(&a, "x", &err), -1);
	assert_non_null(strstr(err.msg, text));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	fd = own(&a, "x", &err);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)close(line[0]);
	(void)close(line[1]);
}

/* The guardian of a tracer that died has a copy of its lock: the next one waits for that. */
static void a_guardian_is_waited_for(void **state)
{
	const struct uni_target_info a = { .pid = getpid() };
	int ready[2], over[2], died[2], fd, pid;
	struct uni_err err;
	char byte = 0;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(over), 0);
	assert_int_equal(pipe(died), 0);
	pid = fork();
	if (pid == 0) {
		byte = own(&a, "x", &err) >= 0;
		if (fork() == 0) {
			(void)close(died[1]);
			(void)!write(ready[1], &byte, 1);
			(void)!read(died[0], &byte, 1);
			(void)usleep(50000);
			(void)!write(over[1], "", 1);
			_exit(0);
		}
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(died[1]);
	fd = own(&a, "x", &err);
	assert_true(fd >= 0);
	(void)close(over[1]);
	assert_int_equal(read(over[0], &byte, 1), 1);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_guest_has_one),
		cmocka_unit_test(the_dead_own_nothing),
		cmocka_unit_test(a_guardian_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
