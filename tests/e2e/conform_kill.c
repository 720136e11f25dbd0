/* SPDX-License-Identifier: BSD-2-Clause */
/* Sudden deaths: of the profiler, of its guardian, of the VM. */
#include "../support/vcpus.h"
#include "conformance.h"

#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"

#define RUNS_MS	    20000
#define ALARM_S	    30	    /* nothing here may hang */
#define MAX_CALLS   4000000 /* that a victim makes until it is where it is to be killed */
#define NOTICED_US  300000  /* its death need not be seen at once */
#define GUARDIAN_NM "(uni-guardian)"

const char *const gone_states = "attached held reading released";

static int read_page(struct uni_target *t, uint8_t *buf)
{
	struct uni_gmem *m = t->ops->gmem(t);
	const struct uni_gmem_region *r = uni_gmem_region(m, uni_gmem_nr_regions(m) - 1);

	return uni_gmem_read(m, uni_gpa_of(r->start), buf, 4096);
}

/* Brings the target into the state; false if there is no such word. */
static bool enter(struct uni_target *t, const char *state)
{
	struct uni_regs r;

	if (strcmp(state, "attached") == 0)
		return true;
	if (hold(t, &r) != 0)
		return false;
	if (strcmp(state, "released") == 0)
		return t->ops->release(t) == 0;
	return strcmp(state, "held") == 0 || strcmp(state, "reading") == 0;
}

/* A profiler that says when it is in its state, and stays there. */
static _Noreturn void victim(struct suite *s, const char *state, int fd)
{
	struct uni_target *t = NULL;
	uint8_t page[4096];

	if (uni_target_attach(&s->spec, &s->opts, &t, NULL) != 0 || !enter(t, state))
		_exit(1);
	(void)uni_write_full(fd, "x", 1);
	while (strcmp(state, "reading") == 0)
		(void)read_page(t, page);
	for (;;)
		(void)pause();
}

/* It did not end by itself before. */
static bool was_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static bool killed_in(struct suite *s, const char *state)
{
	int p[2], status;
	bool there;
	char c;
	pid_t pid;

	(void)fflush(stdout);
	if (pipe(p) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(p[0]);
		victim(s, state, p[1]);
	}
	(void)close(p[1]);
	there = pid > 0 && read(p[0], &c, 1) == 1;
	(void)close(p[0]);
	if (pid <= 0)
		return false;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return there && was_killed(status);
}

void test_kill(struct suite *s)
{
	static const char *const states[] = { "attached", "held", "reading", "released" };
	struct uni_target *t;

	if (!observer_sees(&s->obs)) {
		skip(s, "SIGKILL of the profiler", "nothing that runs can be observed");
		return;
	}
	for (size_t i = 0; i < 4; i++) {
		if (check(s, killed_in(s, states[i]), "a profiler reaches the state %s", states[i]))
			(void)check(s, observer_runs(&s->obs, RUNS_MS),
				"the guest runs after SIGKILL of a profiler: %s", states[i]);
	}
	(void)check(s, kill_at_random(s, 6) == 6, "and after SIGKILL at 6 random instants");
	t = attach(s);
	if (t == NULL)
		return;
	(void)check(s, true, "attach again after all that");
	uni_target_detach(t);
}

bool hold_for_ever(struct suite *s)
{
	struct uni_target *t = attach(s);
	struct uni_regs r;

	if (t == NULL || hold(t, &r) != 0)
		return false;
	(void)printf("held\n");
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

unsigned kill_in_hold(struct suite *s, unsigned n)
{
	unsigned alive = 0;

	for (unsigned i = 0; i < n; i++)
		alive += killed_in(s, "held") && observer_runs(&s->obs, RUNS_MS);
	return alive;
}

/* The progress of a victim, in memory that its killer sees: the number of times it held or released
 * the guest, odd in a hold. */
enum { NOT_ATTACHED, ATTACHED = 2 };

/* The victim's system calls that are counted until the kill: all, those once it is attached, and
 * those in a hold. */
enum kill_kind { KILL_ANYWHERE, KILL_ATTACHED, KILL_HELD, NR_KINDS };

static _Noreturn void busy_victim(struct suite *s, atomic_uint *where)
{
	struct uni_target *t = NULL;
	struct uni_regs r;
	uint8_t page[4096];

	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 || raise(SIGSTOP) != 0 ||
		uni_target_attach(&s->spec, &s->opts, &t, NULL) != 0)
		_exit(1);
	atomic_store(where, ATTACHED);
	for (;;) {
		bool held = t->ops->snap(t, VCPUS(1), &r, UNI_SNAP_HOLD) == 0;

		if (held) {
			atomic_fetch_add(where, 1);
			(void)read_page(t, page);
			(void)getppid(); /* a call at least */
			atomic_fetch_add(where, 1);
		}
		(void)t->ops->release(t);
		(void)usleep(500);
	}
}

static bool counts(const atomic_uint *where, enum kill_kind kind)
{
	unsigned now = atomic_load(where);

	return kind == KILL_ANYWHERE ||
	       (now >= ATTACHED && (kind == KILL_ATTACHED || now % 2 != 0));
}

/* On to where it makes a system call, or comes back from one; false: it ended. */
static bool next_call(pid_t pid, int *status)
{
	do {
		int sig = WSTOPSIG(*status);

		if (sig == (SIGTRAP | 0x80) || sig == SIGSTOP)
			sig = 0;
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)sig) != 0 ||
			waitpid(pid, status, 0) != pid || !WIFSTOPPED(*status))
			return false;
	} while (WSTOPSIG(*status) != (SIGTRAP | 0x80));
	return true;
}

/* Until so many calls that count have begun or ended: what it does to others is done by these. */
static bool follow(
	pid_t pid, const atomic_uint *where, enum kill_kind kind, unsigned calls, int *status)
{
	if (waitpid(pid, status, WUNTRACED) != pid || !WIFSTOPPED(*status) ||
		ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)PTRACE_O_TRACESYSGOOD) != 0)
		return false;
	for (unsigned all = 0; all < MAX_CALLS && calls != 0; all++) {
		if (!next_call(pid, status))
			return false;
		calls -= counts(where, kind);
	}
	return calls == 0;
}

/* How many were attached, and in a hold, when the kill came. */
struct hits {
	unsigned attached, held;
};

static bool kill_one(
	struct suite *s, enum kill_kind kind, unsigned calls, atomic_uint *where, struct hits *hits)
{
	int status = 0;
	bool there;
	pid_t pid;

	(void)fflush(stdout);
	atomic_store(where, NOT_ATTACHED);
	pid = fork();
	if (pid == 0)
		busy_victim(s, where);
	if (pid < 0)
		return false;
	there = follow(pid, where, kind, calls, &status);
	hits->attached += atomic_load(where) >= ATTACHED;
	hits->held += atomic_load(where) % 2;
	if (WIFSTOPPED(status)) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
	}
	if (!there || !was_killed(status))
		(void)printf(
			"# a victim ended before call %u: status 0x%x\n", calls, (unsigned)status);
	return there && was_killed(status);
}

/* A third at any call, a third once it is attached, and a third in a hold. */
unsigned kill_at_random(struct suite *s, unsigned n)
{
	static const unsigned within[NR_KINDS] = { 400, 200, 30 };
	atomic_uint *where = mmap(
		NULL, sizeof(*where), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct hits hits = { 0 };
	unsigned alive = 0, nr[NR_KINDS] = { 0 };

	if (where == MAP_FAILED)
		return 0;
	srandom((unsigned)uni_now_ns());
	for (unsigned i = 0; i < n; i++) {
		enum kill_kind kind = i % NR_KINDS;
		unsigned calls = 1 + (unsigned)((unsigned long)random() % within[kind]);
		bool hit = kill_one(s, kind, calls, where, &hits),
		     runs = observer_runs(&s->obs, RUNS_MS);

		nr[kind]++;
		alive += hit && runs;
		if (!runs)
			(void)printf("# stopped by kill %u\n", i);
	}
	(void)munmap(where, sizeof(*where));
	(void)printf("# %u kills: %u attached, %u in a hold\n", n, hits.attached, hits.held);
	return hits.attached >= nr[KILL_ATTACHED] + nr[KILL_HELD] && hits.held >= nr[KILL_HELD]
		       ? alive
		       : 0;
}

/* Our child of that name, 0 if there is none. */
static int guardian_pid(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int found = 0;

	while (d != NULL && found == 0 && (e = readdir(d)) != NULL) {
		char path[300], stat[512], *p;
		uint64_t pid;
		int parent = 0;

		(void)snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
		if (!uni_parse_u64(e->d_name, &pid) || uni_read_small(path, stat, sizeof(stat)) < 0)
			continue;
		p = strstr(stat, GUARDIAN_NM);
		if (p != NULL && sscanf(p + sizeof(GUARDIAN_NM), "%*c %d", &parent) == 1 &&
			parent == getpid())
			found = (int)pid;
	}
	if (d != NULL)
		(void)closedir(d);
	return found;
}

static bool has_guardian(const struct suite *s)
{
	return strcmp(s->spec.scheme, "gdb") == 0 || strcmp(s->spec.scheme, "xen") == 0;
}

void test_guardian_kill(struct suite *s)
{
	struct uni_target *t = attach(s);
	siginfo_t dead;
	struct uni_regs r;
	int pid, rc;

	if (t == NULL)
		return;
	pid = guardian_pid();
	if (!has_guardian(s) || !observer_sees(&s->obs)) {
		skip(s, "SIGKILL of the guardian", "this target has none, or cannot be observed");
		uni_target_detach(t);
		return;
	}
	if (!check(s, pid > 0, "there is a guardian")) {
		uni_target_detach(t);
		return;
	}
	(void)check(s, hold(t, &r) == 0, "hold before the guardian dies");
	(void)kill(pid, SIGKILL);
	(void)waitid(P_PID, (id_t)pid, &dead, WEXITED | WNOWAIT);
	(void)check(s, t->ops->release(t) == 0, "release without it");
	(void)check(s, observer_runs(&s->obs, RUNS_MS), "the guest runs after its SIGKILL");
	(void)usleep(NOTICED_US);
	rc = hold(t, &r);
	/* Either it gives up, or it goes on without stops. */
	(void)check(s, rc == -UNI_EGONE || rc == 0, "a snap without it: %s", uni_strerror(rc));
	(void)check(s, observer_runs(&s->obs, RUNS_MS), "no more stops without it");
	(void)check(s, t->ops->alive(t) == (rc == 0), "the target says so");
	uni_target_detach(t);
}

/* A profiler that is stopped (Ctrl-Z) in a hold; afterwards it must be able to go on. */
static _Noreturn void sleeper(struct suite *s, int fd)
{
	struct uni_target *t = NULL;
	struct uni_regs r;
	uint64_t until_ns;
	int rc;

	if (uni_target_attach(&s->spec, &s->opts, &t, NULL) != 0 || hold(t, &r) != 0)
		_exit(1);
	(void)uni_write_full(fd, "x", 1);
	(void)raise(SIGSTOP);
	until_ns = uni_now_ns() + HOLD_NS;
	rc = t->ops->release(t);
	if (rc != 0 && rc != -UNI_EAGAIN)
		_exit(2);
	/* The guardian may still be about to take over, or take over again on a busy host. */
	do {
		rc = hold(t, &r);
		rc = rc == 0 ? t->ops->release(t) : rc;
	} while (rc == -UNI_EAGAIN && uni_now_ns() < until_ns);
	if (rc != 0)
		_exit(3);
	uni_target_detach(t);
	_exit(0);
}

void test_sleep(struct suite *s)
{
	int p[2], status = 0;
	pid_t pid;
	char c;

	if (!observer_sees(&s->obs) || !has_guardian(s) || pipe(p) != 0) {
		skip(s, "a profiler stopped in a hold", "this target has no guardian");
		return;
	}
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		sleeper(s, p[1]);
	(void)close(p[1]);
	(void)check(s, pid > 0 && read(p[0], &c, 1) == 1, "a profiler stops in a hold");
	(void)close(p[0]);
	(void)check(s, observer_runs(&s->obs, RUNS_MS), "the guest runs all the same");
	(void)kill(pid, SIGCONT);
	(void)waitpid(pid, &status, 0);
	(void)check(s, WIFEXITED(status) && WEXITSTATUS(status) == 0,
		"and the profiler can go on (exit status %d)", WEXITSTATUS(status));
	(void)check(s, observer_runs(&s->obs, RUNS_MS), "the guest runs after that");
}

/* Each operation ends, with -UNI_EGONE where it needs the guest. */
static void check_gone(struct suite *s, struct uni_target *t, const char *state)
{
	struct uni_regs r;
	uint8_t page[4096];
	int rc;

	/* Xen keeps a domain's pages for as long as they are mapped: somebody has to ask. */
	if (s->domain != NULL) {
		rc = t->ops->release(t);
		(void)check(s, rc == 0 || rc == -UNI_EGONE || rc == -UNI_EAGAIN,
			"%s: release before that is known: %s", state, uni_strerror(rc));
		for (int i = 0; i < 20 && t->ops->alive(t); i++)
			(void)usleep(50000);
	}
	rc = read_page(t, page);
	(void)check(s, rc == -UNI_EGONE, "%s: reading: %s", state, uni_strerror(rc));
	rc = t->ops->release(t);
	(void)check(s, rc == 0 || rc == -UNI_EGONE, "%s: release: %s", state, uni_strerror(rc));
	rc = hold(t, &r);
	(void)check(s, rc == -UNI_EGONE, "%s: snap: %s", state, uni_strerror(rc));
	(void)check(s, t->ops->release(t) == 0, "%s: release after a failed snap", state);
	(void)check(s, t->ops->alive == NULL || !t->ops->alive(t), "%s: it is not alive", state);
	uni_target_detach(t);
	(void)check(s, true, "%s: detach", state);
}

/* Are all threads dead? One that we hold waits for us to be told of it. */
static bool is_dead(int pid)
{
	char path[300], stat[512];
	struct dirent *e;
	bool dead = true;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d != NULL && dead && (e = readdir(d)) != NULL) {
		const char *end;

		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, e->d_name);
		if (e->d_name[0] == '.' || uni_read_small(path, stat, sizeof(stat)) < 0)
			continue;
		end = strrchr(stat, ')');
		dead = end != NULL && (end[2] == 'Z' || end[2] == 'X');
	}
	if (d != NULL)
		(void)closedir(d);
	return dead;
}

/* Ends the domain as its VMM's death, or an operator who destroys it, would. */
static void end_vm(const struct suite *s)
{
	pid_t pid;

	if (s->domain == NULL) {
		(void)kill(s->vmm, SIGKILL);
		return;
	}
	pid = fork();
	if (pid == 0) {
		(void)execlp("xl", "xl", "destroy", s->domain, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

bool vm_gone_in(struct suite *s, const char *state)
{
	struct uni_target *t;
	uint8_t page[4096];
	pid_t killer = 0;

	(void)alarm(ALARM_S);
	t = attach(s);
	if (t == NULL)
		return false;
	if ((s->vmm == 0 && s->domain == NULL) ||
		!check(s, enter(t, state), "the target reaches the state %s", state)) {
		uni_target_detach(t);
		return false;
	}
	if (strcmp(state, "reading") == 0)
		killer = fork();
	if (killer == 0) {
		(void)usleep(strcmp(state, "reading") == 0 ? 20000 : 0);
		end_vm(s);
		if (strcmp(state, "reading") == 0)
			_exit(0);
	}
	for (int i = 0; i < 5000000 && strcmp(state, "reading") == 0; i++) {
		if (read_page(t, page) != 0)
			break;
	}
	if (killer > 0)
		(void)waitpid(killer, NULL, 0);
	while (s->domain == NULL && !is_dead(s->vmm)) /* until the alarm */
		(void)usleep(1000);
	check_gone(s, t, state);
	(void)printf("1..%u\n", s->nr);
	return s->failed == 0;
}
