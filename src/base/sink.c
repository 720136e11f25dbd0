/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/door.h"
#include "base/io.h"
#include "base/outdir.h"

#define SINK_BUF (64 * 1024)

struct uni_sink {
	int fd; /* -1: memory */
	bool own_fd;
	char *name;	       /* for messages */
	struct uni_outdir dir; /* for a file */
	char *tmp;	       /* temporary name, or NULL */
	bool durable;
	struct uni_strbuf *mem;
	char *buf;
	size_t fill;
	uint64_t bytes;
	int error; /* errno of the first failure, 0 while all is well */
};

static void sink_free(struct uni_sink *s)
{
	if (s->own_fd && s->fd >= 0)
		(void)close(s->fd);
	free(s->name);
	uni_outdir_close(&s->dir);
	free(s->tmp);
	free(s->buf);
	free(s);
}

static struct uni_sink *sink_new(const char *name)
{
	struct uni_sink *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->fd = -1;
	s->name = strdup(name);
	s->buf = malloc(SINK_BUF);
	if (s->name == NULL || s->buf == NULL) {
		sink_free(s);
		return NULL;
	}
	return s;
}

int uni_sink_open_fd(int fd, const char *name, struct uni_sink **ret, struct uni_err *err)
{
	struct uni_sink *s = sink_new(name);

	if (s == NULL)
		return uni_err_nomem(err);
	s->fd = fd;
	*ret = s;
	return 0;
}

int uni_sink_open_strbuf(struct uni_strbuf *b, struct uni_sink **ret)
{
	struct uni_sink *s = sink_new("memory");

	if (s == NULL)
		return -UNI_ENOMEM;
	s->mem = b;
	*ret = s;
	return 0;
}

static int cannot_write(const char *name, int e, struct uni_err *err)
{
	return uni_err_set(err, e == EACCES || e == EPERM || e == EROFS ? UNI_EPERM : UNI_EIO,
		"cannot write %s: %s", name, strerror(e));
}

/* A pipe or device cannot be renamed into place: it is written to directly. */
static int open_special(struct uni_sink *s, struct uni_err *err)
{
	struct stat st, folder;

	s->fd = uni_door_openat(s->dir.fd, s->dir.name,
		O_WRONLY | O_NOCTTY | O_CLOEXEC | (s->dir.magic ? 0 : O_NOFOLLOW), 0);
	if (s->fd < 0 || fstat(s->fd, &st) != 0 || fstat(s->dir.fd, &folder) != 0)
		return cannot_write(s->name, errno, err);
	if (!s->dir.magic &&
		(S_ISREG(st.st_mode) ||
			(uni_outdir_is_open(&folder) && st.st_uid != 0 && st.st_uid != geteuid())))
		return uni_err_set(err, UNI_EPERM,
			"cannot write %s: it belongs to another user, in a folder that others can "
			"change",
			s->name);
	return 0;
}

static int open_temp(struct uni_sink *s, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf tmp;
	int rc;

	uni_strbuf_init(&tmp);
	rc = uni_outdir_temp(s->dir.name, &tmp, err);
	if (rc != 0)
		return rc;
	s->fd = uni_door_openat(
		s->dir.fd, tmp.s, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->fd < 0)
		return cannot_write(s->name, errno, err);
	s->tmp = uni_strbuf_detach(&tmp);
	return s->tmp != NULL ? 0 : uni_err_nomem(err);
}

static int open_place(struct uni_sink *s, struct uni_err *err)
{
	struct stat st;

	if (s->dir.magic)
		return open_special(s, err);
	if (uni_door_fstatat(s->dir.fd, s->dir.name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return open_temp(s, err);
	if (S_ISDIR(st.st_mode))
		return cannot_write(s->name, EISDIR, err);
	return S_ISREG(st.st_mode) || S_ISLNK(st.st_mode) ? open_temp(s, err)
							  : open_special(s, err);
}

static int open_below(int dir_fd, const char *path, const char *shown, bool follow,
	struct uni_sink **ret, struct uni_err *err)
{
	struct uni_sink *s = sink_new(shown);
	int rc;

	if (s == NULL)
		return uni_err_nomem(err);
	s->own_fd = true;
	rc = uni_outdir_open(dir_fd, path, follow, &s->dir, err);
	if (rc == 0)
		rc = open_place(s, err);
	if (rc == 0)
		*ret = s;
	else
		sink_free(s);
	return rc;
}

int uni_sink_open_file(const char *path, struct uni_sink **ret, struct uni_err *err)
{
	if (strcmp(path, "-") == 0)
		return uni_sink_open_fd(STDOUT_FILENO, "standard output", ret, err);
	return open_below(AT_FDCWD, path, path, true, ret, err);
}

int uni_sink_open_below(
	int dir_fd, const char *path, const char *shown, struct uni_sink **ret, struct uni_err *err)
{
	return open_below(dir_fd, path, shown, false, ret, err);
}

void uni_sink_set_mode(struct uni_sink *s, unsigned mode)
{
	if (uni_door_fchmod(s->fd, mode & 07777) != 0 && s->error == 0)
		s->error = errno;
}

void uni_sink_set_durable(struct uni_sink *s)
{
	s->durable = true;
}

static void write_data(struct uni_sink *s, const void *data, size_t len)
{
	int r;

	if (s->error != 0 || len == 0)
		return;
	if (s->mem != NULL) {
		uni_strbuf_add(s->mem, data, len);
		if (uni_strbuf_failed(s->mem))
			s->error = ENOMEM;
	} else {
		r = uni_write_full(s->fd, data, len);
		if (r != 0)
			s->error = -r;
	}
}

void uni_sink_flush(struct uni_sink *s)
{
	write_data(s, s->buf, s->fill);
	s->fill = 0;
}

void uni_sink_write(struct uni_sink *s, const void *data, size_t len)
{
	const char *p = data;

	s->bytes += len;
	if (len >= SINK_BUF) {
		uni_sink_flush(s);
		write_data(s, data, len);
		return;
	}
	while (len != 0 && s->error == 0) {
		size_t n = SINK_BUF - s->fill;

		if (n > len)
			n = len;
		memcpy(s->buf + s->fill, p, n);
		s->fill += n;
		p += n;
		len -= n;
		if (s->fill == SINK_BUF)
			uni_sink_flush(s);
	}
}

void uni_sink_puts(struct uni_sink *s, const char *str)
{
	uni_sink_write(s, str, strlen(str));
}

void uni_sink_putc(struct uni_sink *s, char c)
{
	uni_sink_write(s, &c, 1);
}

void uni_sink_printf(struct uni_sink *s, const char *fmt, ...)
{
	char small[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0) {
		s->error = s->error != 0 ? s->error : EINVAL;
	} else if ((size_t)n < sizeof(small)) {
		uni_sink_write(s, small, (size_t)n);
	} else {
		char *big = malloc((size_t)n + 1);

		if (big == NULL) {
			s->error = s->error != 0 ? s->error : ENOMEM;
			return;
		}
		va_start(ap, fmt);
		(void)vsnprintf(big, (size_t)n + 1, fmt, ap);
		va_end(ap);
		uni_sink_write(s, big, (size_t)n);
		free(big);
	}
}

uint64_t uni_sink_bytes(const struct uni_sink *s)
{
	return s->bytes;
}

bool uni_sink_failed(const struct uni_sink *s)
{
	return s->error != 0;
}

/*
 * A name is only as durable as its folder. If the file system cannot sync folders, that is no
 * failure.
 */
static void sync_folder(const struct uni_sink *s)
{
	_cleanup_close_ int fd =
		uni_door_openat(s->dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	if (fd >= 0)
		(void)fsync(fd);
}

int uni_sink_close(struct uni_sink *s, struct uni_err *err)
{
	int rc = 0;

	uni_sink_flush(s);
	if (s->durable && s->error == 0 && fsync(s->fd) != 0 && errno != EINVAL)
		s->error = errno;
	if (s->own_fd && close(s->fd) != 0 && s->error == 0)
		s->error = errno;
	if (s->own_fd)
		s->fd = -1;
	if (s->error == 0 && s->tmp != NULL &&
		uni_door_renameat(s->dir.fd, s->tmp, s->dir.name) != 0)
		s->error = errno;
	if (s->error == 0 && s->tmp != NULL && s->durable)
		sync_folder(s);
	if (s->error != 0) {
		if (s->tmp != NULL)
			(void)uni_door_unlinkat(s->dir.fd, s->tmp, 0);
		rc = uni_err_set(err, UNI_EIO, "cannot write %s: %s", s->name, strerror(s->error));
	}
	sink_free(s);
	return rc;
}

void uni_sink_abort(struct uni_sink *s)
{
	if (s == NULL)
		return;
	if (s->tmp != NULL)
		(void)uni_door_unlinkat(s->dir.fd, s->tmp, 0);
	sink_free(s);
}
