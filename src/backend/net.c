/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"

static void set_text(struct uni_net_addr *ret, const char *kind, const char *name)
{
	char text[sizeof(ret->text)];

	(void)snprintf(text, sizeof(text), "%s %s", kind, name);
	(void)uni_text_clean(ret->text, sizeof(ret->text), text, strlen(text));
}

int uni_net_unix(const struct uni_spec *spec, const char *path, struct uni_net_addr *ret,
	struct uni_err *err)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&ret->at[0].sa;
	size_t len = strlen(path);

	memset(ret, 0, sizeof(*ret));
	set_text(ret, "unix socket", path);
	if (len == 0 || len >= sizeof(un->sun_path))
		return uni_err_set(err, UNI_EUSAGE,
			"%s: the socket path must have 1 to %zu bytes, this one has %zu",
			spec->scheme, sizeof(un->sun_path) - 1, len);
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, len + 1);
	ret->at[0].len = sizeof(*un);
	ret->nr = 1;
	return 0;
}

int uni_net_check_path(const char *path, const char *what, struct uni_err *err)
{
	const size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

	if (strlen(path) > most)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s, %s, has a path of %zu bytes, and nobody can connect to more than %zu",
			path, what, strlen(path), most);
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EACCES)
		return uni_err_set(err, UNI_EPERM,
			"this user may not open %s, %s: run as the VMM's user or as root", path,
			what);
	return uni_err_set(
		err, UNI_ENOENT, "%s, %s, cannot be opened: %s", path, what, strerror(errno));
}

static int look_up(const struct uni_spec *spec, const char *host, const char *port,
	struct uni_net_addr *ret, struct uni_err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	struct addrinfo *list;
	int r = getaddrinfo(host, port, &hints, &list);

	if (r != 0)
		return uni_err_set(err, UNI_ENOENT, "%s: cannot look up host %s, port %s: %s",
			spec->scheme, host, port, gai_strerror(r));
	for (struct addrinfo *a = list; a != NULL && ret->nr < UNI_NET_MAX; a = a->ai_next) {
		if (a->ai_addrlen > sizeof(ret->at[0].sa))
			continue;
		memcpy(&ret->at[ret->nr].sa, a->ai_addr, a->ai_addrlen);
		ret->at[ret->nr++].len = a->ai_addrlen;
	}
	freeaddrinfo(list);
	return 0;
}

/* HOST:PORT, [HOST]:PORT or :PORT (this host). */
static int parse_tcp(const struct uni_spec *spec, const char *value, struct uni_net_addr *ret,
	struct uni_err *err)
{
	const char *colon = strrchr(value, ':');
	char host[256];
	uint64_t port;
	size_t len = colon != NULL ? (size_t)(colon - value) : 0;

	if (colon == NULL || len >= sizeof(host) || !uni_parse_u64(colon + 1, &port) || port == 0 ||
		port > 65535)
		return uni_err_set(err, UNI_EUSAGE,
			"%s: tcp=%s is not HOST:PORT; an example is %s:tcp=localhost:1234",
			spec->scheme, value, spec->scheme);
	if (len >= 2 && value[0] == '[' && value[len - 1] == ']') {
		value++;
		len -= 2;
	}
	memcpy(host, value, len);
	host[len] = '\0';
	return look_up(spec, len != 0 ? host : "localhost", colon + 1, ret, err);
}

int uni_net_parse(const struct uni_spec *spec, struct uni_net_addr *ret, struct uni_err *err)
{
	const char *path = uni_spec_get(spec, "unix"), *tcp = uni_spec_get(spec, "tcp");

	memset(ret, 0, sizeof(*ret));
	if ((path == NULL) == (tcp == NULL))
		return uni_err_set(err, UNI_EUSAGE,
			"target %s: give either unix=PATH or tcp=HOST:PORT, as QEMU has it",
			spec->text);
	if (path != NULL)
		return uni_net_unix(spec, path, ret, err);
	set_text(ret, "tcp port", tcp);
	return parse_tcp(spec, tcp, ret, err);
}

/* Returns 0, or the errno of the attempt. */
static int wait_connected(int fd, uint64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int e = 0, r;

	do {
		uint64_t now = uni_now_ns();

		if (now >= deadline_ns)
			return ETIMEDOUT;
		r = poll(&p, 1, (int)((deadline_ns - now) / 1000000) + 1);
	} while (r == 0 || (r < 0 && errno == EINTR));
	if (r < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) != 0)
		return errno;
	return e;
}

/*
 * Returns 0 and *fd_ret, or an errno. A unix socket with a full backlog gives EAGAIN at once: try
 * again.
 */
static int connect_one(const struct uni_net_addr *addr, int i, uint64_t deadline_ns, int *fd_ret)
{
	const struct sockaddr *sa = (const struct sockaddr *)&addr->at[i].sa;
	_cleanup_close_ int fd =
		socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, e;

	if (fd < 0)
		return errno;
	for (;;) {
		e = connect(fd, sa, addr->at[i].len) == 0 ? 0 : errno;
		if (e == EINPROGRESS || e == EINTR)
			e = wait_connected(fd, deadline_ns);
		if (e != EAGAIN || uni_now_ns() >= deadline_ns)
			break;
		(void)usleep(10000);
	}
	if (e != 0)
		return e;
	/* Every packet waits for a reply: Nagle's delay would make each pause longer. */
	if (sa->sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	*fd_ret = uni_take_fd(&fd);
	return 0;
}

int uni_net_connect(const struct uni_net_addr *addr, unsigned timeout_ms, int *fd_ret)
{
	uint64_t deadline_ns = uni_now_ns() + (uint64_t)timeout_ms * 1000000;
	int e = ENOENT;

	for (int i = 0; i < addr->nr && e != 0; i++)
		e = connect_one(addr, i, deadline_ns, fd_ret);
	return e;
}
