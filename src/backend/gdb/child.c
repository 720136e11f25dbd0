/* SPDX-License-Identifier: BSD-2-Clause */
/* The guardian's side: the code that runs in the child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/privilege.h"
#include "backend/gdb/guardian.h"
#include "backend/gdb/stub.h"
#include "backend/gdb/switch.h"
#include "backend/helper.h"
#include "backend/listener.h"

#define CONNECT_MS 2000
#define LOOK_MS	   200 /* how often the lease is checked */
#define TAKEN	   1ull

struct guardian {
	struct uni_gdb_stub stub; /* its link has our copy of the connection */
	struct uni_gdb_shared *shared;
	int sock;
	const struct uni_net_addr *addr;
	const char *qmp; /* or NULL */
};

/*
 * QEMU needs a moment to notice that a debugger left, so a client in the tables may be a past one.
 */
static int connect_alone(const struct uni_net_addr *addr, int *fd_ret, struct uni_err *err)
{
	uint64_t until = uni_now_ns() + CONNECT_MS * UNI_NSEC_PER_MSEC;
	struct uni_net_listener l;

	uni_net_find_listener(addr, &l);
	while (l.has_client) {
		if (uni_now_ns() >= until)
			return uni_err_set(err, UNI_EBUSY,
				"another debugger is attached to the gdb stub at %s: detach it "
				"first",
				addr->text);
		(void)usleep(20000);
		uni_net_find_listener(addr, &l);
	}
	return uni_gdb_connect(addr, CONNECT_MS, fd_ret, err);
}

static int switch_on(
	const char *qmp, struct uni_gdb_shared *shared, int *fd_ret, struct uni_err *err)
{
	bool runs = true;
	int rc = uni_gdb_switch_on(qmp, fd_ret, &runs, err);

	if (rc != 0)
		return rc;
	atomic_store(&shared->ran, runs);
	atomic_store(&shared->told, true);
	if (!runs)
		atomic_store(&shared->flags, UNI_GDB_F_QEMU | UNI_GDB_F_PAUSED);
	return 0;
}

/* Sends the result, and a copy of the connection if there is one. */
static bool report_line(int sock, int fd, const struct uni_err *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct uni_err copy = *err;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(copy);
}

/* Whoever reads replies of a stub has no rights; but a stub is switched off with some. */
static bool lose_rights(const struct guardian *g)
{
	return g->qmp != NULL || uni_caps_give_up();
}

/*
 * Takes the state from what the profiler told. It may have died at any point: HELD assumes the
 * least.
 */
static void learn_state(struct guardian *g)
{
	uint32_t flags = atomic_load(&g->shared->flags);

	g->stub.qemu = (flags & UNI_GDB_F_QEMU) != 0;
	g->stub.link.implicit_ack = g->stub.qemu;
	g->stub.phys = (flags & UNI_GDB_F_PHYS) != 0;
	g->stub.breaks = &g->shared->breaks;
	g->stub.state = (flags & UNI_GDB_F_PAUSED) != 0 ? UNI_GDB_PAUSED : UNI_GDB_HELD;
}

/* The profiler holds the guest, but has given no sign of life for too long. */
static void take_over_if_due(struct guardian *g)
{
	uint64_t lease = atomic_load(&g->shared->lease_ns);

	if (lease <= TAKEN || uni_now_ns() < lease ||
		!atomic_compare_exchange_strong(&g->shared->lease_ns, &lease, TAKEN))
		return;
	learn_state(g);
	if (lose_rights(g))
		(void)uni_gdb_stub_reset(&g->stub);
	atomic_store(&g->shared->lease_ns, 0);
}

static void guard_guest(struct guardian *g)
{
	for (;;) {
		struct pollfd p = { .fd = g->sock, .events = POLLIN };
		int r = poll(&p, 1, LOOK_MS);

		if (r > 0 || (r < 0 && errno != EINTR))
			break; /* it says so, or is gone */
		take_over_if_due(g);
	}
	if ((atomic_load(&g->shared->flags) & UNI_GDB_F_FINISHED) != 0 || !lose_rights(g))
		return;
	learn_state(g);
	if ((atomic_load(&g->shared->flags) & UNI_GDB_F_SILENT) != 0)
		uni_gdb_stub_await(&g->stub);
	uni_gdb_stub_leave(&g->stub);
}

/* One connection, from its request to its end. False: none was made. */
static bool serve_line(struct guardian *g)
{
	struct uni_err err = { 0 };
	int fd = -1, spare = -1;

	if (g->qmp != NULL)
		(void)switch_on(g->qmp, g->shared, &fd, &err);
	else
		(void)connect_alone(g->addr, &fd, &err);
	/* If the profiler is already gone, the end of its socket pair will say so. */
	(void)report_line(g->sock, fd, &err);
	if (fd < 0)
		return false;
	memset(&g->stub, 0, sizeof(g->stub));
	uni_gdb_link_init(&g->stub.link, fd);
	/* An end that nobody holds looks like the one of a uniscope that was killed. */
	if (g->qmp != NULL)
		spare = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	guard_guest(g);
	uni_gdb_link_close(&g->stub.link);
	if (g->qmp != NULL)
		uni_gdb_switch_off(g->qmp, UINT64_MAX);
	if (spare >= 0)
		(void)close(spare);
	return true;
}

/* A byte asks for a connection, and another one ends it. False: the profiler is gone. */
static bool receive_byte(int sock)
{
	char c;
	ssize_t n;

	do
		n = recv(sock, &c, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* A monitor is switched off, and a path below /proc/PID is reached, with all rights. */
static bool needs_rights(const struct uni_net_addr *addr, const char *qmp)
{
	const struct sockaddr_un *un = (const void *)&addr->at[0].sa;

	return qmp != NULL || (addr->nr != 0 && un->sun_family == AF_UNIX &&
				      strncmp(un->sun_path, "/proc/", 6) == 0);
}

void uni_gdb_guardian_main(
	int sock, const struct uni_net_addr *addr, const char *qmp, struct uni_gdb_shared *shared)
{
	struct guardian *g = calloc(1, sizeof(*g));
	struct uni_err err = { 0 };

	uni_helper_begin("uni-guardian", &sock, 1);
	if (g == NULL)
		(void)uni_err_set(&err, UNI_ENOMEM, "gdb: out of memory");
	if (g == NULL || (!needs_rights(addr, qmp) && uni_privilege_keep_connecting(&err) != 0)) {
		(void)report_line(sock, -1, &err);
		_exit(0);
	}
	*g = (struct guardian){ .sock = sock, .addr = addr, .qmp = qmp, .shared = shared };
	while (receive_byte(sock)) {
		if (serve_line(g) && receive_byte(sock))
			(void)report_line(sock, -1, &err);
	}
	_exit(0);
}
