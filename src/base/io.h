/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole reads and writes that survive EINTR and short transfers. */
#ifndef UNI_BASE_IO_H
#define UNI_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Returns 0 or -errno (a system's errno, not ours: the caller knows what it was writing). */
int uni_write_full(int fd, const void *data, size_t len);

/*
 * Reads a whole regular file or stream ("-" is stdin) of at most max bytes. The caller owns
 * *data_ret, which has a NUL after its *size_ret bytes. A larger file is an error, not a cut; so
 * are directories and devices.
 */
int uni_read_file(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err);

/*
 * The two halves of uni_read_file(), for a caller that looks at the beginning first.
 * uni_open_input() opens a descriptor, which the caller closes. uni_read_rest() reads on behind the
 * `have` bytes that the caller has already read; *data_ret has both.
 */
int uni_open_input(const char *path, int *fd_ret, struct uni_err *err);
int uni_read_rest(int fd, const char *path, const void *head, size_t have, size_t max,
	char **data_ret, size_t *size_ret, struct uni_err *err);

/* Both at once, for the input of a command. Also refuses a file of another user (base/owner.h). */
int uni_read_input(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err);

/*
 * As uni_read_file(), but regular files only: others name the file, and a pipe would make us hang.
 */
int uni_read_regular(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err);
/* The same for a file below an open folder, which is no link; `shown` is its name in messages. */
int uni_read_below(int dir_fd, const char *name, const char *shown, size_t max, char **data_ret,
	size_t *size_ret, struct uni_err *err);
/* Opens such a file: a descriptor, or -1 with errno: ELOOP, or EINVAL if it is no regular file. */
int uni_open_below(int dir_fd, const char *name);
/* The same by path, to read and to write: a file that another program writes, too. */
int uni_open_shared(const char *path);

/*
 * Waits until fd is ready for `events` (as for poll) or until the deadline (uni_now_ns() clock).
 * Returns 0, -UNI_ETIMEDOUT or -UNI_EIO. A closed connection counts as ready: the next call on it
 * fails.
 */
int uni_wait_fd(int fd, short events, uint64_t deadline_ns);

/* Reads a small /proc or /sys file into buf as a string. Returns its length, or -errno. */
int uni_read_small(const char *path, char *buf, size_t cap);
/* Does it exit, or is it gone? Known before the kernel closes its files. */
bool uni_process_is_ending(pid_t pid);
/* Has a signal (SIGSTOP) stopped it? */
bool uni_process_is_stopped(pid_t pid);
/* Is this a pid namespace within the host's (a container)? Other processes are not seen then. */
bool uni_process_ids_are_inner(void);
/* Does /proc number processes as we do? -UNI_ENOTSUP: it is another pid namespace's. */
int uni_process_numbers_check(struct uni_err *err);

#endif
