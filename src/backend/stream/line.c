/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/stream/line.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/grant.h"
#include "backend/net.h"
#include "backend/stream/ring.h"

#define CONNECT_MS 3000

struct port {
	int fd;
	bool is_tty;
	struct termios was;
};

static int port_send(void *ctx, const void *data, size_t size, uint64_t deadline_ns)
{
	const struct port *p = ctx;
	const uint8_t *from = data;
	int rc = 0;

	while (size != 0 && rc == 0) {
		ssize_t n = p->is_tty ? write(p->fd, from, size)
				      : send(p->fd, from, size, MSG_NOSIGNAL);

		if (n >= 0) {
			from += n;
			size -= (size_t)n;
		} else if (errno == EAGAIN) {
			rc = uni_wait_fd(p->fd, POLLOUT, deadline_ns);
		} else if (errno != EINTR) {
			rc = -UNI_EGONE;
		}
	}
	return rc;
}

static int port_receive(void *ctx, void *buf, size_t size, uint64_t deadline_ns)
{
	const struct port *p = ctx;

	for (;;) {
		ssize_t n = read(p->fd, buf, size);
		int rc = 0;

		if (n > 0)
			return (int)n;
		if (n == 0 || (errno != EAGAIN && errno != EINTR))
			return -UNI_EGONE;
		if (errno == EAGAIN)
			rc = uni_wait_fd(p->fd, POLLIN, deadline_ns);
		if (rc != 0)
			return rc == -UNI_ETIMEDOUT ? rc : -UNI_EGONE;
	}
}

static void port_close(void *ctx)
{
	struct port *p = ctx;

	/* Others may have it open all the time; then closing it does not end our exclusive use. */
	if (p->is_tty) {
		(void)tcsetattr(p->fd, TCSANOW, &p->was);
		(void)ioctl(p->fd, TIOCNXCL);
	}
	(void)close(p->fd);
	free(p);
}

static const struct uni_line_ops port_ops = {
	.send = port_send,
	.receive = port_receive,
	.close = port_close,
};

static speed_t speed_of(uint64_t baud)
{
	static const struct {
		uint32_t baud;
		speed_t speed;
	} known[] = {
		{ 9600, B9600 },
		{ 19200, B19200 },
		{ 38400, B38400 },
		{ 57600, B57600 },
		{ 115200, B115200 },
		{ 230400, B230400 },
		{ 460800, B460800 },
		{ 921600, B921600 },
	};

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (known[i].baud == baud)
			return known[i].speed;
	}
	return B0;
}

/* Sets raw mode, for our exclusive use. */
static int make_raw(
	const struct uni_spec *spec, const char *path, struct port *p, struct uni_err *err)
{
	struct termios raw;
	uint64_t baud = 115200;
	int rc = uni_spec_get_u64(spec, "baud", &baud, err);
	speed_t speed = speed_of(baud);

	if (rc != 0 && rc != -UNI_ENOENT)
		return rc;
	if (speed == B0)
		return uni_err_set(
			err, UNI_EUSAGE, "stream: baud= is 9600, 19200, 38400 ... 921600");
	if (tcgetattr(p->fd, &p->was) != 0)
		return uni_err_set(err, UNI_EUSAGE, "stream: %s is no terminal device", path);
	if (ioctl(p->fd, TIOCEXCL) != 0)
		return uni_err_set(
			err, UNI_EBUSY, "stream: cannot have %s alone: %s", path, strerror(errno));
	p->is_tty = true;
	raw = p->was;
	cfmakeraw(&raw);
	raw.c_cflag |= CLOCAL | CREAD;
	if (cfsetspeed(&raw, speed) != 0 || tcsetattr(p->fd, TCSANOW, &raw) != 0)
		return uni_err_set(
			err, UNI_EIO, "stream: cannot set up %s: %s", path, strerror(errno));
	(void)tcflush(p->fd, TCIOFLUSH);
	return 0;
}

static int open_tty(const char *path, struct port *p, struct uni_line *ret, struct uni_err *err)
{
	(void)uni_text_clean(ret->text, sizeof(ret->text), path, strlen(path));
	p->fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0)
		return uni_err_set(err, errno == EACCES ? UNI_EPERM : UNI_ENOENT,
			"stream: cannot open %s: %s", ret->text, strerror(errno));
	return 0;
}

static int open_socket(
	const struct uni_spec *spec, struct port *p, struct uni_line *ret, struct uni_err *err)
{
	struct uni_net_addr addr;
	int rc = uni_net_parse(spec, &addr, err), e;

	if (rc != 0)
		return rc;
	(void)snprintf(ret->text, sizeof(ret->text), "%s", addr.text);
	e = uni_net_connect(&addr, CONNECT_MS, &p->fd);
	if (e == 0)
		return 0;
	p->fd = -1;
	if (e == EAGAIN || e == ETIMEDOUT)
		return uni_err_set(err, UNI_EBUSY,
			"stream: nobody answers at %s: is another one connected?", addr.text);
	return uni_err_set(err,
		e == EACCES || e == EPERM	   ? UNI_EPERM
		: e == ENOENT || e == ECONNREFUSED ? UNI_ENOENT
						   : UNI_EIO,
		"stream: cannot connect to %s: %s", addr.text, strerror(e));
}

static int open_new(
	const struct uni_spec *spec, struct port *p, struct uni_line *ret, struct uni_err *err)
{
	const char *tty = uni_spec_get(spec, "tty");

	return tty != NULL ? open_tty(tty, p, ret, err) : open_socket(spec, p, ret, err);
}

static int map_grant(const char *text, struct uni_grant_page *ret, struct uni_err *err)
{
	struct uni_grant g;

	if (!uni_grant_parse(text, &g))
		return uni_err_set(err, UNI_EUSAGE,
			"stream: grant= is DOMID or DOMID:REF, the numbers of a domain and of its "
			"grant");
	return uni_grant_map(&g, ret, err);
}

/* Opened before the rights went. */
struct kept {
	char *spec;
	int fd;			    /* of a port */
	struct uni_grant_page page; /* its `at` is NULL: it is a port */
	char text[sizeof(((struct uni_line *)NULL)->text)];
	struct kept *next;
};
static struct kept *all_kept;

static const struct kept *find_kept(const struct uni_spec *spec)
{
	const struct kept *k = all_kept;

	while (k != NULL && strcmp(k->spec, spec->text) != 0)
		k = k->next;
	return k;
}

/* The guest sees one connection, however often it is opened here. */
static int open_again(
	const struct kept *k, struct port *p, struct uni_line *ret, struct uni_err *err)
{
	memcpy(ret->text, k->text, sizeof(k->text));
	p->fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
	return p->fd >= 0 ? 0 : uni_err_set(err, UNI_EIO, "stream: %s", strerror(errno));
}

static int open_port(const struct uni_spec *spec, struct uni_line *ret, struct uni_err *err)
{
	const struct kept *kept = find_kept(spec);
	struct port *p = calloc(1, sizeof(*p));
	int rc;

	if (p == NULL)
		return uni_err_nomem(err);
	p->fd = -1;
	ret->ops = &port_ops;
	ret->ctx = p;
	rc = kept != NULL ? open_again(kept, p, ret, err) : open_new(spec, p, ret, err);
	if (rc == 0 && uni_spec_get(spec, "tty") != NULL)
		rc = make_raw(spec, ret->text, p, err);
	if (rc != 0)
		uni_line_close(ret);
	return rc;
}

static int open_grant(const struct uni_spec *spec, struct uni_line *ret, struct uni_err *err)
{
	const struct kept *kept = find_kept(spec);
	struct uni_grant_page page = { 0 };
	int rc = 0;

	if (kept != NULL)
		page = kept->page;
	else
		rc = map_grant(uni_spec_get(spec, "grant"), &page, err);
	return rc != 0 ? rc : uni_line_open_ring(&page, ret, err);
}

static int check_ways(const struct uni_spec *spec, struct uni_err *err)
{
	static const char *const ways[] = { "unix", "tcp", "tty", "grant" };
	unsigned nr = 0;

	for (size_t i = 0; i < uni_array_len(ways); i++)
		nr += uni_spec_get(spec, ways[i]) != NULL;
	if (nr == 1)
		return 0;
	return uni_err_set(err, UNI_EUSAGE,
		"target %s: give unix=PATH, tcp=HOST:PORT, tty=DEVICE or grant=DOMID, where the "
		"guest's port comes out",
		spec->text);
}

int uni_line_open(const struct uni_spec *spec, struct uni_line *ret, struct uni_err *err)
{
	int rc = check_ways(spec, err);

	if (rc != 0)
		return rc;
	*ret = (struct uni_line){ .text = "" };
	return uni_spec_get(spec, "grant") != NULL ? open_grant(spec, ret, err)
						   : open_port(spec, ret, err);
}

static int keep_it(const struct uni_spec *spec, struct kept *k, struct uni_err *err)
{
	const char *grant = uni_spec_get(spec, "grant");
	struct uni_line line = { .text = "" };
	struct port p = { .fd = -1 };
	int rc = check_ways(spec, err);

	if (rc != 0)
		return rc;
	if (grant != NULL) {
		rc = map_grant(grant, &k->page, err);
		k->page.stays = true;
		return rc;
	}
	rc = open_new(spec, &p, &line, err);
	k->fd = p.fd;
	memcpy(k->text, line.text, sizeof(k->text));
	return rc;
}

int uni_line_keep(const struct uni_spec *spec, struct uni_err *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	int rc;

	if (k == NULL)
		return uni_err_nomem(err);
	k->spec = strdup(spec->text);
	rc = k->spec != NULL ? keep_it(spec, k, err) : uni_err_nomem(err);
	if (rc != 0) {
		free(k->spec);
		free(k);
		return rc;
	}
	k->next = all_kept;
	all_kept = k;
	return 0;
}

void uni_line_close(struct uni_line *l)
{
	if (l->ops != NULL && l->ops->close != NULL)
		l->ops->close(l->ctx);
	l->ops = NULL;
}
