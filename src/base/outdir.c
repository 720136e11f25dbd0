/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/outdir.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/privilege.h"

#define LINKS_MAX 40 /* the kernel's limit */

struct walk {
	const char *path; /* for messages */
	int fd;
	char *rest; /* the part of the path that is still to be walked */
	unsigned links;
	bool follow;
};

bool uni_outdir_is_open(const struct stat *folder)
{
	if (folder->st_uid != 0 && folder->st_uid != geteuid())
		return true;
	if ((folder->st_mode & S_IWOTH) != 0)
		return (folder->st_mode & S_ISVTX) == 0 || uni_privilege_has();
	return (folder->st_mode & S_IWGRP) != 0 && folder->st_gid != 0 && uni_privilege_has();
}

static int walk_failed(const struct walk *w, int e, struct uni_err *err)
{
	const char *hint = e == ENOENT ? " (its parent folder does not exist)" : "";

	return uni_err_set(err, e == EACCES || e == EPERM || e == EROFS ? UNI_EPERM : UNI_EIO,
		"cannot write %s: %s%s", w->path, strerror(e), hint);
}

static void walk_step(struct walk *w, int fd)
{
	(void)close(w->fd);
	w->fd = fd;
}

static bool is_proc(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Puts the text of the link before the rest. */
static int walk_into(struct walk *w, const char *text, const char *rest, struct uni_err *err)
{
	char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/%s", text, rest) < 0)
		return uni_err_nomem(err);
	if (rest[0] == '\0')
		path[strlen(path) - 1] = '\0';
	free(w->rest);
	w->rest = path;
	if (path[0] != '/')
		return 0;
	fd = uni_door_openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return walk_failed(w, errno, err);
	walk_step(w, fd);
	return 0;
}

/* 1: the name is a magic link of /proc, and is not followed here. */
static int walk_link(struct walk *w, const char *name, const char *rest, struct uni_err *err)
{
	bool proc = is_proc(w->fd);
	char text[PATH_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	if (fstat(w->fd, &st) != 0 || uni_outdir_is_open(&st))
		return uni_err_set(err, UNI_EPERM,
			"cannot write %s: %s is a link in a folder that another user can change; "
			"give the path that it leads to",
			w->path, name);
	n = uni_door_readlinkat(w->fd, name, text, sizeof(text) - 1);
	if (n < 0 || ++w->links > LINKS_MAX)
		return walk_failed(w, n < 0 ? errno : ELOOP, err);
	text[n] = '\0';
	if (proc && rest[0] == '\0' && text[0] != '/')
		return 1;
	/* The kernel follows it: such a folder may be in another mount namespace. */
	if (proc && rest[0] != '\0') {
		fd = uni_door_openat(w->fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		if (fd < 0)
			return walk_failed(w, errno, err);
		walk_step(w, fd);
		memmove(w->rest, rest, strlen(rest) + 1);
		return 0;
	}
	return walk_into(w, text, rest, err);
}

/* Goes into one folder; `rest` is within w->rest. */
static int walk_folder(struct walk *w, const char *name, const char *rest, struct uni_err *err)
{
	_cleanup_close_ int fd = uni_door_openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return walk_failed(w, errno, err);
	if (S_ISLNK(st.st_mode))
		return walk_link(w, name, rest, err);
	if (!S_ISDIR(st.st_mode))
		return walk_failed(w, ENOTDIR, err);
	walk_step(w, uni_take_fd(&fd));
	memmove(w->rest, rest, strlen(rest) + 1);
	return 0;
}

static int walk_last(struct walk *w, const char *name, struct uni_outdir *ret, struct uni_err *err)
{
	struct stat st;
	int rc = 0;

	if (w->follow && uni_door_fstatat(w->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISLNK(st.st_mode)) {
		rc = walk_link(w, name, "", err);
		if (rc <= 0)
			return rc;
	}
	ret->name = strdup(name);
	ret->magic = rc > 0;
	return ret->name != NULL ? 1 : uni_err_nomem(err);
}

/* 1: the end of the path is reached. */
static int walk_name(struct walk *w, struct uni_outdir *ret, struct uni_err *err)
{
	const char *name = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(name, "/");
	const char *rest = name + len + strspn(name + len, "/");
	_cleanup_free_ char *part = strndup(name, len);

	if (part == NULL)
		return uni_err_nomem(err);
	if (rest[0] == '\0')
		return walk_last(w, len != 0 ? part : ".", ret, err);
	return walk_folder(w, part, rest, err);
}

int uni_outdir_open(
	int dir_fd, const char *path, bool follow, struct uni_outdir *ret, struct uni_err *err)
{
	struct walk w = { .path = path, .follow = follow, .rest = strdup(path) };
	int rc = 0;

	*ret = (struct uni_outdir){ .fd = -1 };
	if (w.rest == NULL)
		return uni_err_nomem(err);
	w.fd = uni_door_openat(
		dir_fd, path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (w.fd < 0)
		rc = walk_failed(&w, errno, err);
	while (rc == 0)
		rc = walk_name(&w, ret, err);
	free(w.rest);
	assert(rc <= 0 || ret->name != NULL);
	if (rc > 0)
		ret->fd = w.fd;
	else if (w.fd >= 0)
		(void)close(w.fd);
	return rc > 0 ? 0 : rc;
}

void uni_outdir_close(struct uni_outdir *d)
{
	if (d->name != NULL)
		(void)close(d->fd);
	free(d->name);
	*d = (struct uni_outdir){ .fd = -1 };
}

int uni_outdir_temp(const char *name, struct uni_strbuf *ret, struct uni_err *err)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return uni_err_set(err, UNI_EIO, "no random numbers: %s", strerror(errno));
	uni_strbuf_reset(ret);
	uni_strbuf_addf(ret, "%s.tmp-%016llx", name, (unsigned long long)random);
	return uni_strbuf_failed(ret) ? uni_err_nomem(err) : 0;
}

int uni_outdir_make(int fd, const char *name)
{
	_cleanup_close_ int made = -1;
	struct stat st;

	if (uni_door_mkdirat(fd, name, 0700) != 0)
		return -errno;
	made = uni_door_openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (made < 0 || fstat(made, &st) != 0)
		return -errno;
	/* Somebody put another folder in the place of ours. */
	if ((st.st_uid != geteuid() && !(st.st_uid == 0 && uni_door_is_used())) ||
		(st.st_mode & 077) != 0)
		return -EPERM;
	return uni_take_fd(&made);
}

int uni_outdir_mkdir(const char *path, int *fd_ret, struct uni_err *err)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	int rc = uni_outdir_open(AT_FDCWD, path, false, &at, err), fd;

	if (rc != 0)
		return rc;
	fd = uni_outdir_make(at.fd, at.name);
	if (fd < 0)
		return uni_err_set(err, fd == -EEXIST ? UNI_EBUSY : UNI_EIO,
			"cannot make the folder %s: %s", path, strerror(-fd));
	*fd_ret = fd;
	return 0;
}
