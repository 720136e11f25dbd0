/* SPDX-License-Identifier: BSD-2-Clause */
/* For harnesses whose input is one file or several. */
#ifndef UNI_FUZZ_FILES_H
#define UNI_FUZZ_FILES_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"

static inline void require(bool ok)
{
	if (!ok)
		abort();
}

/* The bytes up to the next line "=". */
static inline struct uni_cursor next_part(struct uni_cursor *all)
{
	const uint8_t *begin = all->data + all->pos;
	size_t left = uni_cursor_left(all);
	const uint8_t *end = left != 0 ? memmem(begin, left, "\n=\n", 3) : NULL;
	size_t len = end != NULL ? (size_t)(end - begin) : left;

	all->pos += end != NULL ? len + 3 : len;
	return uni_cursor_make(begin, len);
}

/* dir: a folder's descriptor, or AT_FDCWD. */
static inline void write_file(int dir, const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	require(ftruncate(fd, (off_t)size) == 0 && close(fd) == 0);
}

#endif
