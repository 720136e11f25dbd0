/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/confine.h"
#include "base/door.h"
#include "base/observer.h"

typedef struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

#define BIT(cap)  (1ull << (cap))
#define OPENERS	  (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH))
#define OBSERVERS (BIT(CAP_SYS_PTRACE) | BIT(CAP_SYSLOG) | BIT(CAP_PERFMON) | BIT(CAP_BPF))
#define WORKERS_UID \
	1879048192u /* plus the process: a range that nobody uses (systemd, UIDS-GIDS) */
#define WORKERS (1u << 22)
#define NOBODY	65534u

static struct __user_cap_header_struct cap_header(void)
{
	return (struct __user_cap_header_struct){ .version = _LINUX_CAPABILITY_VERSION_3 };
}

bool uni_privilege_has(void)
{
	struct __user_cap_header_struct h = cap_header();
	caps c = { 0 };

	return geteuid() == 0 || uni_door_is_used() ||
	       (syscall(SYS_capget, &h, c) == 0 && (c[0].effective != 0 || c[1].effective != 0));
}

/* Keeps these capabilities at most, and gains no others from programs. */
static int keep_caps(uint64_t keep, struct uni_err *err)
{
	struct __user_cap_header_struct h = cap_header();
	caps c = { 0 };
	bool ok = syscall(SYS_capget, &h, c) == 0;

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		c[i].effective &= (uint32_t)(keep >> (32 * i));
		c[i].permitted &= (uint32_t)(keep >> (32 * i));
		c[i].inheritable = 0;
	}
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	ok = ok && syscall(SYS_capset, &h, c) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	return ok ? 0
		  : uni_err_set(err, UNI_EPERM, "cannot give up this process's rights: %s",
			    strerror(errno));
}

static int prepare_opener(struct uni_err *err)
{
	int rc = keep_caps(OPENERS, err);

	if (rc != 0)
		return rc;
	/* The worker makes temporary files by itself. */
	uni_confine_writes(false);
	return uni_confine_calls(UNI_CONFINED_READER, err);
}

static bool holds_cap(uint64_t cap)
{
	struct __user_cap_header_struct h = cap_header();
	caps c = { 0 };

	return syscall(SYS_capget, &h, c) == 0 && (c[0].permitted & cap) != 0;
}

/* More that this kernel wants. */
static uint64_t observers_more;

static uint64_t observers_caps(void)
{
	/* Either right is enough to read. */
	uint64_t read = BIT(CAP_DAC_READ_SEARCH);

	return OBSERVERS | observers_more | (holds_cap(read) ? read : BIT(CAP_DAC_OVERRIDE));
}

/* Landlock would keep it from looking into any process. */
static int prepare_observer(struct uni_err *err)
{
	int rc = keep_caps(observers_caps(), err);

	return rc == 0 ? uni_confine_calls(UNI_CONFINED_OBSERVER, err) : rc;
}

/*
 * A user of its own: nothing belongs to it, and no other process is of it. A user namespace may
 * have no such user, and a container may keep root from changing: then only the capabilities go.
 */
static void change_user(void)
{
	uid_t uid = WORKERS_UID + (uid_t)getpid() % WORKERS;

	if (setgroups(0, NULL) != 0)
		return;
	if (setresgid(uid, uid, uid) != 0 && setresgid(NOBODY, NOBODY, NOBODY) != 0)
		return;
	if (setresuid(uid, uid, uid) != 0)
		(void)!setresuid(NOBODY, NOBODY, NOBODY);
}

/* The kernel forgets the signal of a parent's death when the user changes. */
static void change_user_only(void)
{
	pid_t parent = getppid();
	int sig = 0;

	(void)prctl(PR_GET_PDEATHSIG, &sig);
	change_user();
	if (sig == 0)
		return;
	(void)prctl(PR_SET_PDEATHSIG, sig);
	if (getppid() != parent)
		(void)raise(sig);
}

static int drop_rights(bool root, enum uni_confined what, struct uni_err *err)
{
	int rc;

	if (root)
		change_user_only();
	rc = keep_caps(0, err);
	if (rc != 0)
		return rc;
	uni_confine_writes(true);
	return uni_confine_calls(what, err);
}

int uni_privilege_drop(struct uni_err *err)
{
	bool root = geteuid() == 0;
	int rc = root ? uni_door_begin(prepare_opener, true, err) : 0;

	return rc == 0 ? drop_rights(root, UNI_CONFINED_READER, err) : rc;
}

int uni_privilege_drop_watching(int pid, struct uni_err *err)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	bool root = geteuid() == 0;
	int rc = root ? uni_door_begin(prepare_opener, false, err) : 0;

	if (rc == 0)
		rc = uni_observer_begin(pid, prepare_observer, err);
	if (rc != 0)
		return rc;
	/* Rings are locked memory. Root's are not limited. */
	(void)setrlimit(RLIMIT_MEMLOCK, &all);
	return drop_rights(root, UNI_CONFINED_WATCHER, err);
}

static int try_with(uint64_t keep, int (*fn)(void *ctx), void *ctx)
{
	struct __user_cap_header_struct h = cap_header();
	caps with = { 0 }, without = { 0 };
	int rc;

	if (syscall(SYS_capget, &h, with) != 0)
		return -UNI_EPERM;
	memcpy(without, with, sizeof(without));
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		without[i].effective &= (uint32_t)(keep >> (32 * i));
	if (syscall(SYS_capset, &h, without) != 0)
		return -UNI_EPERM;
	rc = fn(ctx);
	return syscall(SYS_capset, &h, with) == 0 ? rc : -UNI_EPERM;
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
