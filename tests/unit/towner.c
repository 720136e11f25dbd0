/* SPDX-License-Identifier: BSD-2-Clause */
/* One tracer of a guest at a time: by process, domain or name; nothing is left of who was killed.
 * The guardian says all that its tracer was told. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/text.h"
#include "app/unpatch.h"
#include "backend/target.h"
#include "tracing/lock.h"

#define LINE "UNI_TEST_LINE" /* the descriptor to which the guardian's command says its words */

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

/* As app/images.c has it, which needs the rest of the program. */
const char *uni_images_first(const struct uni_opt_list *given)
{
	return given->items.nr != 0 ? given->items.v[0] : NULL;
}

static unsigned no_caps(struct uni_target *t)
{
	(void)t;
	return 0;
}

/* All words of the command that the guardian runs when its tracer is gone, and a line for each. */
static void expect_words(const struct uni_tracing_args *args, const char *target, const char *want)
{
	static const struct uni_target_ops ops = { .caps = no_caps };
	struct uni_target target_of = { .ops = &ops };
	static struct uni_tracing t;
	char said[1024], number[16];
	size_t len = 0;
	ssize_t n;
	int line[2];
	struct uni_err err = { 0 };

	assert_int_equal(pipe(line), 0);
	(void)snprintf(number, sizeof(number), "%d", line[1]);
	assert_int_equal(setenv(LINE, number, 1), 0);
	t = (struct uni_tracing){ .g.t = &target_of, .owner = line[1], .guard = -1 };
	assert_int_equal(uni_unpatch_begin(&t, 0, target, args, &err), 0);
	(void)close(line[1]);
	uni_unpatch_arm(&t);
	assert_int_equal(close(t.guard), 0); /* as its death does */
	while ((n = read(line[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	(void)close(line[0]);
	assert_int_equal(waitpid(t.guardian, NULL, 0), t.guardian);
	assert_string_equal(said, want);
}

static void a_guardian_says_all_words(void **state)
{
	const char *images[] = { "/a/app.elf", "/a/program" }, *dirs[] = { "/d/1", "/d 2" };
	struct uni_tracing_args args = { 0 };
	char target[64], want[256];

	(void)state;
	(void)snprintf(target, sizeof(target), "gdb:unix=/towner/%d", (int)getpid());
	(void)snprintf(want, sizeof(want), "uniscope\ntrace\nstop\n%s\n", target);
	expect_words(&args, target, want);
	for (size_t i = 0; i < uni_array_len(images); i++)
		assert_true(uni_vec_push(&args.images.items, images[i]));
	(void)snprintf(
		want, sizeof(want), "uniscope\ntrace\nstop\n--image\n/a/app.elf\n%s\n", target);
	expect_words(&args, target, want);
	for (size_t i = 0; i < uni_array_len(dirs); i++)
		assert_true(uni_vec_push(&args.debug_dirs.items, dirs[i]));
	args.head = "0x1000";
	args.qmp = "/q";
	(void)snprintf(want, sizeof(want),
		"uniscope\ntrace\nstop\n--image\n/a/app.elf\n--head\n0x1000\n--qmp\n/q\n"
		"--debug-dir\n/d/1\n--debug-dir\n/d 2\n%s\n",
		target);
	expect_words(&args, target, want);
	uni_vec_free(&args.images.items);
	uni_vec_free(&args.debug_dirs.items);
}

/* The guardian's command is this program again. 0: all is switched off. */
static int say_words(char **argv)
{
	const char *line = getenv(LINE);
	uint64_t fd;

	if (line == NULL || getenv(UNI_TRACE_GUARDIAN) == NULL || !uni_parse_u64(line, &fd))
		return 2;
	for (; *argv != NULL; argv++)
		(void)dprintf((int)fd, "%s\n", *argv);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_guest_has_one),
		cmocka_unit_test(the_dead_own_nothing),
		cmocka_unit_test(a_guardian_is_waited_for),
		cmocka_unit_test(a_guardian_says_all_words),
	};

	if (argc > 1)
		return say_words(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
