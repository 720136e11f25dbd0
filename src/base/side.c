/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/side.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"

union fd_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

bool uni_side_send(int to, const void *data, size_t size, int fd)
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

bool uni_side_receive(int from, void *data, size_t size, int *fd_ret)
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

int64_t uni_side_ask(int to, const struct uni_side_talk *t, int *fd_ret)
{
	static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
	int64_t result = -EIO;

	*fd_ret = -1;
	(void)pthread_mutex_lock(&asking);
	if (uni_side_send(to, t->request, t->request_size, t->fd) &&
		uni_side_receive(to, t->reply, t->reply_size, fd_ret))
		memcpy(&result, t->reply, sizeof(result));
	(void)pthread_mutex_unlock(&asking);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* The guests' descriptors are none of the child's business. */
static int keep_only(int *socket, int *ready)
{
	if (dup2(*socket, STDIN_FILENO) < 0 || dup2(*ready, STDOUT_FILENO) < 0)
		return -1;
	*socket = STDIN_FILENO;
	*ready = STDOUT_FILENO;
	return close_range(STDERR_FILENO + 1, ~0u, 0);
}

static _Noreturn void run_child(const struct uni_side_how *how, pid_t parent, int socket, int ready)
{
	struct uni_err err = { 0 };
	sigset_t all;

	/* A Ctrl-C is meant for its caller. SIGSYS is the filter's. */
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGSYS);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, how->name);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if ((!how->keeps_open && keep_only(&socket, &ready) != 0) || how->prepare(&err) != 0 ||
		getppid() != parent || write(ready, "", 1) != 1)
		_exit(1);
	(void)close(ready);
	how->serve(socket);
	_exit(0);
}

static void close_both(int fd[2])
{
	for (int i = 0; i < 2; i++) {
		if (fd[i] >= 0)
			(void)close(fd[i]);
	}
}

int uni_side_begin(const struct uni_side_how *how, int *fd_ret, struct uni_err *err)
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
		run_child(how, parent, pair[1], ready[1]);
	}
	if (pid < 0) {
		int e = errno;

		close_both(pair);
		close_both(ready);
		return uni_err_set(
			err, UNI_EIO, "cannot start the process that opens files: %s", strerror(e));
	}
	(void)close(pair[1]);
	(void)close(ready[1]);
	ok = read(ready[0], &c, 1) == 1;
	(void)close(ready[0]);
	if (ok)
		*fd_ret = pair[0];
	else
		(void)close(pair[0]);
	return ok ? 0
		  : uni_err_set(err, UNI_EPERM,
			    "the process that opens files cannot give up its rights");
}
