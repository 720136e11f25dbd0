/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VMM that `run` starts. Its words are these and no others. Its end comes to an end, whatever a
 * tracer left behind: a child plays QEMU. Its command can be pasted into a shell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "app/child.h"
#include "app/qemu.h"

static void *say_tid(void *tid)
{
	atomic_store((atomic_int *)tid, gettid());
	for (;;)
		(void)pause();
	return NULL;
}

static pid_t start(int *tid_ret)
{
	atomic_int *tid =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t t;
	pid_t pid;

	assert_ptr_not_equal(tid, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)pthread_create(&t, NULL, say_tid, tid);
		for (;;)
			(void)pause();
	}
	while (atomic_load(tid) == 0)
		(void)usleep(1000);
	*tid_ret = atomic_load(tid);
	(void)munmap(tid, 4096);
	return pid;
}

static void stop_in_time(pid_t pid)
{
	struct uni_qemu q = { .pid = pid };
	uint64_t begin = uni_now_ns();

	uni_qemu_stop(&q);
	assert_true(uni_now_ns() - begin < 12 * UNI_NSEC_PER_SEC);
	assert_int_equal(q.pid, 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	uni_qemu_stop(&q); /* harmless */
}

static void plain(void **state)
{
	int tid;

	stop_in_time(start(&tid));
}

static void a_thread_is_still_traced(void **state)
{
	int tid;
	pid_t pid = start(&tid);

	assert_int_equal(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0);
	stop_in_time(pid);
}

/* Its stop is no end. */
static void the_leader_stands(void **state)
{
	struct uni_qemu q = { 0 };
	int tid, status = 0;

	q.pid = start(&tid);
	assert_int_equal(ptrace(PTRACE_SEIZE, q.pid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, q.pid, NULL, NULL), 0);
	for (int i = 0; i < 50; i++) {
		assert_false(uni_child_ended(&q.pid, &status));
		(void)usleep(1000);
	}
	stop_in_time(q.pid);
}

static void the_end_was_collected_already(void **state)
{
	int tid;
	pid_t pid = start(&tid);

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	stop_in_time(pid);
}

static void a_command_for_a_shell(void **state)
{
	const char *const words[] = { "solo5-hvt", "--mem=32", "--net:a=tap0", "--", "a b", "",
		"it's", "$HOME", "*", "~/x" };
	struct uni_child_args a = { 0 };
	struct uni_strbuf line;

	uni_strbuf_init(&line);
	for (size_t i = 0; i < uni_array_len(words); i++)
		uni_child_add(&a, words[i]);
	uni_child_quote(&a, &line);
	assert_false(a.failed);
	assert_string_equal(line.s, "solo5-hvt --mem=32 --net:a=tap0 -- 'a b' '' 'it'\\''s' "
				    "'$HOME' '*' '~/x'");
	uni_strbuf_deinit(&line);
	uni_child_args_deinit(&a);
}

/* Another process waits for the child and tells its end. Whoever asks twice keeps the status. */
static void an_end_that_is_told(void **state)
{
	struct uni_child_fate fate = { 0 };
	int status = -1;
	pid_t pid = 7;

	assert_false(uni_child_has_ended(&fate, &pid, &status));
	assert_int_equal(pid, 7);
	fate.status = 3 << 8;
	fate.ended = true;
	assert_true(uni_child_is_ending(&fate, &pid, &status));
	assert_int_equal(pid, 0);
	assert_int_equal(status, 3 << 8);
	assert_true(uni_child_has_ended(&fate, &pid, &status));
	assert_int_equal(status, 3 << 8);
}

#define DIR_PATTERN "/tmp/uniscope-run-XXXXXX"

/* The folder of each run has its own name. */
static void forget_names(char *text)
{
	for (char *p = text; (p = strstr(p, "/tmp/uniscope-run-")) != NULL;) {
		char *end = p + strlen(DIR_PATTERN);

		memset(end - 6, 'X', 6);
		p = end;
	}
}

/* All that a QEMU is told: this program plays it, and says its words. */
static void each_word_is_known(void **state)
{
	static const char *const rest =
		"-m\n64\n-smp\n2\n-display\nnone\n-nodefaults\n-no-reboot\n"
		"-no-shutdown\n-S\n-serial\nstdio\n-device\nisa-debug-exit,iobase=0xf4,iosize=4\n"
		"-device\npvpanic\n-qmp\nunix:" DIR_PATTERN "/qmp.sock,server=on,wait=off\n"
		"-gdb\nunix:" DIR_PATTERN "/gdb.sock,server=on,wait=off\n-kernel\n";
	static const char *const accel[][2] = { { "tcg", "max" },
		{ "kvm", "host,-arch-capabilities" } };
	char dir[] = "/tmp/unit-qemu-XXXXXX", image[64], console[64];
	char want[1024], said[2048];

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(image, sizeof(image), "%s/image", dir);
	(void)snprintf(console, sizeof(console), "%s/console", dir);
	assert_int_equal(symlink("/dev/null", image), 0); /* of no architecture */
	for (size_t i = 0; i < uni_array_len(accel); i++) {
		const struct uni_qemu_args args = { .image = image,
			.accel = accel[i][0],
			.append = "a b",
			.console = console,
			.program = "/proc/self/exe",
			.mem_bytes = 64 << 20,
			.vcpus = 2 };
		struct uni_err err = { 0 };
		struct uni_qemu q;
		FILE *f;
		size_t len;

		assert_int_not_equal(uni_qemu_start(&args, &q, &err), 0);
		f = fopen(console, "r");
		assert_non_null(f);
		len = fread(said, 1, sizeof(said) - 1, f);
		said[len] = '\0';
		(void)fclose(f);
		forget_names(said);
		(void)snprintf(want, sizeof(want),
			"-M\nq35\n-accel\n%s\n-cpu\n%s\n%s%s\n-append\na b\n", accel[i][0],
			accel[i][1], rest, image);
		assert_string_equal(said, want);
	}
	(void)unlink(console);
	(void)unlink(image);
	(void)rmdir(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_word_is_known),
		cmocka_unit_test(plain),
		cmocka_unit_test(a_thread_is_still_traced),
		cmocka_unit_test(the_leader_stands),
		cmocka_unit_test(the_end_was_collected_already),
		cmocka_unit_test(a_command_for_a_shell),
		cmocka_unit_test(an_end_that_is_told),
	};

	for (int i = 1; i < argc; i++)
		(void)puts(argv[i]);
	return argc > 1 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
