/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiler's side of the guardian. */
#include "target/gdb/guardian.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "target/gdb/stub.h"
#include "target/gdb/wire.h"

#define ANSWER_MS 15000 /* longer than all that a guardian tries before it gives up a stub */
#define END_MS	  10000
#define RESCUE_MS 2000

/* One message: 0, -UNI_ETIMEDOUT, -UNI_EGONE when the guardian is no more. */
static int receive(int fd, struct uni_gdb_answer *head, void *data, size_t cap)
{
	struct iovec iov[2] = {
		{ .iov_base = head, .iov_len = sizeof(*head) },
		{ .iov_base = data, .iov_len = cap },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	do {
		n = recvmsg(fd, &msg, 0); /* the socket has a receive timeout */
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return -UNI_ETIMEDOUT;
	if (n < (ssize_t)sizeof(*head) || (size_t)n - sizeof(*head) != head->size ||
		(msg.msg_flags & MSG_TRUNC) != 0)
		return -UNI_EGONE;
	return 0;
}

/* The guardian was killed, perhaps with the guest stopped: does what it would have done. */
static void rescue(struct uni_gdb_guardian *g)
{
	struct uni_gdb_stub *s;
	struct uni_regs regs;
	int fd;

	(void)close(g->fd);
	g->fd = -1;
	/* One that only hangs sees our end closed as soon as it can, and still owns the line. */
	if (waitpid(g->pid, NULL, WNOHANG) == 0)
		return;
	g->pid = 0;
	s = calloc(1, sizeof(*s));
	if (s != NULL && uni_gdb_connect(&g->addr, RESCUE_MS, &fd, NULL) == 0 &&
		uni_gdb_stub_open(s, fd, g->arch, false, &regs, NULL) == 0) {
		/* A guest that was left stopped looks like one that somebody paused. */
		if (s->state == UNI_GDB_PAUSED && !g->paused)
			s->state = UNI_GDB_HELD;
		uni_gdb_stub_leave(s);
	}
	free(s);
}

static int exchange(struct uni_gdb_guardian *g, struct uni_gdb_request *req, void *data, size_t cap)
{
	struct uni_gdb_answer head = { 0 };
	ssize_t n;
	int rc = 0;

	if (g->fd < 0)
		return -UNI_EGONE;
	req->seq = ++g->seq;
	do {
		n = send(g->fd, req, sizeof(*req), MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		rc = -UNI_EGONE;
	while (rc == 0 && head.seq != req->seq)
		rc = receive(g->fd, &head, data, cap);
	if (rc != 0) {
		rescue(g);
		return -UNI_EGONE;
	}
	if (head.rc == 0 && head.size != cap)
		return -UNI_EIO;
	return head.rc;
}

int uni_gdb_guardian_snap(
	struct uni_gdb_guardian *g, uint64_t mask, bool hold, struct uni_regs *ret)
{
	struct uni_gdb_request req = { .op = UNI_GDB_OP_SNAP, .mask = mask, .hold = hold };

	return exchange(g, &req, ret, (size_t)__builtin_popcountll(mask) * sizeof(*ret));
}

int uni_gdb_guardian_release(struct uni_gdb_guardian *g, struct uni_gdb_pause *ret)
{
	struct uni_gdb_request req = { .op = UNI_GDB_OP_RELEASE };

	return exchange(g, &req, ret, sizeof(*ret));
}

int uni_gdb_guardian_read(
	struct uni_gdb_guardian *g, bool held, uint64_t addr, void *buf, size_t len)
{
	uint8_t *out = buf;
	int rc = 0;

	while (len != 0 && rc == 0) {
		size_t n = uni_min(len, (size_t)UNI_GDB_READ_MAX);
		struct uni_gdb_request req = {
			.op = UNI_GDB_OP_READ, .addr = addr, .len = (uint32_t)n, .hold = held
		};

		rc = exchange(g, &req, out, n);
		addr += n;
		out += n;
		len -= n;
	}
	return rc;
}

int uni_gdb_guardian_ping(struct uni_gdb_guardian *g)
{
	struct uni_gdb_request req = { .op = UNI_GDB_OP_PING };

	return exchange(g, &req, NULL, 0);
}

void uni_gdb_guardian_end(struct uni_gdb_guardian *g)
{
	uint64_t until = uni_now_ns() + END_MS * UNI_NSEC_PER_MSEC;

	if (g->fd >= 0)
		(void)close(g->fd);
	g->fd = -1;
	while (g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == 0 && uni_now_ns() < until)
		(void)usleep(500);
	g->pid = 0;
}

static int spawn(struct uni_gdb_guardian *g, bool want_phys, struct uni_err *err)
{
	struct timeval patience = { .tv_sec = ANSWER_MS / 1000 };
	_cleanup_free_ void *memory = malloc(uni_gdb_guardian_memory);
	int pair[2];

	if (memory == NULL)
		return uni_err_set(err, UNI_ENOMEM, "gdb: out of memory");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return uni_err_set(err, UNI_EIO, "gdb: no socket pair: %s", strerror(errno));
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	g->fd = pair[0];
	g->pid = fork();
	if (g->pid == 0)
		uni_gdb_guardian_main(pair[1], &g->addr, g->arch, want_phys, memory);
	(void)close(pair[1]);
	if (g->pid > 0)
		return 0;
	g->pid = 0;
	(void)close(g->fd);
	g->fd = -1;
	return uni_err_set(
		err, UNI_EIO, "gdb: cannot start the guardian process: %s", strerror(errno));
}

int uni_gdb_guardian_start(struct uni_gdb_guardian *g, const struct uni_gdb_addr *addr,
	const struct uni_arch *arch, bool want_phys, struct uni_gdb_hello *ret, struct uni_err *err)
{
	struct uni_gdb_answer head = { 0 };
	struct uni_gdb_first first;
	int rc;

	*g = (struct uni_gdb_guardian){ .fd = -1, .arch = arch, .addr = *addr };
	rc = spawn(g, want_phys, err);
	if (rc != 0)
		return rc;
	rc = receive(g->fd, &head, &first, sizeof(first));
	if (rc != 0)
		rc = uni_err_set(err, UNI_EIO, "gdb: the guardian process ended unexpectedly");
	else if (first.err.code != 0)
		rc = uni_err_set(err, (enum uni_errcode)first.err.code, "%s", first.err.msg);
	if (rc != 0)
		uni_gdb_guardian_end(g);
	else
		*ret = first.hello;
	g->paused = rc == 0 && first.hello.paused;
	return rc;
}
