/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/door.h"
#include "base/observer.h"
#include "base/owner.h"
#include "base/strbuf.h"

int uni_write_full(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len != 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int uni_read_rest(int fd, const char *path, const void *head, size_t have, size_t max,
	char **data_ret, size_t *size_ret, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	size_t size;
	char *data;

	uni_strbuf_init(&b);
	uni_strbuf_add(&b, head, have);
	for (;;) {
		ssize_t n;

		if (!uni_strbuf_reserve(&b, 65536))
			return uni_err_set(err, UNI_ENOMEM, "out of memory reading %s", path);
		n = read(fd, b.s + b.len, b.cap - b.len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return uni_err_set(
				err, UNI_EIO, "cannot read %s: %s", path, strerror(errno));
		if (n == 0)
			break;
		b.len += (size_t)n;
		if (b.len > max)
			return uni_err_set(
				err, UNI_ERANGE, "%s is larger than %zu bytes", path, max);
	}
	b.s[b.len] = '\0';
	size = b.len;
	data = uni_strbuf_detach(&b);
	if (data == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory reading %s", path);
	*data_ret = data;
	*size_ret = size;
	return 0;
}

/* Devices that never end are not read. A terminal is allowed as standard input: somebody types. */
static int check_kind(int fd, const char *path, size_t max, bool only_regular, struct uni_err *err)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return uni_err_set(err,
			errno == ENOENT	  ? UNI_ENOENT
			: errno == EACCES ? UNI_EPERM
					  : UNI_EIO,
			"cannot open %s: %s", path, strerror(errno));
	if (only_regular && !S_ISREG(st.st_mode))
		return uni_err_set(err, UNI_EFORMAT, "%s is not a regular file", path);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) && !isatty(fd))
		return uni_err_set(err, UNI_EFORMAT, "%s is not a regular file or pipe", path);
	if (S_ISREG(st.st_mode) && st.st_size > 0 && (uint64_t)st.st_size > max)
		return uni_err_set(err, UNI_ERANGE, "%s is larger than %zu bytes", path, max);
	return 0;
}

static int open_input(const char *path, size_t max, int *fd_ret, struct uni_err *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	_cleanup_close_ int fd = is_stdin
					 ? dup(STDIN_FILENO)
					 : uni_door_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	int rc = check_kind(fd, path, max, false, err);

	if (rc == 0)
		*fd_ret = uni_take_fd(&fd);
	return rc;
}

int uni_open_input(const char *path, int *fd_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = open_input(path, SIZE_MAX, &fd, err);

	if (rc == 0 && strcmp(path, "-") != 0)
		rc = uni_owner_check(fd, path, err);
	if (rc == 0)
		*fd_ret = uni_take_fd(&fd);
	return rc;
}

int uni_read_input(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = uni_open_input(path, &fd, err);

	return rc != 0 ? rc : uni_read_rest(fd, path, NULL, 0, max, data_ret, size_ret, err);
}

int uni_read_file(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = open_input(path, max, &fd, err);

	return rc != 0 ? rc : uni_read_rest(fd, path, NULL, 0, max, data_ret, size_ret, err);
}

int uni_read_regular(
	const char *path, size_t max, char **data_ret, size_t *size_ret, struct uni_err *err)
{
	/* If it is a pipe, do not wait for the other end. */
	_cleanup_close_ int fd =
		uni_door_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	int rc = check_kind(fd, path, max, true, err);

	return rc != 0 ? rc : uni_read_rest(fd, path, NULL, 0, max, data_ret, size_ret, err);
}

static int open_regular(int dir_fd, const char *name, int access)
{
	/* If it is a pipe, do not wait for the other end. */
	_cleanup_close_ int fd = uni_door_openat(
		dir_fd, name, access | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return uni_take_fd(&fd);
}

int uni_open_below(int dir_fd, const char *name)
{
	return open_regular(dir_fd, name, O_RDONLY);
}

int uni_open_shared(const char *path)
{
	return open_regular(AT_FDCWD, path, O_RDWR);
}

int uni_read_below(int dir_fd, const char *name, const char *shown, size_t max, char **data_ret,
	size_t *size_ret, struct uni_err *err)
{
	_cleanup_close_ int fd = uni_open_below(dir_fd, name);
	int rc;

	if (fd < 0 && (errno == ELOOP || errno == EINVAL))
		return uni_err_set(err, UNI_EFORMAT, "%s is not a regular file", shown);
	rc = check_kind(fd, shown, max, true, err);
	if (rc == 0)
		rc = uni_owner_check(fd, shown, err);
	return rc != 0 ? rc : uni_read_rest(fd, shown, NULL, 0, max, data_ret, size_ret, err);
}

int uni_read_small(const char *path, char *buf, size_t cap)
{
	_cleanup_close_ int fd = -1;
	size_t len = 0;

	if (uni_observer_has(path))
		return uni_observer_read(path, buf, cap);
	fd = uni_door_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	while (len < cap - 1) {
		ssize_t n = read(fd, buf + len, cap - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return (int)len;
}

int uni_wait_fd(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		uint64_t now = uni_now_ns(), left_ms;
		int r;

		if (now >= deadline_ns)
			return -UNI_ETIMEDOUT;
		left_ms = (deadline_ns - now) / UNI_NSEC_PER_MSEC + 1;
		r = poll(&p, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -UNI_EIO;
	}
}

/* The kernel's PF_EXITING (proc(5), stat: field 9, flags): set before a task's files are closed. */
#define EXITING	    0x4u
#define STATE_FIELD 3
#define FLAGS_FIELD 9

/* Reads /proc/PID/stat; *ret is the blank before that field, or NULL. False: there is no such
 * process. */
static bool find_stat_field(pid_t pid, unsigned field, char *stat, size_t cap, const char **ret)
{
	char path[32];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (uni_read_small(path, stat, cap) < 0)
		return false;
	at = strrchr(stat, ')'); /* the name may hold anything, also blanks and ')' */
	for (unsigned i = 2; at != NULL && i < field; i++)
		at = strchr(at + 1, ' ');
	*ret = at;
	return true;
}

bool uni_process_is_ending(pid_t pid)
{
	char stat[512];
	const char *at;

	if (!find_stat_field(pid, FLAGS_FIELD, stat, sizeof(stat), &at))
		return true;
	return at != NULL && (strtoul(at, NULL, 10) & EXITING) != 0;
}

bool uni_process_is_stopped(pid_t pid)
{
	char stat[512];
	const char *at;

	return find_stat_field(pid, STATE_FIELD, stat, sizeof(stat), &at) && at != NULL &&
	       at[1] == 'T';
}

/* Each kernel gives its first pid namespace this number (linux/proc_ns.h, PROC_PID_INIT_INO). */
bool uni_process_ids_are_inner(void)
{
	char link[32];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = '\0';
	return n > 0 && strcmp(link, "pid:[4026531836]") != 0;
}

/* It has one number for each pid namespace from that of /proc down to ours. */
int uni_process_numbers_check(struct uni_err *err)
{
	char status[2048], version[8];
	int n = uni_read_small("/proc/self/status", status, sizeof(status));
	const char *at = n > 0 ? strstr(status, "\nNSpid:\t") : NULL;
	bool foreign =
		n == -ENOENT && uni_read_small("/proc/version", version, sizeof(version)) > 0;

	if (at != NULL) {
		at += sizeof("\nNSpid:\t") - 1;
		foreign = memchr(at, '\t', strcspn(at, "\n")) != NULL;
	}
	if (!foreign)
		return 0;
	return uni_err_set(err, UNI_ENOTSUP,
		"/proc is that of another pid namespace, where processes have other numbers: give "
		"uniscope its own, by `unshare --mount-proc uniscope ...`");
}
