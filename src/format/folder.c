/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/outdir.h"

static void remove_folder(const struct uni_outdir *at, const char *name)
{
	int fd = uni_door_openat(at->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)uni_door_unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d != NULL)
		(void)closedir(d);
	else if (fd >= 0)
		(void)close(fd);
	(void)uni_door_unlinkat(at->fd, name, AT_REMOVEDIR);
}

static int cannot_make(const char *path, int e, struct uni_err *err)
{
	return uni_err_set(err, UNI_EIO, "cannot make %s: %s", path, strerror(e));
}

static int fill_folder(const struct uni_outdir *at, const char *path,
	int (*fill)(void *arg, int dir_fd, struct uni_err *err), void *arg, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf tmp;
	_cleanup_close_ int fd = -1;
	int rc;

	uni_strbuf_init(&tmp);
	rc = uni_outdir_temp(at->name, &tmp, err);
	if (rc != 0)
		return rc;
	fd = uni_outdir_make(at->fd, tmp.s);
	if (fd < 0)
		return cannot_make(path, -fd, err);
	rc = fill(arg, fd, err);
	if (rc == 0 && uni_door_renameat(at->fd, tmp.s, at->name) != 0)
		rc = cannot_make(path, errno, err);
	if (rc != 0)
		remove_folder(at, tmp.s);
	return rc;
}

int uni_export_folder(const char *path, int (*fill)(void *arg, int dir_fd, struct uni_err *err),
	void *arg, struct uni_err *err)
{
	_cleanup_(uni_outdir_close) struct uni_outdir at = { .fd = -1 };
	struct stat st;
	int rc = uni_outdir_open(AT_FDCWD, path, false, &at, err);

	if (rc != 0)
		return rc;
	if (uni_door_fstatat(at.fd, at.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return uni_err_set(err, UNI_EUSAGE, "%s is there already: give another name", path);
	return fill_folder(&at, path, fill, arg, err);
}

int uni_export_folder_file(int dir_fd, const char *path, const char *name, int *fd_ret,
	struct uni_sink **ret, struct uni_err *err)
{
	_cleanup_close_ int fd = uni_door_openat(
		dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return uni_err_set(
			err, UNI_EIO, "cannot write %s/%s: %s", path, name, strerror(errno));
	rc = uni_sink_open_fd(fd, name, ret, err);
	if (rc == 0)
		*fd_ret = uni_take_fd(&fd);
	return rc;
}
