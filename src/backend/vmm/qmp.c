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

#define TIMEOUT_MS 2000
#define EVENTS_MAX 4096 /* events taken while one answer is waited for */

struct uni_qmp {
	int fd;
	unsigned timeout_ms;
	size_t size;		       /* bytes in buf */
	size_t scanned;		       /* of them without a newline */
	char buf[UNI_QMP_MESSAGE_MAX]; /* received, not parsed yet */
};

static int send_text(struct uni_qmp *q, const char *text, uint64_t deadline_ns)
{
	size_t len = strlen(text), done = 0;

	while (done < len) {
		ssize_t n = send(q->fd, text + done, len - done, MSG_NOSIGNAL);
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

static int fill(struct uni_qmp *q, uint64_t deadline_ns)
{
	ssize_t n;
	int rc;

	if (q->size == sizeof(q->buf))
		return -UNI_EPROTO; /* a line that never ends */
	rc = uni_wait_fd(q->fd, POLLIN, deadline_ns);
	if (rc != 0)
		return rc;
	n = recv(q->fd, q->buf + q->size, sizeof(q->buf) - q->size, 0);
	if (n > 0)
		q->size += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		return -UNI_EGONE;
	return 0;
}

/* The next line, parsed and taken out of the buffer. */
static int next_message(struct uni_qmp *q, uint64_t deadline_ns, struct uni_qmp_message *ret)
{
	char *end;
	size_t line;
	int rc;

	while ((end = memchr(q->buf + q->scanned, '\n', q->size - q->scanned)) == NULL) {
		q->scanned = q->size;
		rc = fill(q, deadline_ns);
		if (rc != 0)
			return rc;
	}
	line = (size_t)(end - q->buf) + 1;
	rc = uni_qmp_parse(q->buf, line, ret);
	memmove(q->buf, q->buf + line, q->size - line);
	q->size -= line;
	q->scanned = 0;
	return rc != 0 ? -UNI_EPROTO : 0;
}

/* The answer to what was sent last; events in between are dropped. *ret is set on 0 only. */
static int answer(struct uni_qmp *q, uint64_t deadline_ns, struct uni_qmp_message *ret)
{
	for (int i = 0; i < EVENTS_MAX; i++) {
		int rc = next_message(q, deadline_ns, ret);

		if (rc != 0)
			return rc;
		if (ret->kind == UNI_QMP_RETURN)
			return 0;
		uni_qmp_message_free(ret);
		if (ret->kind == UNI_QMP_ERROR)
			return -UNI_ENOTSUP;
	}
	return -UNI_EPROTO;
}

static uint64_t deadline(const struct uni_qmp *q)
{
	return uni_now_ns() + q->timeout_ms * UNI_NSEC_PER_MSEC;
}

static int command(struct uni_qmp *q, const char *text, struct uni_qmp_message *ret)
{
	uint64_t until = deadline(q);
	int rc = send_text(q, text, until);

	return rc != 0 ? rc : answer(q, until, ret);
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

static int negotiate(struct uni_qmp *q, struct uni_err *err)
{
	struct uni_qmp_message m;
	int rc = next_message(q, deadline(q), &m);

	if (rc == -UNI_ETIMEDOUT)
		return uni_err_set(err, UNI_EBUSY,
			"qmp: no greeting: a monitor serves one client at a time; is another one "
			"connected?");
	if (rc == 0) {
		uni_qmp_message_free(&m);
		rc = m.kind == UNI_QMP_GREETING ? 0 : -UNI_EPROTO;
	}
	if (rc == 0)
		rc = command(q, "{\"execute\":\"qmp_capabilities\"}\n", &m);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"qmp: what answers there is no QEMU monitor in QMP mode (%s)",
			uni_strerror(rc));
	uni_qmp_message_free(&m);
	return 0;
}

int uni_qmp_open(const char *path, unsigned timeout_ms, struct uni_qmp **ret, struct uni_err *err)
{
	struct uni_err own = { 0 };
	struct uni_qmp *q;
	int fd = connect_to(path, &own), rc;

	if (fd < 0)
		return uni_err_set(err, (enum uni_errcode)own.code, "%s", own.msg);
	q = calloc(1, sizeof(*q));
	if (q == NULL) {
		(void)close(fd);
		return uni_err_set(err, UNI_ENOMEM, "qmp: out of memory");
	}
	q->fd = fd;
	q->timeout_ms = timeout_ms != 0 ? timeout_ms : TIMEOUT_MS;
	rc = negotiate(q, err);
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

int uni_qmp_gpa2hva(void *ctx, uint64_t gpa, uint64_t *hva_ret)
{
	struct uni_qmp_message m;
	char text[160];
	int rc;

	(void)snprintf(text, sizeof(text),
		"{\"execute\":\"human-monitor-command\",\"arguments\":"
		"{\"command-line\":\"gpa2hva 0x%" PRIx64 "\"}}\n",
		gpa);
	rc = command(ctx, text, &m);
	if (rc != 0)
		return rc;
	rc = uni_qmp_take_gpa2hva(&m, hva_ret);
	uni_qmp_message_free(&m);
	return rc;
}

int uni_qmp_status(struct uni_qmp *q, bool *running_ret, char *status_ret, size_t cap)
{
	struct uni_qmp_message m;
	int rc = command(q, "{\"execute\":\"query-status\"}\n", &m);

	if (rc != 0)
		return rc;
	rc = uni_qmp_take_status(&m, running_ret, status_ret, cap);
	uni_qmp_message_free(&m);
	return rc;
}

int uni_qmp_name(struct uni_qmp *q, char *ret, size_t cap)
{
	struct uni_qmp_message m;
	int rc = command(q, "{\"execute\":\"query-name\"}\n", &m);

	if (rc != 0)
		return rc;
	rc = uni_qmp_take_name(&m, ret, cap);
	uni_qmp_message_free(&m);
	return rc;
}
