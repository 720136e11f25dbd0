/* SPDX-License-Identifier: BSD-2-Clause */
/* The observer looks into one process, whoever asks it and however. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/door.h"
#include "base/io.h"
#include "base/observer.h"
#include "base/stop.h"

#ifdef __has_feature /* clang */
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN
#endif

#define PAGE 4096u

static pid_t watched;
static char *memory; /* two pages in both processes; what follows is not mapped */

static int begin_observer(void **state)
{
	struct uni_err err = { 0 };

	(void)state;
	memory = mmap(
		NULL, (size_t)3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || munmap(memory + (size_t)2 * PAGE, PAGE) != 0)
		return -1;
	watched = fork();
	if (watched == 0) {
		memset(memory, 'w', (size_t)2 * PAGE);
		memory[PAGE] = 'x';
		(void)raise(SIGSTOP);
		for (;;)
			(void)pause();
	}
	if (waitpid(watched, NULL, WUNTRACED) != watched)
		return -1;
	return uni_observer_begin(watched, true, false, ~0ull, &err);
}

static int end_watched(void **state)
{
	(void)state;
	(void)kill(watched, SIGKILL);
	return waitpid(watched, NULL, 0) == watched ? 0 : -1;
}

static const char *path_of(int pid, const char *what)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	return path;
}

static void assert_refused(const char *path, int flags)
{
	errno = 0;
	assert_int_equal(uni_observer_open(path, flags), -1);
	assert_int_equal(errno, EACCES);
}

static void opens_files_of_one_process(void **state)
{
	static const char *const good[] = { "maps", "stat", "fd", "task", "cwd/.", "exe" };
	char what[64];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int fd = uni_door_openat(AT_FDCWD, path_of(watched, good[i]), O_RDONLY, 0);

		assert_true(uni_observer_has(path_of(watched, good[i])));
		assert_true(fd >= 0);
		(void)close(fd);
	}
	assert_false(uni_observer_has(path_of(getpid(), "stat")));
	assert_refused(path_of(getpid(), "stat"), O_RDONLY);
	assert_refused(path_of(watched, "maps"), O_RDWR);
	assert_refused(path_of(watched, "../self/stat"), O_RDONLY);
	assert_refused("/etc/passwd", O_RDONLY);
	/* The way through the process' own root, or a thread's. */
	(void)snprintf(what, sizeof(what), "root/proc/%d/stat", getpid());
	assert_refused(path_of(watched, what), O_RDONLY);
	(void)snprintf(what, sizeof(what), "task/%d/root/etc/passwd", watched);
	assert_refused(path_of(watched, what), O_RDONLY);
}

static void reads_and_links(void **state)
{
	char text[64], own[64], exe[256], expected[256];
	int n = uni_read_small(path_of(watched, "comm"), text, sizeof(text));
	ssize_t len, want = readlink("/proc/self/exe", expected, sizeof(expected));
	DIR *d;

	(void)state;
	assert_int_equal(uni_read_small("/proc/self/comm", own, sizeof(own)), n);
	assert_string_equal(text, own);
	len = uni_door_readlinkat(AT_FDCWD, path_of(watched, "exe"), exe, sizeof(exe));
	assert_int_equal(len, want);
	assert_memory_equal(exe, expected, (size_t)len);
	d = uni_door_opendir(path_of(watched, "fd"));
	assert_non_null(d);
	assert_true(uni_door_readlinkat(dirfd(d), "0", exe, sizeof(exe)) > 0);
	assert_int_equal(uni_door_readlinkat(dirfd(d), "../exe", exe, sizeof(exe)), -1);
	(void)closedir(d);
}

static void copies_memory(void **state)
{
	char buf[8] = "";
	struct iovec local[] = { { buf, 3 }, { buf + 3, 5 } };
	struct iovec remote[] = { { memory + PAGE - 1, 4 }, { memory, 4 } };
	struct iovec beyond[] = { { memory + 2 * PAGE - 2, 2 }, { memory + 2 * PAGE, 6 } };

	(void)state;
	assert_int_equal(uni_observer_copy(watched, local, 2, remote, 2), 8);
	assert_memory_equal(buf, "wxwwwwww", 8);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(uni_observer_copy(watched, local, 2, beyond, 2), 2);
	assert_memory_equal(buf, "ww\0\0\0\0\0\0", 8);
	assert_int_equal(uni_observer_copy(watched, local, 2, beyond + 1, 1), -1);
	assert_int_equal(errno, EFAULT);
}

static void makes_few_events_and_maps(void **state)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	struct uni_observer_map map = {
		.name = "m", .type = BPF_MAP_TYPE_PROG_ARRAY, .key = 4, .value = 4, .nr = 1
	};

	(void)state;
	assert_int_equal(uni_observer_perf_event(&attr, watched), -1);
	assert_int_equal(errno, EACCES);
	attr.type = PERF_TYPE_SOFTWARE;
	assert_int_equal(uni_observer_perf_event(&attr, getpid()), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(uni_observer_map_create(&map), -1);
	assert_int_equal(errno, EACCES);
}

/* The letter of its state: S or R while it runs, t while a tracer holds it. */
static char state_of(int pid)
{
	char text[512], *end;

	assert_true(uni_read_small(path_of(pid, "stat"), text, sizeof(text)) > 0);
	end = strrchr(text, ')');
	assert_non_null(end);
	return end[2];
}

/* A busy host may let the thread run on for longer than one stop takes. */
static void stop_it(struct uni_thread_stop *s, void *regs, size_t size)
{
	int rc = -1;

	for (int i = 0; i < 600 && rc != 0; i++) {
		rc = uni_observer_stop(s, regs, size);
		if (rc != 0)
			assert_int_equal(errno, EAGAIN);
		if (rc != 0)
			(void)usleep(100000);
	}
	assert_int_equal(rc, 0);
}

static void holds_threads_of_one_process(void **state)
{
	struct uni_thread_stop own = { .tid = getpid() }, other = { .tid = watched };
	struct user_regs_struct regs = { 0 };

	(void)state;
	assert_int_equal(uni_observer_stop(&own, NULL, 0), -1);
	assert_int_equal(errno, ESRCH);
	assert_int_equal(kill(watched, SIGCONT), 0);
	stop_it(&other, &regs, sizeof(regs));
	assert_true(other.held && regs.rsp != 0);
	assert_int_equal(state_of(watched), 't');
	uni_observer_let_go(&other);
	assert_false(other.held);
	assert_int_not_equal(state_of(watched), 't');
	/* It is let go, although nobody asks for that. */
	stop_it(&other, NULL, 0);
	for (int i = 0; i < 60 && (i == 0 || state_of(watched) == 't'); i++)
		(void)usleep(1500000); /* a request is a sign of life */
	assert_int_not_equal(state_of(watched), 't');
	/* Not while its memory is written. */
	other.firm = true;
	stop_it(&other, NULL, 0);
	(void)usleep(3000000);
	assert_int_equal(state_of(watched), 't');
	uni_observer_let_go(&other);
	assert_int_not_equal(state_of(watched), 't');
}

/* Into one process whose code is to be changed, and no other. */
static void writes_memory(pid_t mine, pid_t not_mine)
{
	int fd = uni_observer_open_writable(mine);

	assert_int_equal(pwrite(fd, "p", 1, (off_t)(uintptr_t)memory + 1), 1);
	(void)close(fd);
	fd = uni_observer_open_writable(not_mine);
	assert_int_equal(pwrite(fd, "p", 1, (off_t)(uintptr_t)memory + 1), -1);
	(void)close(fd);
}

/* The other process' letter, if the observers are not mixed up. */
static void looks_into_each_process(void **state)
{
	struct uni_thread_stop s;
	struct user_regs_struct regs = { 0 };
	struct uni_err err = { 0 };
	char c = 0;
	struct iovec local = { &c, 1 }, remote = { memory, 1 };
	DIR *own = opendir("/proc/self/task");
	pid_t other = fork();

	(void)state;
	if (other == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test may fail */
		memory[0] = 'o';
		(void)raise(SIGSTOP);
		for (;;)
			(void)pause();
	}
	assert_int_equal(waitpid(other, NULL, WUNTRACED), other);
	assert_false(uni_observer_has(path_of(other, "maps")));
	assert_int_equal(uni_observer_begin(other, true, true, ~0ull, &err), 0);
	assert_int_equal(kill(other, SIGCONT), 0);
	for (int i = 0; i < 2; i++) {
		pid_t pid = i == 0 ? other : watched;

		assert_true(uni_observer_has(path_of(pid, "maps")));
		assert_int_equal(uni_observer_access(path_of(pid, "maps")), 0);
		assert_int_equal(uni_observer_copy(pid, &local, 1, &remote, 1), 1);
		assert_int_equal(c, i == 0 ? 'o' : 'w');
		s = (struct uni_thread_stop){ .tid = pid };
		stop_it(&s, &regs, sizeof(regs));
		assert_int_equal(state_of(pid), 't');
		uni_observer_let_go(&s);
		assert_int_not_equal(state_of(pid), 't');
	}
	writes_memory(other, watched);
	s = (struct uni_thread_stop){ .tid = getpid() };
	assert_int_equal(uni_observer_stop(&s, NULL, 0), -1);
	/* An open folder of a third one is no way into it. */
	assert_non_null(own);
	assert_false(uni_observer_lists(dirfd(own)));
	(void)closedir(own);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

/* That of a VMM's process may not: its filter ends it. */
static void one_that_does_not_stop(void **state)
{
	struct uni_thread_stop s = { .tid = watched };
	struct uni_err err = { 0 };
	int status;
	pid_t pid;

	(void)state;
#ifdef WITH_ASAN
	skip(); /* a sanitizer stops threads itself: its filter lets it */
#endif
	pid = fork();
	if (pid == 0) {
		uni_observer_leave();
		_exit(uni_observer_begin(watched, false, false, ~0ull, &err) == 0 &&
					uni_observer_access(path_of(watched, "maps")) == 0 &&
					uni_observer_stop(&s, NULL, 0) == -1 && errno == EIO
				? 0
				: 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_not_equal(state_of(watched), 't');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_files_of_one_process),
		cmocka_unit_test(reads_and_links),
		cmocka_unit_test(copies_memory),
		cmocka_unit_test(makes_few_events_and_maps),
		cmocka_unit_test(holds_threads_of_one_process),
		cmocka_unit_test(looks_into_each_process),
		cmocka_unit_test(one_that_does_not_stop),
	};

	return cmocka_run_group_tests(tests, begin_observer, end_watched);
}
