/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole reads and writes that survive EINTR and short transfers. */
#ifndef UNI_BASE_IO_H
#define UNI_BASE_IO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* 0 or -errno (a system's errno, not ours: the caller knows what it was writing). */
int uni_write_full(int fd, const void *data, size_t len);

/*
 * Reads a whole regular file or stream ("-" is stdin) of at most max bytes. *data_ret is owned by
 * the caller and has a NUL behind its *size_ret bytes. Larger than max is an error, not a cut,
 * and so are directories and devices.
 */
int uni_read_file(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err);

/*
 * Its two halves, for who looks at the beginning first. An open descriptor, the caller's to close;
 * and what is left in it, behind the `have` bytes that were read from it already: the whole of it
 * as above.
 */
int uni_open_input(const char *path, int *fd_ret, struct uni_err *err);
int uni_read_rest(int fd, const char *path, const void *head, size_t have, size_t max,
	char **data_ret, size_t *size_ret, struct uni_err *err);

/* Both at once, of what a command is to read: also refused if it is another user's
 * (base/owner.h). */
int uni_read_input(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err);

/* The same of a regular file only: for files that others name, where a pipe would hang us. */
int uni_read_regular(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err);
/* Such an input below a folder that is open, no link; `shown` is its name in messages. */
int uni_read_below(int dir_fd, const char *name, const char *shown, size_t max, char **data_ret,
	size_t *size_ret, struct uni_err *err);
/* The descriptor of one, or -1 with errno: ELOOP, or EINVAL if it is no regular file. */
int uni_open_below(int dir_fd, const char *name);

/*
 * Waits until fd is ready for `events` (poll's) or the deadline (uni_now_ns() clock): 0,
 * -UNI_ETIMEDOUT, -UNI_EIO. A closed line counts as ready: the next call on it finds out.
 */
int uni_wait_fd(int fd, short events, uint64_t deadline_ns);

/* Reads a small /proc or /sys file into buf as a string; its length, or -errno. */
int uni_read_small(const char *path, char *buf, size_t cap);

#endif
