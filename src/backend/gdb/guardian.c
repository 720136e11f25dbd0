/* SPDX-License-Identifier: BSD-2-Clause */
/* The profiler's side of the guardian. */
#include "backend/gdb/guardian.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

/* For the child's report. It reports its own failures, such as a monitor's silence, earlier. */
#define PATIENCE_S 60
#define END_MS	   10000
#define TAKEN	   1ull

bool uni_gdb_guardian_lease(struct uni_gdb_guardian *g, unsigned ms)
{
	uint64_t until = uni_now_ns() + ms * UNI_NSEC_PER_MSEC;
	uint64_t old = atomic_load(&g->shared->lease_ns);

	return old != TAKEN && atomic_compare_exchange_strong(&g->shared->lease_ns, &old, until);
}

bool uni_gdb_guardian_has_lease(struct uni_gdb_guardian *g)
{
	return atomic_load(&g->shared->lease_ns) > TAKEN;
}

void uni_gdb_guardian_unlease(struct uni_gdb_guardian *g)
{
	uint64_t old = atomic_load(&g->shared->lease_ns);

	if (old != TAKEN)
		(void)atomic_compare_exchange_strong(&g->shared->lease_ns, &old, 0);
}

void uni_gdb_guardian_flags(struct uni_gdb_guardian *g, unsigned flags)
{
	atomic_store(&g->shared->flags, flags);
}

bool uni_gdb_guardian_alive(const struct uni_gdb_guardian *g)
{
	char c;

	return g->sock >= 0 && recv(g->sock, &c, 1, MSG_DONTWAIT) < 0 &&
	       (errno == EAGAIN || errno == EINTR);
}

static void end_guardian(struct uni_gdb_guardian *g)
{
	bool silent = g->shared != NULL && (atomic_load(&g->shared->flags) & UNI_GDB_F_SILENT) != 0;
	uint64_t until = uni_now_ns() + (silent ? 0 : END_MS * UNI_NSEC_PER_MSEC);

	if (g->sock >= 0)
		(void)close(g->sock);
	g->sock = -1;
	while (g->pid > 0 && waitpid(g->pid, NULL, WNOHANG) == 0 && uni_now_ns() < until)
		(void)usleep(500);
	g->pid = 0;
	if (g->shared != NULL)
		(void)munmap(g->shared, sizeof(*g->shared));
	g->shared = NULL;
}

/* Its answer: the connection has ended. A guardian that gives none is of no more use. */
static void end_line(struct uni_gdb_guardian *kept)
{
	struct pollfd p = { .fd = kept->sock, .events = POLLIN };
	bool silent = (atomic_load(&kept->shared->flags) & UNI_GDB_F_SILENT) != 0;
	struct uni_err ignored;

	if (!silent && send(kept->sock, "", 1, MSG_NOSIGNAL) == 1 && poll(&p, 1, END_MS) == 1 &&
		recv(kept->sock, &ignored, sizeof(ignored), MSG_DONTWAIT) ==
			(ssize_t)sizeof(ignored))
		return;
	(void)close(kept->sock);
	kept->sock = -1;
}

void uni_gdb_guardian_end(struct uni_gdb_guardian *g)
{
	if (g->kept != NULL) {
		if (g->kept->sock >= 0 && g->sock >= 0)
			end_line(g->kept);
		*g = (struct uni_gdb_guardian){ .sock = -1 };
		return;
	}
	end_guardian(g);
}

/* Receives the child's report. Returns 0 and *fd_ret, or the reason of the failure. */
static int receive_line(int sock, int *fd_ret, struct uni_err *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct uni_err theirs = { 0 };
	struct iovec iov = { .iov_base = &theirs, .iov_len = sizeof(theirs) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c;
	ssize_t n;

	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return uni_err_set(err, UNI_ETIMEDOUT,
			"gdb: the guardian process has reached no gdb stub in %d s", PATIENCE_S);
	if (n != (ssize_t)sizeof(theirs))
		return uni_err_set(err, UNI_EIO, "gdb: the guardian process ended unexpectedly");
	if (theirs.code != 0)
		return uni_err_set(err, (enum uni_errcode)theirs.code, "%s", theirs.msg);
	c = CMSG_FIRSTHDR(&msg);
	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return uni_err_set(err, UNI_EIO, "gdb: no file descriptor is left for the stub");
	memcpy(fd_ret, CMSG_DATA(c), sizeof(*fd_ret));
	return 0;
}

static int spawn_guardian(struct uni_gdb_guardian *g, const struct uni_net_addr *addr,
	const char *qmp, struct uni_err *err)
{
	struct timeval patience = { .tv_sec = PATIENCE_S };
	void *page = mmap(NULL, sizeof(*g->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int pair[2];

	if (page == MAP_FAILED)
		return uni_err_set(err, UNI_ENOMEM, "gdb: out of memory");
	g->shared = page;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return uni_err_set(err, UNI_EIO, "gdb: no socket pair: %s", strerror(errno));
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	g->sock = pair[0];
	g->pid = fork();
	if (g->pid == 0)
		uni_gdb_guardian_main(pair[1], addr, qmp, g->shared);
	(void)close(pair[1]);
	if (g->pid > 0)
		return 0;
	g->pid = 0;
	return uni_err_set(
		err, UNI_EIO, "gdb: cannot start the guardian process: %s", strerror(errno));
}

static int ask_line(struct uni_gdb_guardian *g, int *fd_ret, struct uni_err *err)
{
	if (g->sock < 0 || send(g->sock, "", 1, MSG_NOSIGNAL) != 1)
		return uni_err_set(err, UNI_EIO, "gdb: the guardian process ended unexpectedly");
	return receive_line(g->sock, fd_ret, err);
}

int uni_gdb_guardian_keep(
	struct uni_gdb_guardian *g, const struct uni_net_addr *addr, struct uni_err *err)
{
	int rc;

	*g = (struct uni_gdb_guardian){ .sock = -1 };
	rc = spawn_guardian(g, addr, NULL, err);
	if (rc != 0)
		uni_gdb_guardian_end(g);
	return rc;
}

int uni_gdb_guardian_again(
	struct uni_gdb_guardian *g, struct uni_gdb_guardian *kept, int *fd_ret, struct uni_err *err)
{
	int rc;

	memset(kept->shared, 0, sizeof(*kept->shared));
	rc = ask_line(kept, fd_ret, err);
	if (rc != 0)
		return rc;
	*g = *kept;
	g->kept = kept;
	return 0;
}

int uni_gdb_guardian_start(struct uni_gdb_guardian *g, const struct uni_net_addr *addr,
	const char *qmp, int *fd_ret, struct uni_err *err)
{
	int rc;

	*g = (struct uni_gdb_guardian){ .sock = -1 };
	rc = spawn_guardian(g, addr, qmp, err);
	if (rc == 0)
		rc = ask_line(g, fd_ret, err);
	if (rc != 0)
		uni_gdb_guardian_end(g);
	return rc;
}
