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

#include "base/catch.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/door.h"
#include "base/io.h"
#include "base/observer.h"
#include "base/text.h"
#include "backend/proc/proc.h"
#include "backend/vmm/proc.h"

#define TRIES	  5
#define ALONE_MAX 16 /* threads: naps for more of them would take too long */

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

/* The letter of /proc/PID/task/TID/stat: R, S, D, T, t, Z, X; 0: it is gone. */
static char state_of(int pid, int tid)
{
	char path[64], text[512];
	const char *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return 0;
	end = strrchr(text, ')'); /* a name may have any characters */
	return end != NULL && end[1] == ' ' ? end[2] : '\0';
}

int uni_proc_cpu(int pid, int tid)
{
	const int spaces = 37; /* from the name to field 39 */
	char path[64], text[512];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return -1;
	at = strrchr(text, ')');
	for (int i = 0; i < spaces && at != NULL; i++)
		at = strchr(at + 1, ' ');
	return at != NULL ? (int)strtol(at, NULL, 10) : -1;
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
	const unsigned long kthread = 0x00200000; /* PF_KTHREAD */
	const int flags = 7;			  /* fields behind the name */
	char path[48], text[512];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (uni_read_small(path, text, sizeof(text)) <= 0)
		return false;
	at = strrchr(text, ')');
	for (int i = 0; i < flags && at != NULL; i++)
		at = strchr(at + 1, ' ');
	return at != NULL && (strtoul(at, NULL, 10) & kthread) != 0;
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

bool uni_proc_is_traced(int tid)
{
	return tracer_of(tid) != 0;
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
 * let go.
 */
static int stop_thread(struct uni_thread_stop *s, struct user_regs_struct *regs)
{
	for (int i = 0; uni_observer_stop(s, regs, sizeof(*regs)) != 0; i++) {
		int tracer;

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

/* Has it run in the last second? Then it may run at any moment. */
static bool is_active(struct uni_proc *p, struct uni_proc_thread *t)
{
	uint64_t ran_ns, waited_ns, now_ns = uni_now_ns();

	if (!uni_vmm_thread_times(p->pid, t->stop.tid, &ran_ns, &waited_ns))
		return false;
	if (ran_ns != t->seen_run_ns)
		t->seen_ns = now_ns;
	t->seen_run_ns = ran_ns;
	return now_ns - t->seen_ns < UNI_NSEC_PER_SEC;
}

/* Stops it at a moment that it cannot choose. AWAY: it has not been stopped. */
static uint32_t stop_there(struct uni_proc *p, struct uni_proc_thread *t, struct uni_regs *ret)
{
	struct uni_there there = { .what = UNI_THERE_AWAY };

	for (int i = 0; i < TRIES && there.what == UNI_THERE_AWAY; i++) {
		int cpu = uni_proc_cpu(p->pid, t->stop.tid);

		if (cpu < 0 || uni_observer_stop_there(p->pid, &t->stop, cpu, &there) != 0)
			return UNI_THERE_AWAY;
	}
	if (there.what > UNI_THERE_WAITED)
		return there.what;
	uni_proc_ptrace_to_regs(&there.regs, ret);
	ret->state = there.what == UNI_THERE_RAN ? UNI_VCPU_RUNNING : UNI_VCPU_STOLEN;
	p->base.stop_ns = there.stop_ns;
	return there.what;
}

/* asleep: it was so a moment ago. */
static int stop_now(
	struct uni_proc *p, struct uni_proc_thread *t, bool asleep, struct uni_regs *ret)
{
	char state = state_of(p->pid, t->stop.tid);
	struct user_regs_struct regs;
	struct uni_regs idle;
	long call = 0;
	/* T: a signal or another tracer has stopped it. */
	bool sleeps = asleep || (state != '\0' && strchr("SDTt", state) != NULL);
	int rc;

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

int uni_proc_stop(struct uni_proc *p, struct uni_proc_thread *t, bool alone, struct uni_regs *ret)
{
	bool by_chance = alone && p->nr_threads <= ALONE_MAX && !t->stop.pending && is_active(p, t);
	uint32_t what = by_chance ? stop_there(p, t, ret) : UNI_THERE_AWAY;
	int rc;

	if (what == UNI_THERE_RAN || what == UNI_THERE_WAITED)
		return 0;
	p->base.stop_ns = by_chance ? uni_now_ns() : 0; /* the naps were no pause */
	rc = stop_now(p, t, what != UNI_THERE_AWAY, ret);
	/* This place is not by chance: it must not count as one where the thread ran. */
	if (rc == 0 && by_chance && what == UNI_THERE_AWAY && ret->state == UNI_VCPU_RUNNING)
		ret->state = UNI_VCPU_STOLEN;
	if (rc == 0 && what == UNI_THERE_LEFT && ret->state == UNI_VCPU_HALTED) {
		ret->state = UNI_VCPU_RUNNING;
		ret->in_kernel = true;
	}
	return rc;
}

int uni_proc_seize(struct uni_proc *p, struct uni_proc_thread *t, struct user_regs_struct *regs_ret)
{
	char state = state_of(p->pid, t->stop.tid);
	int rc =
		state == '\0' || state == 'Z' || state == 'X' ? 0 : stop_thread(&t->stop, regs_ret);

	/* The thread may have ended meanwhile. */
	if (rc != 0 && state_of(p->pid, t->stop.tid) == '\0')
		rc = 0;
	return rc;
}
