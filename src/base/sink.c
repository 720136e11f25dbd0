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
#include "base/io.h"

#define SINK_BUF (64 * 1024)

struct uni_sink {
	int fd; /* -1: memory */
	bool own_fd;
	char *name; /* for messages */
	char *path; /* final name, or NULL */
	char *tmp;  /* temporary name, or NULL */
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
	free(s->path);
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
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
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

/* What a symbolic link leads to, so that the link stays one; NULL for anything else. */
static char *link_target(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;
}

int uni_sink_open_file(const char *path, struct uni_sink **ret, struct uni_err *err)
{
	_cleanup_free_ char *target = link_target(path);
	struct uni_strbuf tmp;
	struct uni_sink *s;
	struct stat st;

	if (target != NULL)
		path = target;
	if (strcmp(path, "-") == 0)
		return uni_sink_open_fd(STDOUT_FILENO, "standard output", ret, err);
	s = sink_new(path);
	if (s == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	s->own_fd = true;
	/* A pipe or device cannot be renamed into place: write to it directly. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		s->fd = open(path, O_WRONLY | O_CLOEXEC);
	} else {
		uni_strbuf_init(&tmp);
		uni_strbuf_addf(&tmp, "%s.tmp-%ld", path, (long)getpid());
		s->tmp = uni_strbuf_detach(&tmp);
		s->path = strdup(path);
		if (s->tmp == NULL || s->path == NULL) {
			sink_free(s);
			return uni_err_set(err, UNI_ENOMEM, "out of memory");
		}
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			errno = EISDIR;
		else
			s->fd = open(s->tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	}
	if (s->fd < 0) {
		int rc = uni_err_set(err, errno == EACCES ? UNI_EPERM : UNI_EIO,
			"cannot write %s: %s", path, strerror(errno));

		sink_free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

static void put(struct uni_sink *s, const void *data, size_t len)
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
	put(s, s->buf, s->fill);
	s->fill = 0;
}

void uni_sink_write(struct uni_sink *s, const void *data, size_t len)
{
	const char *p = data;

	s->bytes += len;
	if (len >= SINK_BUF) {
		uni_sink_flush(s);
		put(s, data, len);
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

int uni_sink_close(struct uni_sink *s, struct uni_err *err)
{
	int rc = 0;

	uni_sink_flush(s);
	if (s->own_fd && close(s->fd) != 0 && s->error == 0)
		s->error = errno;
	if (s->own_fd)
		s->fd = -1;
	if (s->error == 0 && s->tmp != NULL && rename(s->tmp, s->path) != 0)
		s->error = errno;
	if (s->error != 0) {
		if (s->tmp != NULL)
			(void)unlink(s->tmp);
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
		(void)unlink(s->tmp);
	sink_free(s);
}
