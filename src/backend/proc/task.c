/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of a process, and their registers. A running thread is stopped by ptrace for that, which
 * the process does not notice. If a thread sleeps in a system call that would notice, the kernel
 * gives pc and sp without a stop. Nothing stays attached between two samples. If we die, the kernel
 * lets the stopped threads go.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/door.h"
#include "base/io.h"
#include "base/observer.h"
#include "base/text.h"
#include "backend/proc/proc.h"

#define LEAST_TICKS 5 /* in the kernel, that tell anything */
#define TRIES	    3

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int uni_proc_list(int pid, int *tid_ret, int cap)
{
	char path[48];
	struct dirent *e;
	int nr = 0;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = uni_door_opendir(path);
	while (d != NULL && nr < INT32_MAX && (e = readdir(d)) != NULL) {
		uint64_t tid;

		if (!uni_parse_u64(e->d_name, &tid) || tid > INT32_MAX)
			continue;
		if (nr < cap)
			tid_ret[nr] = (int)tid;
		nr++;
	}
	if (d != NULL)
		(void)closedir(d);
	if (nr != 0)
		qsort(tid_ret, (size_t)uni_min(nr, cap), sizeof(*tid_ret), by_number);
	return nr;
}

/*
 * Reads the file stat of a thread, or (tid 0) of the process. Returns its field 3 and what follows,
 * behind the name. NULL: it is gone.
 */
static const char *read_stat(int pid, int tid, char *text, size_t cap)
{
	char path[64];
	const char *end;

	(void)snprintf(
		path, sizeof(path), tid != 0 ? "/proc/%d/task/%d/stat" : "/proc/%d/stat", pid, tid);
	if (uni_read_small(path, text, cap) <= 0)
		return NULL;
	end = strrchr(text, ')'); /* a name may have any characters */
	return end != NULL && end[1] == ' ' ? end + 2 : NULL;
}

/* A number of it; 0: none. */
static uint64_t stat_field(const char *stat, int field)
{
	for (int i = 3; i < field && stat != NULL; i++) {
		stat = strchr(stat, ' ');
		stat = stat != NULL ? stat + 1 : NULL;
	}
	return stat != NULL ? strtoull(stat, NULL, 10) : 0;
}

/* R, S, D, T, t, Z, X; 0: it is gone. */
static char state_of(int pid, int tid)
{
	char text[512];
	const char *stat = read_stat(pid, tid, text, sizeof(text));

	return stat != NULL ? *stat : '\0';
}

int uni_proc_living(int pid)
{
	int tid[UNI_VCPU_MAX], nr = uni_min(uni_proc_list(pid, tid, UNI_VCPU_MAX), UNI_VCPU_MAX);
	char state = state_of(pid, pid);

	if (nr == 0 || (state != 'Z' && state != 'X'))
		return pid;
	for (int i = 0; i < nr; i++) {
		state = state_of(pid, tid[i]);
		if (state != '\0' && state != 'Z' && state != 'X')
			return tid[i];
	}
	return 0;
}

bool uni_proc_is_kernel(int pid)
{
	const uint64_t kthread = 0x00200000; /* PF_KTHREAD */
	char text[512];

	return (stat_field(read_stat(pid, 0, text, sizeof(text)), 9) & kthread) != 0;
}

double uni_proc_kernel_share(int pid)
{
	char text[512];
	const char *stat = read_stat(pid, 0, text, sizeof(text));
	uint64_t user = stat_field(stat, 14), kernel = stat_field(stat, 15);

	return kernel >= LEAST_TICKS ? (double)kernel / (double)(user + kernel) : 0;
}

/* "NR ARGS SP PC"; "-1 SP PC" if it sleeps for another reason; or "running". */
static bool read_call(const struct uni_proc *p, int tid, long *nr_ret, struct uni_regs *ret)
{
	char path[64], text[256], *at, *end;
	uint64_t v[9];
	unsigned n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", p->pid, tid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return false;
	*nr_ret = strtol(text, &end, 10);
	if (end == text)
		return false;
	for (at = end; n < uni_array_len(v) && *at == ' '; at = end) {
		v[n] = strtoull(at, &end, 16);
		if (end == at)
			break;
		n++;
	}
	if (n < 2)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->sp = v[n - 2];
	ret->pc = v[n - 1];
	ret->sp_valid = ret->pc_valid = true;
	return true;
}

/* A number of its status; 0: none. */
static int status_of(int tid, const char *key)
{
	char path[48], text[2048];
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return 0;
	line = strstr(text, key);
	return line != NULL ? (int)strtol(line + strlen(key), NULL, 10) : 0;
}

/* The thread that traces tid; 0: none. */
static int tracer_of(int tid)
{
	return status_of(tid, "\nTracerPid:\t");
}

/* One of our threads, or our observer. */
static bool is_ours(int tid)
{
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	return access(path, F_OK) == 0 ||
	       (uni_observer_is_used() && status_of(tid, "\nPPid:\t") == getpid());
}

bool uni_proc_is_stopped(int pid)
{
	return state_of(pid, pid) == 'T';
}

int uni_proc_tracer(const struct uni_proc *p)
{
	int tracer = 0;

	for (int i = 0; i < p->nr_threads && tracer == 0; i++)
		tracer = tracer_of(p->thread[i].stop.tid);
	return tracer != 0 && !is_ours(tracer) ? tracer : 0;
}

/*
 * An earlier attempt may have told a thread to stop, without waiting for it; then it is still being
 * let go. regs: NULL, or room for its registers. It was left alone, -UNI_ENOENT: it has gone to
 * sleep; -UNI_EBUSY: it waits for its CPU.
 */
static int stop_thread(struct uni_thread_stop *s, struct user_regs_struct *regs)
{
	for (int i = 0; uni_observer_stop(s, regs, regs != NULL ? sizeof(*regs) : 0) != 0; i++) {
		int tracer;

		if (errno == ECANCELED || errno == EBUSY)
			return errno == EBUSY ? -UNI_EBUSY : -UNI_ENOENT;
		if (errno == ESRCH || errno == EAGAIN)
			return -UNI_EAGAIN;
		tracer = tracer_of(s->tid);
		if (tracer != 0 && is_ours(tracer))
			return -UNI_EAGAIN;
		if (i != 0) /* try once more, if it was let go in between */
			return -UNI_EPERM;
	}
	return 0;
}

void uni_proc_let_go(struct uni_proc_thread *t)
{
	if (t->stop.held || t->stop.pending)
		uni_observer_let_go(&t->stop);
}

/* near: a thread that runs is stopped on its CPU; see stop_thread(). */
static int look_at_thread(
	struct uni_proc *p, struct uni_proc_thread *t, bool near, struct uni_regs *ret)
{
	char text[512];
	const char *stat = read_stat(p->pid, t->stop.tid, text, sizeof(text));
	char state = stat != NULL ? *stat : '\0';
	struct user_regs_struct regs;
	struct uni_regs idle;
	long call = 0;
	/* T: a signal or another tracer has stopped it. */
	bool sleeps = state == 'S' || state == 'D' || state == 'T' || state == 't';
	int rc;

	t->stop.near = near && state == 'R' ? (int)stat_field(stat, 39) + 1 : 0;
	memset(ret, 0, sizeof(*ret));
	ret->state = UNI_VCPU_OFFLINE;
	if (state == '\0' || state == 'Z' || state == 'X')
		return 0;
	if (sleeps && read_call(p, t->stop.tid, &call, &idle) &&
		(state == 'D' || uni_proc_call_notices(call))) {
		*ret = idle;
		ret->state = UNI_VCPU_HALTED;
		return 0;
	}
	ret->state = UNI_VCPU_UNKNOWN;
	rc = stop_thread(&t->stop, &regs);
	/* Somebody else traces it: two registers are known all the same. */
	if (rc == -UNI_EPERM && sleeps && read_call(p, t->stop.tid, &call, ret)) {
		ret->state = UNI_VCPU_HALTED;
		return 0;
	}
	if (rc == 0) {
		uni_proc_ptrace_to_regs(&regs, ret);
		ret->state = sleeps ? UNI_VCPU_HALTED : UNI_VCPU_RUNNING;
	}
	if (sleeps)
		ret->in_kernel = false;
	return rc;
}

int uni_proc_stop(struct uni_proc *p, struct uni_proc_thread *t, bool near, struct uni_regs *ret)
{
	int rc = -UNI_ENOENT;

	for (int i = 0; near && i < TRIES && (rc == -UNI_ENOENT || rc == -UNI_EBUSY); i++)
		rc = look_at_thread(p, t, true, ret);
	if (rc == -UNI_ENOENT)
		rc = look_at_thread(p, t, false, ret);
	/* Code from which it was taken is no sample of where it runs. */
	return rc == -UNI_EBUSY ? -UNI_EAGAIN : rc;
}

int uni_proc_seize(struct uni_proc *p, struct uni_proc_thread *t)
{
	char state = state_of(p->pid, t->stop.tid);
	int rc;

	t->stop.near = 0;
	rc = state == '\0' || state == 'Z' || state == 'X' ? 0 : stop_thread(&t->stop, NULL);

	/* The thread may have ended meanwhile. */
	if (rc != 0 && state_of(p->pid, t->stop.tid) == '\0')
		rc = 0;
	return rc;
}
