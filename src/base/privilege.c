/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/door.h"
#include "base/io.h"
#include "base/observer.h"

#define BIT(cap)  (1ull << (cap))
#define OPENERS	  (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH))
#define OBSERVERS (BIT(CAP_SYS_PTRACE) | BIT(CAP_SYSLOG) | BIT(CAP_PERFMON) | BIT(CAP_BPF))
/* For the process' folder map_files, and for a short pause on a busy host. */
#define PROCESSES (BIT(CAP_CHECKPOINT_RESTORE) | BIT(CAP_SYS_NICE))
/* It stops nothing, but hurries on behalf of the command. */
#define BESIDE (BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE))
/* To stop a guest, write to it, and give up rights. */
#define PATCHERS                                                                                 \
	(OPENERS | BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) | BIT(CAP_KILL) | BIT(CAP_IPC_LOCK) | \
		BIT(CAP_SETUID) | BIT(CAP_SETGID))
/* CAP_SYS_ADMIN: for perf events where the kernel wants it; and a port of `serve`. */
#define LOOKERS                                                                       \
	(PATCHERS | OBSERVERS | PROCESSES | BIT(CAP_FOWNER) | BIT(CAP_SYS_RESOURCE) | \
		BIT(CAP_SYS_ADMIN) | BIT(CAP_NET_BIND_SERVICE))
#define WORKERS_UID \
	1879048192u /* plus the process: a range that nobody uses (systemd, UIDS-GIDS) */
#define WORKERS (1u << 22)
#define NOBODY	65534u

bool uni_privilege_has(void)
{
	uint64_t permitted, effective = 0;

	return geteuid() == 0 || uni_door_is_used() ||
	       (uni_caps_get(&permitted, &effective) && effective != 0);
}

/* More that this kernel wants. */
static uint64_t observers_more;
static bool dropped, is_owner;
static uid_t caller;

bool uni_privilege_is_dropped(void)
{
	return dropped;
}

uid_t uni_privilege_caller(void)
{
	return is_owner ? caller : geteuid();
}

bool uni_privilege_may_stop(void)
{
	return !dropped || is_owner;
}

/* Either right is enough to read. */
static uint64_t reading_caps(void)
{
	uint64_t read = BIT(CAP_DAC_READ_SEARCH), permitted = 0, effective;

	(void)uni_caps_get(&permitted, &effective);
	return (permitted & read) != 0 ? read : BIT(CAP_DAC_OVERRIDE);
}

static uint64_t observers_caps(void)
{
	return OBSERVERS | observers_more | reading_caps();
}

uid_t uni_privilege_own_user(void)
{
	return WORKERS_UID + (uid_t)getpid() % WORKERS;
}

/*
 * A user of its own: nothing belongs to it, and no other process is of it. A user namespace may
 * have no such user, and a container may keep root from changing: then only the capabilities go.
 */
static void change_user(void)
{
	uid_t uid = uni_privilege_own_user();

	if (setgroups(0, NULL) != 0)
		return;
	if (setresgid(uid, uid, uid) != 0 && setresgid(NOBODY, NOBODY, NOBODY) != 0)
		return;
	if (setresuid(uid, uid, uid) != 0)
		(void)!setresuid(NOBODY, NOBODY, NOBODY);
}

static bool become_owner(const struct stat *st)
{
	if (geteuid() != 0)
		return st->st_uid == geteuid() && st->st_gid == getegid();
	return setgroups(0, NULL) == 0 && setresgid(st->st_gid, st->st_gid, st->st_gid) == 0 &&
	       setresuid(st->st_uid, st->st_uid, st->st_uid) == 0;
}

/*
 * The kernel forgets the signal of a parent's death when the user changes. owner: NULL, a user of
 * its own.
 */
static bool change_user_only(const struct stat *owner)
{
	pid_t parent = getppid();
	int sig = 0;
	bool ok = true;

	(void)prctl(PR_GET_PDEATHSIG, &sig);
	if (owner != NULL)
		ok = become_owner(owner);
	else
		change_user();
	if (sig == 0)
		return ok;
	(void)prctl(PR_SET_PDEATHSIG, sig);
	if (getppid() != parent)
		(void)raise(sig);
	return ok;
}

static int drop_rights(bool root, enum uni_confined what, struct uni_err *err)
{
	_cleanup_close_ int rules = -1;
	int rc;

	if (root)
		(void)change_user_only(NULL);
	rc = uni_caps_keep(0, false, err);
	if (rc != 0)
		return rc;
	dropped = true;
	rules = uni_confine_rules(true);
	uni_confine_enter(rules);
	return uni_confine_worker(what, err);
}

/* The worker makes temporary files by itself. */
static int begin_opener(struct uni_err *err)
{
	_cleanup_close_ int rules = uni_confine_rules(false);

	return uni_door_begin(OPENERS, rules, err);
}

int uni_privilege_drop(struct uni_err *err)
{
	bool root = geteuid() == 0;
	int rc = root ? begin_opener(err) : 0;

	return rc == 0 ? drop_rights(root, UNI_CONFINED_READER, err) : rc;
}

static bool stat_owner(int pid, struct stat *ret)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, ret) == 0 && ret->st_uid != 0;
}

/* The kernel asks for the right to trace when this file is read. */
static _Noreturn void try_as_owner(int pid, const struct stat *st)
{
	char path[32], text[256];

	if (!become_owner(st) || uni_caps_keep(0, false, NULL) != 0)
		_exit(1);
	(void)snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	_exit(uni_read_small(path, text, sizeof(text)) > 0 ? 0 : 1);
}

bool uni_privilege_owner_may_trace(int pid)
{
	struct stat st;
	int status = -1;
	pid_t child, r;

	if (!stat_owner(pid, &st))
		return false;
	child = fork();
	if (child == 0)
		try_as_owner(pid, &st);
	do
		r = waitpid(child, &status, 0);
	while (r < 0 && errno == EINTR);
	return child > 0 && r == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Landlock would keep it from tracing any process. */
int uni_privilege_drop_to_owner(int pid, struct uni_err *err)
{
	struct stat st;
	int rc = geteuid() == 0 ? begin_opener(err) : 0;

	if (rc == 0)
		rc = uni_observer_begin(pid, true, false, BESIDE | reading_caps(), err);
	if (rc != 0)
		return rc;
	uni_observer_leave_memory();
	caller = geteuid();
	if (!stat_owner(pid, &st) || !change_user_only(&st))
		return uni_err_set(err, UNI_EPERM, "cannot become the user of process %d", pid);
	rc = uni_caps_keep(0, false, err);
	dropped = is_owner = rc == 0;
	return rc == 0 ? uni_confine_worker(UNI_CONFINED_TRACER, err) : rc;
}

int uni_privilege_keep_connecting(struct uni_err *err)
{
	bool root = geteuid() == 0;
	int rc;

	if (root && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0)
		change_user();
	/* A new user's effective capabilities are gone. */
	(void)uni_caps_use(UINT64_MAX);
	rc = uni_caps_keep(OPENERS, false, err);
	return rc == 0 ? uni_confine_worker(UNI_CONFINED_GUARDIAN, err) : rc;
}

static int limit_rights(uint64_t keep, bool inherited, struct uni_err *err)
{
	static bool limited;
	uint64_t permitted, effective;
	int rc;

	if (dropped || !uni_privilege_has())
		return 0;
	/* Without this right, a VMM that has more rights than we could not be looked into. */
	if (!uni_caps_get(&permitted, &effective) || (permitted & BIT(CAP_SYS_PTRACE)) == 0)
		keep = ~0ull;
	rc = uni_caps_keep(keep, inherited, err);
	if (rc == 0 && !limited)
		rc = uni_confine_command(err);
	limited = true;
	return rc;
}

int uni_privilege_limit(struct uni_err *err)
{
	return limit_rights(LOOKERS, false, err);
}

int uni_privilege_limit_guardian(struct uni_err *err)
{
	return limit_rights(PATCHERS, true, err);
}

static bool is_earlier(const struct uni_watched *w, size_t i)
{
	for (size_t k = 0; k < i; k++) {
		if (w[k].pid == w[i].pid)
			return true;
	}
	return false;
}

/* One child for each process, be it watched in two ways. */
static int begin_observer(const struct uni_watched *w, size_t nr, size_t i, struct uni_err *err)
{
	bool stops = false, writes = false;
	uint64_t caps = 0;

	for (size_t k = i; k < nr; k++) {
		if (w[k].pid != w[i].pid)
			continue;
		stops = stops || w[k].stops || w[k].beside;
		writes = writes || w[k].writes;
		caps |= w[k].beside ? BESIDE | reading_caps() : observers_caps();
		caps |= w[k].stops ? PROCESSES : 0;
	}
	return uni_observer_begin(w[i].pid, stops, writes, caps, err);
}

int uni_privilege_drop_watching(const struct uni_watched *w, size_t nr, struct uni_err *err)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, first = { 1, 1 };
	bool root = geteuid() == 0;
	int rc = root ? begin_opener(err) : 0;

	for (size_t i = 0; rc == 0 && i < nr; i++)
		rc = w[i].pid == 0 || is_earlier(w, i) ? 0 : begin_observer(w, nr, i, err);
	if (rc != 0)
		return rc;
	/* Rings are locked memory. Root's are not limited. */
	(void)setrlimit(RLIMIT_MEMLOCK, &all);
	if (uni_confine_keeps_xen())
		(void)setrlimit(RLIMIT_RTPRIO, &first);
	return drop_rights(root, UNI_CONFINED_WATCHER, err);
}

static int try_with(uint64_t keep, int (*fn)(void *ctx), void *ctx)
{
	uint64_t permitted, effective;
	int rc;

	if (!uni_caps_get(&permitted, &effective) || !uni_caps_use(effective & keep))
		return -UNI_EPERM;
	rc = fn(ctx);
	return uni_caps_use(effective) ? rc : -UNI_EPERM;
}

int uni_privilege_try_without(int (*fn)(void *ctx), void *ctx)
{
	return try_with(0, fn, ctx);
}

int uni_privilege_try_observing(int (*fn)(void *ctx), void *ctx)
{
	int rc = try_with(observers_caps(), fn, ctx);

	if (rc == 0)
		return 0;
	/* Debian's kernels with perf_event_paranoid 3 want it for each event. */
	observers_more = BIT(CAP_SYS_ADMIN);
	rc = try_with(observers_caps(), fn, ctx);
	if (rc != 0)
		observers_more = 0;
	return rc;
}
