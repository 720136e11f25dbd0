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

static void remove_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
	if (d != NULL)
		(void)closedir(d);
	(void)rmdir(path);
}

int uni_export_folder(const char *path, int (*fill)(void *arg, int dir_fd, struct uni_err *err),
	void *arg, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf tmp;
	_cleanup_close_ int fd = -1;
	struct stat st;
	int rc;

	uni_strbuf_init(&tmp);
	if (lstat(path, &st) == 0)
		return uni_err_set(err, UNI_EUSAGE, "%s is there already: give another name", path);
	uni_strbuf_addf(&tmp, "%s.tmp-%ld", path, (long)getpid());
	if (uni_strbuf_failed(&tmp))
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	if (mkdir(tmp.s, 0777) == 0)
		fd = open(tmp.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return uni_err_set(err, UNI_EIO, "cannot make %s: %s", tmp.s, strerror(errno));
	rc = fill(arg, fd, err);
	if (rc == 0 && rename(tmp.s, path) != 0)
		rc = uni_err_set(err, UNI_EIO, "cannot make %s: %s", path, strerror(errno));
	if (rc != 0)
		remove_folder(tmp.s);
	return rc;
}

int uni_export_folder_file(int dir_fd, const char *path, const char *name, int *fd_ret,
	struct uni_sink **ret, struct uni_err *err)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int rc;

	if (fd < 0)
		return uni_err_set(
			err, UNI_EIO, "cannot write %s/%s: %s", path, name, strerror(errno));
	rc = uni_sink_open_fd(fd, name, ret, err);
	if (rc == 0)
		*fd_ret = uni_take_fd(&fd);
	return rc;
}
