/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VMM that `run` starts. Its end comes to an end, whatever a tracer left behind: a child plays
 * QEMU. Its command can be pasted into a shell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(a_thread_is_still_traced),
		cmocka_unit_test(the_leader_stands),
		cmocka_unit_test(the_end_was_collected_already),
		cmocka_unit_test(a_command_for_a_shell),
		cmocka_unit_test(an_end_that_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
