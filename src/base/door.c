/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/door.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum door_op {
	DOOR_OPEN,
	DOOR_STAT,
	DOOR_ACCESS,
	DOOR_READLINK,
	DOOR_MKDIR,
	DOOR_UNLINK,
	DOOR_RENAME,
	DOOR_CHMOD,
};

/* One message each way; a descriptor goes along, of the folder and of what was opened. */
struct door_request {
	uint32_t op;
	int32_t flags;
	uint32_t mode;
	char path[PATH_MAX], to[NAME_MAX + 1];
};

struct door_reply {
	int64_t result; /* or -errno */
	struct stat st;
	char text[PATH_MAX];
};

#define NAP_NS 10000000

/* The worker's way to its opener. One thread asks at a time. */
static int opener = -1;
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

/* --- messages --------------------------------------------------------------------------------- */

union fd_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* fd -1: none goes along. */
static bool send_message(int to, const void *data, size_t size, int fd)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	union fd_room room = { 0 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = room.bytes;
		m.msg_controllen = sizeof(room.bytes);
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&room.head), &fd, sizeof(fd));
	}
	do
		n = sendmsg(to, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

static bool receive_message(int from, void *data, size_t size, int *fd_ret)
{
	struct iovec v = { .iov_base = data, .iov_len = size };
	union fd_room room = { 0 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof(room.bytes) };
	ssize_t n;

	*fd_ret = -1;
	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n > 0 && CMSG_FIRSTHDR(&m) != NULL && room.head.cmsg_type == SCM_RIGHTS &&
		room.head.cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd_ret, CMSG_DATA(&room.head), sizeof(*fd_ret));
	return n == (ssize_t)size;
}

/* --- the opener ------------------------------------------------------------------------------- */

static int do_request(const struct door_request *q, int fd, struct door_reply *reply)
{
	int dir = fd >= 0 ? fd : AT_FDCWD;

	switch ((enum door_op)q->op) {
	case DOOR_OPEN:
		return openat(dir, q->path, q->flags | O_CLOEXEC, q->mode);
	case DOOR_STAT:
		return fstatat(dir, q->path, &reply->st, q->flags);
	case DOOR_ACCESS:
		return faccessat(dir, q->path, (int)q->mode, 0);
	case DOOR_READLINK:
		return (int)readlinkat(dir, q->path, reply->text, sizeof(reply->text));
	case DOOR_MKDIR:
		return mkdirat(dir, q->path, q->mode);
	case DOOR_UNLINK:
		return unlinkat(dir, q->path, q->flags);
	case DOOR_RENAME:
		return fd >= 0 ? renameat(fd, q->path, fd, q->to) : -1;
	case DOOR_CHMOD:
		return fchmod(fd, q->mode & 0777);
	}
	errno = EINVAL;
	return -1;
}

static _Noreturn void serve_requests(int worker)
{
	static struct door_request q;
	static struct door_reply reply;
	_cleanup_close_ int fd = -1;

	while (receive_message(worker, &q, sizeof(q), &fd)) {
		bool opened;

		q.path[sizeof(q.path) - 1] = q.to[sizeof(q.to) - 1] = '\0';
		memset(&reply, 0, sizeof(reply));
		reply.result = do_request(&q, fd, &reply);
		if (reply.result < 0)
			reply.result = -errno;
		if (fd >= 0)
			(void)close(fd);
		opened = q.op == DOOR_OPEN && reply.result >= 0;
		fd = opened ? (int)reply.result : -1;
		if (!send_message(worker, &reply, sizeof(reply), fd))
			break;
		if (fd >= 0)
			(void)close(fd);
	}
	_exit(0);
}

static _Noreturn void run_opener(
	int worker, pid_t parent, int (*prepare)(struct uni_err *err), int ready)
{
	struct uni_err err = { 0 };
	sigset_t all;

	/* A Ctrl-C is meant for the worker. SIGSYS is the filter's. */
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGSYS);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "uniscope-opener");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (prepare(&err) != 0 || getppid() != parent || write(ready, "", 1) != 1)
		_exit(1);
	(void)close(ready);
	serve_requests(worker);
}

int uni_door_begin(int (*prepare)(struct uni_err *err), struct uni_err *err)
{
	int pair[2] = { -1, -1 }, ready[2] = { -1, -1 };
	pid_t parent = getpid(), pid = -1;
	bool ok;
	char c;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
		pipe2(ready, O_CLOEXEC) == 0)
		pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		(void)close(ready[0]);
		run_opener(pair[1], parent, prepare, ready[1]);
	}
	for (int i = 0; i < 2 && pid < 0; i++) {
		if (pair[i] >= 0)
			(void)close(pair[i]);
		if (ready[i] >= 0)
			(void)close(ready[i]);
	}
	if (pid < 0)
		return uni_err_set(err, UNI_EIO, "cannot start the process that opens files: %s",
			strerror(errno));
	(void)close(pair[1]);
	(void)close(ready[1]);
	ok = read(ready[0], &c, 1) == 1;
	(void)close(ready[0]);
	opener = pair[0];
	return ok ? 0
		  : uni_err_set(err, UNI_EPERM,
			    "the process that opens files cannot give up "
			    "its rights");
}

/* --- the worker ------------------------------------------------------------------------------- */

bool uni_door_is_used(void)
{
	return opener >= 0;
}

static bool is_asked(int dir)
{
	struct stat st;

	return opener >= 0 && (dir == AT_FDCWD || fstat(dir, &st) != 0 || st.st_uid != geteuid());
}

/* The result, or -1 and errno. */
static int ask_opener(struct door_request *q, int dir, const char *path, struct door_reply *reply)
{
	int fd = -1;
	bool ok;

	if (strlen(path) >= sizeof(q->path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	(void)snprintf(q->path, sizeof(q->path), "%s", path);
	(void)pthread_mutex_lock(&asking);
	ok = send_message(opener, q, sizeof(*q), dir == AT_FDCWD ? -1 : dir) &&
	     receive_message(opener, reply, sizeof(*reply), &fd);
	(void)pthread_mutex_unlock(&asking);
	if (!ok)
		reply->result = -EIO;
	if (reply->result < 0)
		errno = (int)-reply->result;
	else if (q->op == DOOR_OPEN)
		return fd;
	return reply->result < 0 ? -1 : (int)reply->result;
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
	struct door_request q = { .op = DOOR_OPEN, .flags = flags | O_NONBLOCK, .mode = mode };
	struct door_reply reply;
	bool waits = (flags & (O_NONBLOCK | O_PATH)) == 0;
	int fd;

	if (!is_asked(dir))
		return openat(dir, path, flags, mode);
	do
		fd = ask_opener(&q, dir, path, &reply);
	while (fd < 0 && errno == ENXIO && waits && wait_for_reader(dir, path));
	return fd >= 0 && waits ? wait_for_writer(fd, flags) : fd;
}

int uni_door_fstatat(int dir, const char *path, struct stat *ret, int flags)
{
	struct door_request q = { .op = DOOR_STAT, .flags = flags };
	struct door_reply reply;
	int r;

	if (!is_asked(dir))
		return fstatat(dir, path, ret, flags);
	r = ask_opener(&q, dir, path, &reply);
	if (r == 0)
		*ret = reply.st;
	return r;
}

int uni_door_access(const char *path, int mode)
{
	struct door_request q = { .op = DOOR_ACCESS, .mode = (uint32_t)mode };
	struct door_reply reply;

	return is_asked(AT_FDCWD) ? ask_opener(&q, AT_FDCWD, path, &reply) : access(path, mode);
}

ssize_t uni_door_readlinkat(int dir, const char *path, char *buf, size_t cap)
{
	struct door_request q = { .op = DOOR_READLINK };
	struct door_reply reply;
	int r;

	if (!is_asked(dir))
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
	struct door_request q = { .op = DOOR_MKDIR, .mode = mode };
	struct door_reply reply;

	return is_asked(dir) ? ask_opener(&q, dir, path, &reply) : mkdirat(dir, path, mode);
}

int uni_door_unlinkat(int dir, const char *path, int flags)
{
	struct door_request q = { .op = DOOR_UNLINK, .flags = flags };
	struct door_reply reply;

	return is_asked(dir) ? ask_opener(&q, dir, path, &reply) : unlinkat(dir, path, flags);
}

int uni_door_renameat(int dir, const char *from, const char *to)
{
	struct door_request q = { .op = DOOR_RENAME };
	struct door_reply reply;

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
	struct door_request q = { .op = DOOR_CHMOD, .mode = mode };
	struct door_reply reply;

	return is_asked(fd) ? ask_opener(&q, fd, "", &reply) : fchmod(fd, mode);
}
