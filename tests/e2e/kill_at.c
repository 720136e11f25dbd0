/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kill_at [-c CALL] [-p PID] [-s SIGNAL] [-f N] N COMMAND...: kills the command (by SIGKILL, or the
 * number SIGNAL) before its N-th system call. With -c only calls of that name count. With -p only
 * calls count during which a thread of PID is held by its tracer. With -f only calls count after a
 * first such signal at the N-th call of any kind. All that a program does to others lies between
 * two calls: each N is an instant of its own, the same on a busy host. Threads count, children do
 * not. kill_at [-c CALL] -n FILE COMMAND...: lets it end; the number of these calls goes to FILE.
 * Exit status: 0 killed, or counted; 1 it ended by itself before; 2 the test is at fault.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/ptrace.h>

#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL)

static const struct {
	const char *name;
	long nr;
} call_names[] = {
	{ "pwrite64", SYS_pwrite64 },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "mkdirat", SYS_mkdirat },
	{ "renameat", SYS_renameat },
	{ "sendto", SYS_sendto },
};

struct run {
	pid_t pid;
	long call; /* of these alone, or -1 */
	int held;  /* where a thread of this process is held, or 0 */
	int sig;
	uint64_t first, all; /* the call of the first signal, or 0; calls of any kind until now */
	uint64_t at, seen;
};

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "kill_at: %s: %s\n", what, strerror(errno));
	exit(2);
}

static long call_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(call_names) / sizeof(call_names[0]); i++) {
		if (strcmp(call_names[i].name, name) == 0)
			return call_names[i].nr;
	}
	(void)fprintf(stderr, "kill_at: no name of a call: %s\n", name);
	exit(2);
}

static _Noreturn void child_exec(char **argv)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		fail("ptrace");
	(void)raise(SIGSTOP);
	(void)execvp(argv[0], argv);
	fail(argv[0]);
}

static bool is_entry(pid_t tid, long *nr_ret)
{
	struct ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof(info), &info) <= 0 ||
		info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	*nr_ret = (long)info.entry.nr;
	return true;
}

/* Is a thread of that process in a stop by its tracer? */
static bool is_held(int pid)
{
	char path[300];
	DIR *d;
	struct dirent *e;
	bool held = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d != NULL && !held && (e = readdir(d)) != NULL) {
		char state = 0;
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, e->d_name);
		f = e->d_name[0] != '.' ? fopen(path, "re") : NULL;
		if (f == NULL)
			continue;
		held = fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 't';
		(void)fclose(f);
	}
	if (d != NULL)
		(void)closedir(d);
	return held;
}

/* A thread is about to make a call. */
static void call_look(struct run *r, long nr)
{
	if (++r->all == r->first)
		(void)kill(r->pid, r->sig);
	if (r->all <= r->first || (r->call >= 0 && nr != r->call) || r->seen >= r->at)
		return;
	if ((r->held == 0 || is_held(r->held)) && ++r->seen == r->at)
		(void)kill(r->pid, r->sig);
}

/* The signal that a thread is to get as it goes on. A thread that has just been made has a stop of
 * its own. */
static int signal_of(const struct run *r, pid_t tid, int status)
{
	int sig = WSTOPSIG(status);

	if (sig == (SIGTRAP | 0x80) || sig == SIGTRAP || (status >> 16) != 0)
		return 0;
	return sig == SIGSTOP && tid != r->pid ? 0 : sig;
}

/* Until the process ends, by the kill or by itself: its status. */
static int calls_follow(struct run *r)
{
	for (;;) {
		int status;
		pid_t tid = waitpid(-1, &status, __WALL);
		long nr;

		if (tid < 0)
			fail("waitpid");
		if (!WIFSTOPPED(status)) {
			if (tid == r->pid)
				return status;
			continue;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) && is_entry(tid, &nr))
			call_look(r, nr);
		/* It may have been killed meanwhile. */
		(void)ptrace(
			PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)signal_of(r, tid, status));
	}
}

static void run_begin(struct run *r, char **argv)
{
	int status;

	r->pid = fork();
	if (r->pid < 0)
		fail("fork");
	if (r->pid == 0)
		child_exec(argv);
	if (waitpid(r->pid, &status, 0) != r->pid || !WIFSTOPPED(status) ||
		ptrace(PTRACE_SETOPTIONS, r->pid, NULL, (void *)OPTIONS) != 0 ||
		ptrace(PTRACE_SYSCALL, r->pid, NULL, NULL) != 0)
		fail("ptrace");
}

static int count_tell(const struct run *r, const char *path, int status)
{
	FILE *f = fopen(path, "we");

	if (f == NULL || fprintf(f, "%llu\n", (unsigned long long)r->seen) < 0 || fclose(f) != 0)
		fail(path);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (v != 0 && *end == '\0')
		return v;
	(void)fprintf(stderr, "kill_at: %s is not a number\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	struct run r = { .call = -1, .sig = SIGKILL, .at = UINT64_MAX };
	const char *file = NULL;
	int c, status;

	while ((c = getopt(argc, argv, "+c:f:n:p:s:")) != -1) {
		if (c == 'c')
			r.call = call_by_name(optarg);
		else if (c == 'f')
			r.first = number(optarg);
		else if (c == 'n')
			file = optarg;
		else if (c == 'p')
			r.held = (int)number(optarg);
		else if (c == 's')
			r.sig = (int)number(optarg);
		else
			return 2;
	}
	if (file == NULL && optind < argc)
		r.at = number(argv[optind++]);
	if (optind >= argc) {
		(void)fprintf(stderr, "kill_at: N and a command, or -n FILE and a command\n");
		return 2;
	}
	run_begin(&r, argv + optind);
	status = calls_follow(&r);
	if (file != NULL)
		return count_tell(&r, file, status);
	return WIFSIGNALED(status) && WTERMSIG(status) == r.sig && r.seen >= r.at ? 0 : 1;
}
