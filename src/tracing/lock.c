/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/outdir.h"
#include "base/strbuf.h"

#define FOLDER "/uniscope"
#define NAME   64

#define GUARDIAN_NAP_NS (10 * UNI_NSEC_PER_MSEC)
#define GUARDIAN_NS	(60 * UNI_NSEC_PER_SEC)

/* A folder in which nobody else can make names: root's own, else that of the login session. */
static int folder_name(struct uni_strbuf *ret, struct uni_err *err)
{
	const char *own = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		uni_strbuf_adds(ret, "/run" FOLDER);
	else if (own != NULL && own[0] == '/')
		uni_strbuf_addf(ret, "%s" FOLDER, own);
	else
		uni_strbuf_addf(ret, "/tmp" FOLDER "-%u", (unsigned)geteuid());
	return uni_strbuf_failed(ret) ? uni_err_nomem(err) : 0;
}

static int open_folder(int *fd_ret, struct uni_err *err)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	_cleanup_strbuf_ struct uni_strbuf path;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int rc, e;

	uni_strbuf_init(&path);
	rc = folder_name(&path, err);
	if (rc == 0)
		rc = uni_outdir_open(AT_FDCWD, path.s, false, &at, err);
	if (rc != 0)
		return rc;
	fd = uni_outdir_make(at.fd, at.name);
	e = fd < 0 ? -fd : 0;
	if (e == EEXIST) {
		fd = openat(at.fd, at.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		e = errno;
	}
	if (fd < 0)
		return uni_err_set(err, UNI_EIO, "cannot make %s, the list of traced guests: %s",
			path.s, strerror(e));
	if (fstat(fd, &st) != 0 || st.st_uid != geteuid() || (st.st_mode & 022) != 0)
		return uni_err_set(err, UNI_EPERM,
			"%s is another user's, or others can write to it: remove it", path.s);
	*fd_ret = uni_take_fd(&fd);
	return 0;
}

static void guest_name(const struct uni_target_info *info, const char *target, char ret[NAME])
{
	if (info->pid > 0)
		(void)snprintf(ret, NAME, "trace-pid-%d", info->pid);
	else if (info->domid != 0)
		(void)snprintf(ret, NAME, "trace-xen-%u", info->domid);
	else
		(void)snprintf(ret, NAME, "trace-%016llx",
			(unsigned long long)uni_hash_bytes(target, strlen(target), 0));
}

/* The owner wrote its number into it. "": it did not. */
static void read_owner(int fd, char pid[16])
{
	ssize_t n = pread(fd, pid, 15, 0);

	pid[n > 0 ? n : 0] = '\0';
	if (pid[strspn(pid, "0123456789")] != '\0')
		pid[0] = '\0';
}

/* Has the owner died? Then its guardian still holds the lock. */
static bool is_guardians(int fd)
{
	char pid[16], path[40], stat[256] = "";
	const char *end;

	read_owner(fd, pid);
	if (pid[0] == '\0')
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	if (uni_read_small(path, stat, sizeof(stat)) < 0)
		return true;
	end = strrchr(stat, ')');
	return end != NULL && strncmp(end, ") Z", 3) == 0;
}

/* True: locked. A guardian is waited for; that takes some milliseconds as a rule. */
static bool lock_file(int fd)
{
	const struct timespec nap = uni_ns_timespec(GUARDIAN_NAP_NS);
	uint64_t until_ns = uni_now_ns() + GUARDIAN_NS;
	int r;

	while ((r = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK &&
		is_guardians(fd) && uni_now_ns() < until_ns)
		(void)nanosleep(&nap, NULL);
	return r == 0;
}

static void note_owner(int fd)
{
	if (ftruncate(fd, 0) == 0)
		(void)dprintf(fd, "%d", (int)getpid());
}

static int refuse_locked(int fd, struct uni_err *err)
{
	char pid[16];

	read_owner(fd, pid);
	return uni_err_set(err, UNI_EBUSY,
		"the guest is being traced by %s%s: a second choice of functions would end the "
		"first",
		pid[0] != '\0' ? "process " : "another process", pid);
}

static int open_lock(const char *name, int flags, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int dir = -1;
	int rc = open_folder(&dir, err);

	if (rc != 0)
		return rc;
	*fd_ret = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
	return *fd_ret >= 0 ? 0
			    : uni_err_set(err, UNI_EIO, "cannot claim the guest for this trace: %s",
				      strerror(errno));
}

static void guard_name(const char *target, char ret[NAME])
{
	(void)snprintf(ret, NAME, "guard-%016llx",
		(unsigned long long)uni_hash_bytes(target, strlen(target), 0));
}

int uni_trace_guard(const char *target, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	char name[NAME];
	int rc;

	guard_name(target, name);
	rc = open_lock(name, O_CREAT, &fd, err);
	if (rc != 0)
		return rc;
	/* Another guest may have had this name: its guardian needs no lock of ours. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		note_owner(fd);
	*fd_ret = uni_take_fd(&fd);
	return 0;
}

void uni_trace_await_guardian(const char *target)
{
	_cleanup_close_ int fd = -1;
	struct uni_err err = { 0 };
	char name[NAME];

	guard_name(target, name);
	if (getenv(UNI_TRACE_GUARDIAN) == NULL && open_lock(name, 0, &fd, &err) == 0)
		(void)lock_file(fd);
}

int uni_trace_own(
	const struct uni_target_info *info, const char *target, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	char name[NAME];
	int rc;

	guest_name(info, target, name);
	rc = open_lock(name, O_CREAT, &fd, err);
	if (rc != 0)
		return rc;
	if (!lock_file(fd))
		return errno == EWOULDBLOCK ? refuse_locked(fd, err)
					    : uni_err_set(err, UNI_EIO,
						      "cannot claim the guest for this trace: %s",
						      strerror(errno));
	note_owner(fd);
	*fd_ret = uni_take_fd(&fd);
	return 0;
}
