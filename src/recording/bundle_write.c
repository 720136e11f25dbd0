/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"
#include "recording/bundle.h"
#include "recording/bundle_priv.h"
#include "recording/recording.h"
#include "recording/folder.h"

struct writer {
	const char *path, *name; /* of the session; of the folder in the archive */
	int dir_fd;
	struct uni_sink *out;
};

static void put_number(uint8_t *field, size_t len, uint64_t v)
{
	if (v >> 3 * (len - 1) != 0) {
		field[0] = 0x80;
		for (size_t i = len; i-- > 1; v >>= 8)
			field[i] = (uint8_t)v;
		return;
	}
	for (size_t i = len - 1; i-- > 0; v >>= 3)
		field[i] = (uint8_t)('0' + (v & 7));
}

static int put_header(
	struct writer *w, const char *file, const struct stat *st, struct uni_err *err)
{
	static const uint8_t magic[8] = { 'u', 's', 't', 'a', 'r', 0, '0', '0' };
	uint8_t h[UNI_BUNDLE_BLOCK] = { 0 };
	char name[101];
	int n = snprintf(name, sizeof(name), "%s/%s", w->name, file);

	if (n < 0 || (size_t)n >= sizeof(name))
		return uni_err_set(err, UNI_ERANGE, "the name %s is too long", w->name);
	memcpy(h, name, (size_t)n);
	put_number(h + UNI_TAR_MODE, 8, 0644);
	put_number(h + UNI_TAR_UID, 8, 0);
	put_number(h + UNI_TAR_GID, 8, 0);
	put_number(h + UNI_TAR_SIZE, 12, (uint64_t)st->st_size);
	put_number(h + UNI_TAR_MTIME, 12, (uint64_t)uni_max(st->st_mtime, (time_t)0));
	h[UNI_TAR_TYPE] = '0';
	memcpy(h + UNI_TAR_MAGIC, magic, sizeof(magic));
	put_number(h + UNI_TAR_CHECKSUM, 7, uni_tar_checksum(h));
	h[UNI_TAR_CHECKSUM + 7] = ' ';
	uni_sink_write(w->out, h, sizeof(h));
	return 0;
}

static int put_content(
	struct writer *w, int fd, const char *file, uint64_t left, struct uni_err *err)
{
	static const uint8_t zeros[UNI_BUNDLE_BLOCK];
	uint64_t padding = (UNI_BUNDLE_BLOCK - left % UNI_BUNDLE_BLOCK) % UNI_BUNDLE_BLOCK;
	uint8_t buf[32768];

	while (left != 0 && !uni_sink_failed(w->out)) {
		ssize_t n = read(fd, buf, (size_t)uni_min(left, (uint64_t)sizeof(buf)));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return uni_err_set(err, UNI_EIO, "cannot read %s/%s: %s", w->path, file,
				n < 0 ? strerror(errno) : "it became shorter");
		uni_sink_write(w->out, buf, (size_t)n);
		left -= (uint64_t)n;
	}
	uni_sink_write(w->out, zeros, (size_t)padding);
	return 0;
}

/* A file that grows meanwhile is cut to its size at the beginning. */
static int put_file(struct writer *w, const char *file, struct uni_err *err)
{
	_cleanup_close_ int fd =
		uni_door_openat(w->dir_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) != 0)
		return uni_err_set(
			err, UNI_EIO, "cannot read %s/%s: %s", w->path, file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return uni_err_set(err, UNI_EFORMAT, "%s/%s is not a regular file", w->path, file);
	rc = put_header(w, file, &st, err);
	return rc != 0 ? rc : put_content(w, fd, file, (uint64_t)st.st_size, err);
}

/* Writes the files of one folder, in any order, without files that are being written. */
static int put_folder(struct writer *w, const char *sub, struct uni_err *err)
{
	int fd = uni_door_openat(w->dir_fd, sub != NULL ? sub : ".",
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0),
	    rc = 0;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (d == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return uni_err_set(
			err, UNI_EIO, "cannot look into %s: %s", w->path, strerror(errno));
	}
	while (rc == 0 && (e = readdir(d)) != NULL) {
		char file[320];

		if (!uni_sdir_is_file(sub, e->d_name) || strstr(e->d_name, ".tmp-") != NULL)
			continue;
		(void)snprintf(file, sizeof(file), "%s%s%s", sub != NULL ? sub : "",
			sub != NULL ? "/" : "", e->d_name);
		rc = put_file(w, file, err);
	}
	(void)closedir(d);
	return rc;
}

int uni_bundle_write(const char *path, const char *name, struct uni_sink *out, struct uni_err *err)
{
	static const uint8_t end[2 * UNI_BUNDLE_BLOCK];
	_cleanup_close_ int fd = -1;
	int rc = uni_sdir_open(path, &fd, err);
	struct writer w = { path, name, fd, out };

	if (rc != 0)
		return rc;
	rc = put_folder(&w, NULL, err);
	if (rc == 0)
		rc = put_folder(&w, UNI_SDIR_SYMBOLS, err);
	for (unsigned i = 0; rc == 0 && i < UNI_GUEST_MAX; i++) {
		char sub[32];

		(void)snprintf(sub, sizeof(sub), UNI_SDIR_GUEST, i);
		rc = put_folder(&w, sub, err);
	}
	uni_sink_write(out, end, sizeof(end));
	return rc;
}
