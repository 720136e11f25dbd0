/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/qmp.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "backend/listener.h"
#include "backend/vmm/proc.h"

#define TIMEOUT_MS  10000 /* for a busy host; another client of the monitor is known at once */
#define FREE_NS	    (300 * UNI_NSEC_PER_MSEC)
#define GREETING_NS (400 * UNI_NSEC_PER_MSEC)
#define EVENTS_MAX  4096 /* events taken while waiting for one reply */

struct uni_qmp {
	int fd;
	unsigned timeout_ms;
	void (*on_event)(void *ctx, const struct uni_qmp_event *e);
	void *event_ctx;
	size_t size;		       /* bytes in buf */
	size_t scanned;		       /* bytes of these that end no message */
	unsigned depth;		       /* of objects, at the end of these */
	bool in_text, escaped;	       /* in a string, behind its '\\' */
	char buf[UNI_QMP_MESSAGE_MAX]; /* received, not parsed yet */
};

/* With `pass` (-1: none), also sends that file descriptor, with the first byte. */
static ssize_t send_some(int fd, const char *text, size_t len, int pass)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)text, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (pass >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &pass, sizeof(pass));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static int send_text(struct uni_qmp *q, const char *text, int pass, uint64_t deadline_ns)
{
	size_t len = strlen(text), done = 0;

	while (done < len) {
		ssize_t n = send_some(q->fd, text + done, len - done, done == 0 ? pass : -1);
		int rc = 0;

		if (n >= 0)
			done += (size_t)n;
		else if (errno == EAGAIN)
			rc = uni_wait_fd(q->fd, POLLOUT, deadline_ns);
		else if (errno != EINTR)
			rc = -UNI_EGONE;
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int fill_buffer(struct uni_qmp *q, uint64_t deadline_ns)
{
	ssize_t n;

	if (q->size == sizeof(q->buf))
		return -UNI_EPROTO; /* a line that never ends */
	n = recv(q->fd, q->buf + q->size, sizeof(q->buf) - q->size, 0);
	if (n > 0)
		q->size += (size_t)n;
	else if (n < 0 && errno == EAGAIN)
		return uni_wait_fd(q->fd, POLLIN, deadline_ns);
	else if (n == 0 || errno != EINTR)
		return -UNI_EGONE;
	return 0;
}

/* The end of the line that ends the first object (QEMU's qmp-pretty has several lines for one). */
static bool has_message(struct uni_qmp *q)
{
	for (; q->scanned < q->size; q->scanned++) {
		char c = q->buf[q->scanned];

		if (c == '\n' && (q->depth == 0 || q->in_text))
			return true;
		if (q->in_text && (q->escaped || c == '\\'))
			q->escaped = !q->escaped;
		else if (c == '"')
			q->in_text = q->depth != 0 && !q->in_text;
		else if (!q->in_text && c == '{')
			q->depth++;
		else if (!q->in_text && c == '}' && q->depth != 0)
			q->depth--;
	}
	return false;
}

/* Takes the next message out of the buffer, and parses it. */
static int next_message(struct uni_qmp *q, uint64_t deadline_ns, struct uni_qmp_message *ret)
{
	size_t size;
	int rc;

	while (!has_message(q)) {
		rc = fill_buffer(q, deadline_ns);
		if (rc != 0)
			return rc;
	}
	size = q->scanned + 1;
	rc = uni_qmp_parse(q->buf, size, ret);
	memmove(q->buf, q->buf + size, q->size - size);
	q->size -= size;
	q->scanned = q->depth = 0;
	q->in_text = q->escaped = false;
	return rc != 0 ? -UNI_EPROTO : 0;
}

static void hand_over(struct uni_qmp *q, const struct uni_qmp_message *m)
{
	struct uni_qmp_event e;

	if (q->on_event != NULL && m->kind == UNI_QMP_EVENT && uni_qmp_take_event(m, &e) == 0)
		q->on_event(q->event_ctx, &e);
}

/* The reply to the last command. Sets *ret only if it returns 0. */
static int await_answer(struct uni_qmp *q, uint64_t deadline_ns, struct uni_qmp_message *ret)
{
	for (int i = 0; i < EVENTS_MAX; i++) {
		int rc = next_message(q, deadline_ns, ret);

		if (rc != 0)
			return rc;
		if (ret->kind == UNI_QMP_RETURN)
			return 0;
		hand_over(q, ret);
		uni_qmp_message_free(ret);
		if (ret->kind == UNI_QMP_ERROR)
			return -UNI_ENOTSUP;
	}
	return -UNI_EPROTO;
}

static uint64_t qmp_deadline(const struct uni_qmp *q)
{
	return uni_now_ns() + q->timeout_ms * UNI_NSEC_PER_MSEC;
}

static int command_with(struct uni_qmp *q, const char *text, int pass, struct uni_qmp_message *ret)
{
	uint64_t until = qmp_deadline(q);
	int rc = send_text(q, text, pass, until);

	return rc != 0 ? rc : await_answer(q, until, ret);
}

static int send_command(struct uni_qmp *q, const char *text, struct uni_qmp_message *ret)
{
	return command_with(q, text, -1, ret);
}

static int connect_to(const char *path, struct uni_err *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	int fd;

	if (len == 0 || len >= sizeof(un.sun_path))
		return uni_err_set(err, UNI_EUSAGE, "qmp: the socket path must have 1 to %zu bytes",
			sizeof(un.sun_path) - 1);
	memcpy(un.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return uni_err_set(err, UNI_EIO, "qmp: no socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	(void)uni_err_set(err,
		errno == EAGAIN	  ? UNI_EBUSY
		: errno == EACCES ? UNI_EPERM
				  : UNI_ENOENT,
		"qmp: cannot connect to %s: %s", path,
		errno == EAGAIN ? "another client is connected" : strerror(errno));
	(void)close(fd);
	return -err->code;
}

/* A VMM that a signal has stopped accepts nobody: its waiting clients are no reason. */
static int check_owner_runs(const struct uni_net_listener *l, struct uni_err *err)
{
	int pid = l->local ? uni_net_socket_owner(l->inode) : 0;

	return pid != 0 ? uni_vmm_check_runs(pid, err) : 0;
}

static int held_by_another(const char *path, const struct uni_net_listener *l, struct uni_err *err)
{
	int pid = uni_net_client_owner(l), rc = check_owner_runs(l, err);
	char who[96] = "", comm[32];

	if (rc != 0)
		return rc;
	uni_vmm_comm(pid, comm, sizeof(comm));
	if (pid != 0)
		(void)snprintf(who, sizeof(who), " (pid %d, %s)", pid, comm);
	return uni_err_set(err, UNI_EBUSY,
		"qmp: another client%s holds %s, and a monitor serves one at a time: end that one, "
		"or give QEMU a second -qmp socket",
		who, path);
}

/* QEMU needs a moment to notice that a client left, so a client in the tables may be a past one. */
static int wait_until_free(const char *path, struct uni_net_listener *ret, struct uni_err *err)
{
	uint64_t until_ns = uni_now_ns() + FREE_NS;

	uni_net_find_unix(path, ret);
	while (ret->has_client) {
		if (uni_now_ns() >= until_ns)
			return held_by_another(path, ret, err);
		(void)usleep(20000);
		uni_net_find_unix(path, ret);
	}
	return 0;
}

int uni_qmp_check(const char *path, struct uni_err *err)
{
	int rc = uni_net_check_path(path, "the VMM's monitor", err);
	struct uni_net_listener l;

	if (rc == 0)
		rc = wait_until_free(path, &l, err);
	return rc != 0 ? rc : check_owner_runs(&l, err);
}

/*
 * If the monitor was seen to be free, no other client uses it. Otherwise, without a greeting,
 * another client does.
 */
static int negotiate_qmp(
	struct uni_qmp *q, const char *path, const struct uni_net_listener *l, struct uni_err *err)
{
	uint64_t begin_ns = uni_now_ns();
	struct uni_qmp_message m;
	int rc = next_message(q, begin_ns + GREETING_NS, &m);

	if (rc == -UNI_ETIMEDOUT && l->local) {
		if (check_owner_runs(l, err) != 0)
			return -UNI_EBUSY;
		rc = next_message(q, begin_ns + q->timeout_ms * UNI_NSEC_PER_MSEC, &m);
	}
	if (rc == -UNI_ETIMEDOUT && l->local)
		return uni_err_set(err, UNI_EBUSY,
			"qmp: no greeting from %s: is the VMM stopped, or has another client just "
			"connected?",
			path);
	if (rc == -UNI_ETIMEDOUT)
		return held_by_another(path, l, err);
	if (rc == 0) {
		uni_qmp_message_free(&m);
		rc = m.kind == UNI_QMP_GREETING ? 0 : -UNI_EPROTO;
	}
	if (rc == 0)
		rc = send_command(q, "{\"execute\":\"qmp_capabilities\"}\n", &m);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"qmp: the peer is no QEMU monitor in QMP mode (%s)", uni_strerror(rc));
	uni_qmp_message_free(&m);
	return 0;
}

int uni_qmp_open(const char *path, unsigned timeout_ms, struct uni_qmp **ret, struct uni_err *err)
{
	struct uni_err own = { 0 };
	struct uni_net_listener l;
	struct uni_qmp *q;
	int rc = wait_until_free(path, &l, err), fd;

	if (rc != 0)
		return rc;
	fd = connect_to(path, &own);
	if (fd < 0)
		return uni_err_set(err, (enum uni_errcode)own.code, "%s", own.msg);
	q = calloc(1, sizeof(*q));
	if (q == NULL) {
		(void)close(fd);
		return uni_err_set(err, UNI_ENOMEM, "qmp: out of memory");
	}
	q->fd = fd;
	q->timeout_ms = timeout_ms != 0 ? timeout_ms : TIMEOUT_MS;
	rc = negotiate_qmp(q, path, &l, err);
	if (rc != 0)
		uni_qmp_close(q);
	else
		*ret = q;
	return rc;
}

void uni_qmp_close(struct uni_qmp *q)
{
	if (q == NULL)
		return;
	(void)close(q->fd);
	free(q);
}

void uni_qmp_on_event(
	struct uni_qmp *q, void (*fn)(void *ctx, const struct uni_qmp_event *e), void *ctx)
{
	q->on_event = fn;
	q->event_ctx = ctx;
}

int uni_qmp_poll(struct uni_qmp *q)
{
	for (int i = 0; i < EVENTS_MAX; i++) {
		struct uni_qmp_message m;
		int rc = next_message(q, 0, &m);

		if (rc == -UNI_ETIMEDOUT)
			return 0;
		if (rc != 0)
			return rc;
		hand_over(q, &m);
		uni_qmp_message_free(&m);
	}
	return 0;
}

int uni_qmp_cont(struct uni_qmp *q)
{
	struct uni_qmp_message m;
	int rc = send_command(q, "{\"execute\":\"cont\"}\n", &m);

	if (rc == 0)
		uni_qmp_message_free(&m);
	return rc;
}

/* Runs a command of the human monitor; only letters, digits, blanks, "-" and ":". */
static int monitor_command(
	struct uni_qmp *q, uint32_t vcpu, const char *line, struct uni_qmp_message *ret)
{
	char text[160];

	(void)snprintf(text, sizeof(text),
		"{\"execute\":\"human-monitor-command\",\"arguments\":"
		"{\"command-line\":\"%s\",\"cpu-index\":%" PRIu32 "}}\n",
		line, vcpu);
	return send_command(q, text, ret);
}

int uni_qmp_cpu(struct uni_qmp *q, uint32_t vcpu, struct uni_qmp_cpu *ret)
{
	struct uni_qmp_message m;
	int rc = monitor_command(q, vcpu, "info registers", &m);

	if (rc != 0)
		return rc;
	rc = uni_qmp_take_cpu(&m, ret);
	uni_qmp_message_free(&m);
	return rc;
}

static int ask_address(struct uni_qmp *q, const char *command, uint64_t address,
	int (*take)(const struct uni_qmp_message *m, uint64_t *ret), uint64_t *ret)
{
	struct uni_qmp_message m;
	char line[64];
	int rc;

	(void)snprintf(line, sizeof(line), "%s 0x%" PRIx64, command, address);
	rc = monitor_command(q, 0, line, &m);
	if (rc != 0)
		return rc;
	rc = take(&m, ret);
	uni_qmp_message_free(&m);
	return rc;
}

int uni_qmp_gpa2hva(void *ctx, uint64_t gpa, uint64_t *hva_ret)
{
	return ask_address(ctx, "gpa2hva", gpa, uni_qmp_take_gpa2hva, hva_ret);
}

int uni_qmp_gva2gpa(struct uni_qmp *q, uint64_t gva, uint64_t *gpa_ret)
{
	return ask_address(q, "gva2gpa", gva, uni_qmp_take_gva2gpa, gpa_ret);
}

int uni_qmp_status(struct uni_qmp *q, bool *running_ret, char *status_ret, size_t cap)
{
	struct uni_qmp_message m;
	int rc = send_command(q, "{\"execute\":\"query-status\"}\n", &m);

	if (rc != 0)
		return rc;
	rc = uni_qmp_take_status(&m, running_ret, status_ret, cap);
	uni_qmp_message_free(&m);
	return rc;
}

int uni_qmp_name(struct uni_qmp *q, char *ret, size_t cap)
{
	struct uni_qmp_message m;
	int rc = send_command(q, "{\"execute\":\"query-name\"}\n", &m);

	if (rc != 0)
		return rc;
	rc = uni_qmp_take_name(&m, ret, cap);
	uni_qmp_message_free(&m);
	return rc;
}

int uni_qmp_gdb_off(struct uni_qmp *q)
{
	struct uni_qmp_message m;
	int rc = monitor_command(q, 0, "gdbserver none", &m);

	if (rc == 0)
		uni_qmp_message_free(&m);
	return rc;
}

/*
 * -gdb and the monitor's own gdbserver use the label "gdb". The second of ours is for a guest that
 * somebody had paused before: it must stay so.
 */
#define GDB_LABEL	 "uniscope-gdb"
#define GDB_PAUSED_LABEL "uniscope-gdb-paused"

/* The profiler and its guardian were killed. The guest stands if that was while they held it. */
static int clean_up_stub(struct uni_qmp *q, bool was_paused, struct uni_err *err)
{
	char status[32] = "";
	bool runs = true;
	int rc = uni_qmp_gdb_off(q);

	if (rc == 0 && !was_paused)
		rc = uni_qmp_status(q, &runs, status, sizeof(status));
	/* In other states QEMU has stopped it by itself. */
	if (rc == 0 && !runs && (strcmp(status, "paused") == 0 || strcmp(status, "debug") == 0))
		rc = uni_qmp_cont(q);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"qmp: the gdb stub of a uniscope that was killed cannot be switched off: "
			"%s",
			uni_strerror(rc));
	return 0;
}

static int query_chardev(struct uni_qmp *q, struct uni_qmp_message *ret)
{
	return send_command(q, "{\"execute\":\"query-chardev\"}\n", ret);
}

int uni_qmp_gdb_keys(struct uni_qmp *q, char *ret, size_t cap)
{
	struct uni_qmp_message m;
	int rc = query_chardev(q, &m);

	if (rc != 0)
		return rc;
	rc = uni_qmp_take_gdb(&m, ret, cap) ? 0 : -UNI_ENOENT;
	uni_qmp_message_free(&m);
	return rc;
}

static int check_no_gdb(struct uni_qmp *q, struct uni_err *err)
{
	enum uni_qmp_chardev ours, paused, gdb;
	struct uni_qmp_message m;
	char keys[256];
	int rc = query_chardev(q, &m);

	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"qmp: QEMU does not list its character devices: %s", uni_strerror(rc));
	gdb = uni_qmp_take_chardev(&m, "gdb");
	ours = uni_qmp_take_chardev(&m, GDB_LABEL);
	paused = uni_qmp_take_chardev(&m, GDB_PAUSED_LABEL);
	if (!uni_qmp_take_gdb(&m, keys, sizeof(keys)))
		(void)snprintf(keys, sizeof(keys), "unix=PATH or gdb:tcp=HOST:PORT");
	uni_qmp_message_free(&m);
	if (ours == UNI_QMP_CHARDEV_USED || paused == UNI_QMP_CHARDEV_USED)
		return uni_err_set(err, UNI_EBUSY,
			"qmp: another uniscope has switched this QEMU's gdb stub on: end that one "
			"first");
	if (gdb != UNI_QMP_CHARDEV_NONE)
		return uni_err_set(err, UNI_EBUSY,
			"qmp: this QEMU has a gdb stub already: give its own address, gdb:%s",
			keys);
	if (ours != UNI_QMP_CHARDEV_NONE || paused != UNI_QMP_CHARDEV_NONE)
		return clean_up_stub(q, ours == UNI_QMP_CHARDEV_NONE, err);
	return 0;
}

static int hand_over_fd(struct uni_qmp *q, int fd, const char *label)
{
	struct uni_qmp_message m;
	char text[320];
	int rc = command_with(q,
		"{\"execute\":\"getfd\",\"arguments\":{\"fdname\":\"" GDB_LABEL "\"}}\n", fd, &m);

	if (rc != 0)
		return rc;
	uni_qmp_message_free(&m);
	(void)snprintf(text, sizeof(text),
		"{\"execute\":\"chardev-add\",\"arguments\":{\"id\":\"%s\",\"backend\":{\"type\":"
		"\"socket\",\"data\":{\"addr\":{\"type\":\"fd\",\"data\":{\"str\":\"" GDB_LABEL
		"\"}},\"server\":false}}}}\n",
		label);
	rc = send_command(q, text, &m);
	if (rc == 0)
		uni_qmp_message_free(&m);
	return rc;
}

int uni_qmp_gdb_on(struct uni_qmp *q, int fd, bool *runs_ret, struct uni_err *err)
{
	const char *label = GDB_PAUSED_LABEL;
	struct uni_qmp_message m;
	char line[64];
	int rc = check_no_gdb(q, err);

	if (rc != 0)
		return rc;
	rc = uni_qmp_status(q, runs_ret, NULL, 0);
	if (rc == 0 && *runs_ret)
		label = GDB_LABEL;
	if (rc == 0)
		rc = hand_over_fd(q, fd, label);
	(void)snprintf(line, sizeof(line), "gdbserver chardev:%s", label);
	if (rc == 0)
		rc = monitor_command(q, 0, line, &m);
	if (rc == 0)
		uni_qmp_message_free(&m);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"qmp: QEMU does not switch its gdb stub on: %s", uni_strerror(rc));
	return 0;
}
