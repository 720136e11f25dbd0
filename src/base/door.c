/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/observer.h"
#include "base/opener.h"
#include "base/side.h"

#define NAP_NS 10000000

/* The worker's way to its opener. One thread asks at a time. */
static int opener = -1;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

int uni_door_begin(uint64_t caps, int rules, struct uni_err *err)
{
	struct uni_opener_job job = { .kind = UNI_OPENER_FILES, .caps = caps, .rules = rules };

	return uni_side_begin(&job, &opener, err);
}

void uni_door_leave(void)
{
	opener = -1;
	uni_observer_leave();
}

bool uni_door_is_used(void)
{
	return opener >= 0;
}

/* About this process itself; but a pipe of its shell's (/dev/fd/63) is the user's file. */
static bool is_own(const char *path)
{
	static const char self[] = "/proc/self/";
	const size_t len = sizeof(self) - 1;

	return strncmp(path, self, len) == 0 && strncmp(path + len, "fd/", 3) != 0;
}

static bool is_asked(int dir)
{
	struct stat st;

	return opener >= 0 && (dir == AT_FDCWD || fstat(dir, &st) != 0 || st.st_uid != geteuid());
}

/* The result, or -1 and errno. */
static int ask_opener(
	struct uni_door_request *q, int dir, const char *path, struct uni_door_reply *reply)
{
	const struct uni_side_talk t = { dir == AT_FDCWD ? -1 : dir, q, sizeof(*q), reply,
		sizeof(*reply), &asking };
	int64_t result;
	int fd;

	if (strlen(path) >= sizeof(q->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(q->path, sizeof(q->path), "%s", path);
	result = uni_side_ask(opener, &t, &fd);
	return result >= 0 && q->op == UNI_DOOR_OPEN ? fd : (int)result;
}

/* Nobody reads the pipe yet: waits, and says whether to try again. */
static bool wait_for_reader(int dir, const char *path)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	struct stat st;

	if (uni_door_fstatat(dir, path, &st, 0) != 0 || !S_ISFIFO(st.st_mode)) {
		errno = ENXIO;
		return false;
	}
	return nanosleep(&nap, NULL) == 0;
}

/* Opened without waiting, so that the opener is free; now it waits as open() would. */
static int wait_for_writer(int fd, int flags)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct stat st;
	int e;

	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && (flags & O_ACCMODE) == O_RDONLY &&
		poll(&p, 1, -1) < 0) {
		e = errno;
		(void)close(fd);
		errno = e;
		return -1;
	}
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

int uni_door_openat(int dir, const char *path, int flags, mode_t mode)
{
	struct uni_door_request q = {
		.op = UNI_DOOR_OPEN, .flags = flags | O_NONBLOCK, .mode = mode
	};
	struct uni_door_reply reply = { 0 };
	bool waits = (flags & (O_NONBLOCK | O_PATH)) == 0;
	int fd;

	if (dir == AT_FDCWD && uni_observer_has(path))
		return uni_observer_open(path, flags);
	if (!is_asked(dir) || is_own(path))
		return openat(dir, path, flags, mode);
	do
		fd = ask_opener(&q, dir, path, &reply);
	while (fd < 0 && errno == ENXIO && waits && wait_for_reader(dir, path));
	return fd >= 0 && waits ? wait_for_writer(fd, flags) : fd;
}

DIR *uni_door_opendir(const char *path)
{
	int fd = uni_door_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && d == NULL)
		(void)close(fd);
	return d;
}

int uni_door_fstatat(int dir, const char *path, struct stat *ret, int flags)
{
	struct uni_door_request q = { .op = UNI_DOOR_STAT, .flags = flags };
	struct uni_door_reply reply = { 0 };
	int r;

	if (dir == AT_FDCWD && uni_observer_has(path))
		return uni_observer_stat(path, ret);
	if (!is_asked(dir))
		return fstatat(dir, path, ret, flags);
	r = ask_opener(&q, dir, path, &reply);
	if (r == 0)
		*ret = reply.st;
	return r;
}

int uni_door_access(const char *path, int mode)
{
	struct uni_door_request q = { .op = UNI_DOOR_ACCESS, .mode = (uint32_t)mode };
	struct uni_door_reply reply = { 0 };

	if (uni_observer_has(path))
		return uni_observer_access(path);
	return is_asked(AT_FDCWD) ? ask_opener(&q, AT_FDCWD, path, &reply) : access(path, mode);
}

ssize_t uni_door_readlinkat(int dir, const char *path, char *buf, size_t cap)
{
	struct uni_door_request q = { .op = UNI_DOOR_READLINK };
	struct uni_door_reply reply = { 0 };
	int r;

	if (dir == AT_FDCWD ? uni_observer_has(path) : uni_observer_lists(dir))
		return uni_observer_readlink(dir, path, buf, cap);
	if (!is_asked(dir) || is_own(path))
		return readlinkat(dir, path, buf, cap);
	r = ask_opener(&q, dir, path, &reply);
	if (r < 0)
		return r;
	if ((size_t)r > cap)
		r = (int)cap;
	memcpy(buf, reply.text, (size_t)r);
	return r;
}

int uni_door_mkdirat(int dir, const char *path, mode_t mode)
{
	struct uni_door_request q = { .op = UNI_DOOR_MKDIR, .mode = mode };
	struct uni_door_reply reply = { 0 };

	return is_asked(dir) ? ask_opener(&q, dir, path, &reply) : mkdirat(dir, path, mode);
}

int uni_door_unlinkat(int dir, const char *path, int flags)
{
	struct uni_door_request q = { .op = UNI_DOOR_UNLINK, .flags = flags };
	struct uni_door_reply reply = { 0 };

	return is_asked(dir) ? ask_opener(&q, dir, path, &reply) : unlinkat(dir, path, flags);
}

int uni_door_renameat(int dir, const char *from, const char *to)
{
	struct uni_door_request q = { .op = UNI_DOOR_RENAME };
	struct uni_door_reply reply = { 0 };

	if (!is_asked(dir))
		return renameat(dir, from, dir, to);
	if (strlen(to) >= sizeof(q.to)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(q.to, sizeof(q.to), "%s", to);
	return ask_opener(&q, dir, from, &reply);
}

int uni_door_fchmod(int fd, mode_t mode)
{
	struct uni_door_request q = { .op = UNI_DOOR_CHMOD, .mode = mode };
	struct uni_door_reply reply = { 0 };

	return is_asked(fd) ? ask_opener(&q, fd, "", &reply) : fchmod(fd, mode);
}
