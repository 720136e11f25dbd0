/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/child_rights.h"

#include <grp.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/privilege.h"

#define KVM	 "/dev/kvm"
#define BIT(cap) (1ull << (cap))

/* Without these, we could not reach or end a VMM of another user. */
#define OURS                                                                          \
	(BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | \
		BIT(CAP_KILL) | BIT(CAP_SYS_PTRACE))
#define FILES (BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH))
/* Files, sockets, networks, locked memory, and -runas. Others lead into the kernel. */
#define OPTIONS                                                                         \
	(FILES | BIT(CAP_CHOWN) | BIT(CAP_FOWNER) | BIT(CAP_SETUID) | BIT(CAP_SETGID) | \
		BIT(CAP_SYS_CHROOT) | BIT(CAP_NET_ADMIN) | BIT(CAP_NET_RAW) |           \
		BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_IPC_LOCK) | BIT(CAP_SYS_NICE) |     \
		BIT(CAP_SYS_RESOURCE))

static bool may_change_user(void)
{
	uint64_t permitted, effective = 0;

	return geteuid() == 0 && uni_caps_get(&permitted, &effective) && (effective & OURS) == OURS;
}

/* As execvp() would find it. */
bool uni_child_is_program(const char *name)
{
	const char *path = getenv("PATH");
	char file[4352];

	if (strchr(name, '/') != NULL)
		return access(name, X_OK) == 0;
	while (path != NULL && *path != '\0') {
		size_t len = strcspn(path, ":");
		int n = snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, name);

		if (n > 0 && (size_t)n < sizeof(file) && access(file, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

/* Asked as that user. */
static bool can_read(const char *file)
{
	return file == NULL || access(file, R_OK) == 0;
}

static bool give_dir(const char *dir, uid_t uid)
{
	return dir == NULL || chown(dir, uid, uid) == 0;
}

/* Until the next call it can go back: root is its saved user. */
static bool try_user(uid_t uid, const char *dir)
{
	return give_dir(dir, uid) && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, 0) == 0;
}

static void go_back(const char *dir)
{
	if (setresuid(0, 0, 0) != 0 || setresgid(0, 0, 0) != 0 || setgroups(0, NULL) != 0 ||
		!give_dir(dir, 0))
		_exit(126);
}

/* False: it is root, as before. */
static bool become_user(
	const char *program, const struct uni_child_rights *needs, uint64_t *keep_ret)
{
	const uid_t uid = uni_privilege_own_user();
	struct stat st;
	bool can_run;

	if (!needs->kvm || stat(KVM, &st) != 0 || st.st_gid == 0)
		st.st_gid = uid;
	/* A user namespace may forbid it. */
	if (setgroups(1, &st.st_gid) != 0)
		return false;
	if (!try_user(uid, needs->dir)) {
		go_back(needs->dir);
		return false;
	}
	can_run = uni_child_is_program(program) && (!needs->kvm || access(KVM, R_OK | W_OK) == 0);
	*keep_ret = can_read(needs->image) && can_read(needs->disk) ? 0 : BIT(CAP_DAC_READ_SEARCH);
	if (!can_run || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresuid(uid, uid, uid) != 0) {
		go_back(needs->dir);
		return false;
	}
	return true;
}

int uni_child_give_up_rights(
	const char *program, const struct uni_child_rights *needs, struct uni_err *err)
{
	uint64_t keep = needs->options ? OPTIONS : FILES;

	/* A program has no capability of this one's file, unless root executes it. */
	if (geteuid() != 0)
		return 0;
	if (!needs->options && !needs->writes && may_change_user() &&
		!become_user(program, needs, &keep))
		keep = FILES;
	return uni_caps_keep(keep, true, err);
}
