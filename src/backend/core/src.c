/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/core/src.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/door.h"

int uni_core_src_read(const struct uni_core_src *s, uint64_t off, void *buf, size_t len)
{
	if (!uni_range_contains(0, s->size, off, len))
		return -UNI_ERANGE;
	return len == 0 ? 0 : s->read(s->ctx, off, buf, len);
}

static int read_fd(void *ctx, uint64_t off, void *buf, size_t len)
{
	int fd = (int)(intptr_t)ctx;
	uint8_t *out = buf;

	while (len != 0) {
		ssize_t n = pread(fd, out, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) /* 0: the file has become shorter */
			return -UNI_EIO;
		out += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int uni_core_src_open(const char *path, struct uni_core_src *ret, struct uni_err *err)
{
	/* If it is a pipe, do not wait for the other end. */
	_cleanup_close_ int fd =
		uni_door_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return uni_err_set(err,
			errno == ENOENT	  ? UNI_ENOENT
			: errno == EACCES ? UNI_EPERM
					  : UNI_EIO,
			"cannot open %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return uni_err_set(err, UNI_EFORMAT, "%s is not a regular file", path);
	*ret = (struct uni_core_src){ .read = read_fd,
		.ctx = (void *)(intptr_t)uni_take_fd(&fd),
		.size = (uint64_t)st.st_size };
	return 0;
}

void uni_core_src_close(struct uni_core_src *s)
{
	if (s->read == read_fd)
		(void)close((int)(intptr_t)s->ctx);
	*s = (struct uni_core_src){ 0 };
}

static int read_data(void *ctx, uint64_t off, void *buf, size_t len)
{
	memcpy(buf, (const uint8_t *)ctx + off, len);
	return 0;
}

struct uni_core_src uni_core_src_memory(const void *data, size_t size)
{
	return (struct uni_core_src){
		.read = read_data, .ctx = (void *)(uintptr_t)data, .size = size
	};
}
