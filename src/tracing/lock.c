/* SPDX-License-Identifier: BSD-2-Clause */
#include "tracing/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/outdir.h"
#include "base/strbuf.h"

#define FOLDER "/uniscope"
#define NAME   64

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
		return uni_err_set(err, UNI_EIO,
			"cannot make %s, where the guests that are traced "
			"are noted: %s",
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

/* The owner wrote its number into it: for the message only. */
static int refuse_locked(int fd, struct uni_err *err)
{
	char pid[16] = "";

	if (pread(fd, pid, sizeof(pid) - 1, 0) <= 0 || pid[strspn(pid, "0123456789")] != '\0')
		pid[0] = '\0';
	return uni_err_set(err, UNI_EBUSY,
		"the guest is being traced by %s%s: a second choice of functions would end the "
		"first",
		pid[0] != '\0' ? "process " : "another process", pid);
}

int uni_trace_own(
	const struct uni_target_info *info, const char *target, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int dir = -1, fd = -1;
	char name[NAME];
	int rc = open_folder(&dir, err);

	if (rc != 0)
		return rc;
	guest_name(info, target, name);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return uni_err_set(
			err, UNI_EIO, "cannot claim the guest for this trace: %s", strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? refuse_locked(fd, err)
					    : uni_err_set(err, UNI_EIO,
						      "cannot claim the guest for this trace: %s",
						      strerror(errno));
	if (ftruncate(fd, 0) == 0)
		(void)dprintf(fd, "%d", (int)getpid());
	*fd_ret = uni_take_fd(&fd);
	return 0;
}
