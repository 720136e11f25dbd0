/* SPDX-License-Identifier: BSD-2-Clause */
/* The guardian's side: what runs in the child. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "target/gdb/stub.h"
#include "target/gdb/wire.h"

#define CONNECT_MS 2000

struct guardian {
	struct uni_gdb_stub stub;
	int sock;
	bool hold;	     /* the profiler wants the guest held */
	bool expired;	     /* that hold was ended by us */
	uint64_t hold_until; /* while hold */
	bool over;	     /* the profiler is gone */
	union {
		struct uni_gdb_first first;
		struct uni_regs regs[UNI_VCPU_MAX];
		struct uni_gdb_pause pause;
		uint8_t bytes[UNI_GDB_READ_MAX];
	} out;
};

const uint32_t uni_gdb_guardian_memory = sizeof(struct guardian);

/*
 * Nothing of the profiler's may be kept open or keep it from ending: a reader of its output waits
 * for all writers, and a Ctrl-C in its terminal must not reach us.
 */
static int become_guardian(int sock)
{
	sigset_t all;
	int null;

	if (sock < 3)
		sock = fcntl(sock, F_DUPFD, 3); /* the old one is overlaid below */

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "uni-guardian");
	/* The guest stands while we wait for a CPU. Often not permitted: then it stays as it is. */
	(void)setpriority(PRIO_PROCESS, 0, -10);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		(void)dup2(null, fd);
	if (sock > 3)
		(void)close_range(3, (unsigned)sock - 1, 0);
	(void)close_range((unsigned)sock + 1, ~0u, 0);
	return sock;
}

static void answer(struct guardian *g, uint32_t seq, int rc, const void *data, size_t size)
{
	struct uni_gdb_answer head = { .seq = seq, .rc = rc, .size = rc == 0 ? (uint32_t)size : 0 };
	struct iovec iov[2] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = head.size },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	do {
		n = sendmsg(g->sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		g->over = true;
}

static int snap(struct guardian *g, const struct uni_gdb_request *req)
{
	int rc = uni_gdb_stub_snap(&g->stub, req->mask, g->out.regs);

	g->expired = false;
	if (rc != 0) {
		g->hold = false;
		return rc;
	}
	/* A look at the registers does not end a hold that is on. */
	if (!req->hold && !g->hold)
		return uni_gdb_stub_resume(&g->stub);
	if (req->hold) {
		g->hold = true;
		g->hold_until = uni_now_ns() + UNI_GDB_HOLD_MAX_NS;
	}
	return 0;
}

static int release(struct guardian *g)
{
	int rc = uni_gdb_stub_resume(&g->stub);

	g->out.pause = (struct uni_gdb_pause){ g->stub.stop_ns, g->stub.resume_ns };
	g->hold = false;
	if (rc == 0 && g->expired)
		rc = -UNI_EAGAIN;
	g->expired = false;
	return rc;
}

static int read_memory(struct guardian *g, const struct uni_gdb_request *req)
{
	int rc;

	if (req->len > sizeof(g->out.bytes))
		return -UNI_EINVAL;
	if (req->hold && g->expired)
		return -UNI_EAGAIN;
	rc = uni_gdb_stub_read(&g->stub, req->addr, g->out.bytes, req->len);
	if (g->hold && g->stub.state == UNI_GDB_RUNNING) {
		/* The line failed and was set right, which ended the hold. */
		g->hold = false;
		g->expired = true;
	}
	return rc;
}

static void serve(struct guardian *g, const struct uni_gdb_request *req)
{
	size_t size = 0;
	int rc = -UNI_EINVAL;

	switch (req->op) {
	case UNI_GDB_OP_SNAP:
		rc = snap(g, req);
		size = (size_t)__builtin_popcountll(req->mask) * sizeof(struct uni_regs);
		break;
	case UNI_GDB_OP_RELEASE:
		rc = release(g);
		size = sizeof(g->out.pause);
		break;
	case UNI_GDB_OP_READ:
		rc = read_memory(g, req);
		size = req->len;
		break;
	case UNI_GDB_OP_PING:
		rc = g->stub.state == UNI_GDB_LOST ? -UNI_EGONE : 0;
		break;
	}
	answer(g, req->seq, rc, &g->out, size);
}

static void take_request(struct guardian *g)
{
	struct uni_gdb_request req;
	ssize_t n = recv(g->sock, &req, sizeof(req), MSG_DONTWAIT);

	if (n == (ssize_t)sizeof(req))
		serve(g, &req);
	else if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		g->over = true;
}

static void end_hold(struct guardian *g)
{
	g->hold = false;
	g->expired = true;
	(void)uni_gdb_stub_resume(&g->stub);
}

static int wait_ms(const struct guardian *g)
{
	uint64_t now = uni_now_ns();

	if (!g->hold)
		return -1;
	return now >= g->hold_until ? 0 : (int)((g->hold_until - now) / UNI_NSEC_PER_MSEC) + 1;
}

static void guard(struct guardian *g)
{
	while (!g->over) {
		struct pollfd p[2] = {
			{ .fd = g->sock, .events = POLLIN },
			{ .fd = g->stub.link.fd, .events = POLLIN },
		};
		int r = poll(p, 2, wait_ms(g)); /* a negative fd is passed over */

		if (r < 0 && errno != EINTR)
			break;
		if (r > 0 && p[1].revents != 0)
			(void)uni_gdb_stub_idle(&g->stub);
		if (r > 0 && p[0].revents != 0)
			take_request(g);
		if (g->hold && uni_now_ns() >= g->hold_until)
			end_hold(g);
	}
	uni_gdb_stub_leave(&g->stub);
}

static int peer_pid(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	/* For TCP and for other name spaces there is no pid: 0. */
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.pid > 0 ? cred.pid
											 : 0;
}

/* QEMU needs a moment to notice that a debugger left: a client that is there may be a past one. */
static int connect_alone(const struct uni_gdb_addr *addr, int *fd_ret, struct uni_err *err)
{
	uint64_t until = uni_now_ns() + CONNECT_MS * UNI_NSEC_PER_MSEC;
	struct uni_gdb_listener l;

	uni_gdb_find_listener(addr, &l);
	while (l.has_client) {
		if (uni_now_ns() >= until)
			return uni_err_set(err, UNI_EBUSY,
				"another debugger is attached to the gdb stub at %s: detach it "
				"first",
				addr->text);
		(void)usleep(20000);
		uni_gdb_find_listener(addr, &l);
	}
	return uni_gdb_connect(addr, CONNECT_MS, fd_ret, err);
}

static int shake_hands(struct guardian *g, const struct uni_gdb_addr *addr,
	const struct uni_arch *arch, bool want_phys)
{
	struct uni_gdb_first *f = &g->out.first;
	int fd, rc;

	memset(f, 0, sizeof(*f));
	g->stub.link.fd = -1;
	g->stub.state = UNI_GDB_LOST;
	rc = connect_alone(addr, &fd, &f->err);
	if (rc != 0)
		return rc;
	f->hello.peer_pid = peer_pid(fd);
	rc = uni_gdb_stub_open(&g->stub, fd, arch, want_phys, &f->hello.regs0, &f->err);
	if (rc != 0)
		return rc;
	f->hello.nr_vcpus = g->stub.nr_threads;
	f->hello.qemu = g->stub.qemu;
	f->hello.phys = g->stub.want_phys || g->stub.phys;
	f->hello.sysregs = g->stub.sysregs;
	f->hello.paused = g->stub.state == UNI_GDB_PAUSED;
	f->hello.attach_pause_ns = f->hello.paused ? 0 : g->stub.resume_ns - g->stub.stop_ns;
	return 0;
}

void uni_gdb_guardian_main(int sock, const struct uni_gdb_addr *addr, const struct uni_arch *arch,
	bool want_phys, void *memory)
{
	struct guardian *g = memory;
	int rc;

	memset(g, 0, sizeof(*g));
	g->sock = become_guardian(sock);
	rc = shake_hands(g, addr, arch, want_phys);
	/* The cause of a failure travels inside: its own code is in err. */
	answer(g, 0, 0, &g->out, sizeof(g->out.first));
	if (rc == 0)
		guard(g);
	_exit(0);
}
