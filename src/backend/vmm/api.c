/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/vmm/api.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/vmm/config.h"

#define TIMEOUT_NS (300 * UNI_NSEC_PER_MSEC)

/* The value in a "Content-Length: N" line. */
static bool length_of(const char *line, size_t len, size_t *ret)
{
	static const char key[] = "content-length:";
	char text[24];
	uint64_t v;
	size_t n = sizeof(key) - 1;

	if (len <= n || strncasecmp(line, key, n) != 0)
		return false;
	while (n < len && line[n] == ' ')
		n++;
	if (len - n >= sizeof(text))
		return false;
	memcpy(text, line + n, len - n);
	text[len - n] = '\0';
	if (!uni_parse_u64(text, &v) || v > UNI_VMM_API_MAX)
		return false;
	*ret = (size_t)v;
	return true;
}

static bool is_ok(const char *line, size_t len)
{
	static const char *const starts[] = { "HTTP/1.1 200", "HTTP/1.0 200" };

	for (size_t i = 0; i < uni_array_len(starts); i++) {
		if (len >= strlen(starts[i]) && memcmp(line, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return false;
}

int uni_vmm_http_parse(const char *data, size_t size, size_t *body_ret, size_t *body_size_ret)
{
	size_t pos = 0, length = 0;
	bool known = false;

	for (;;) {
		const char *line = data + pos, *end = memmem(line, size - pos, "\r\n", 2);
		size_t len;

		if (end == NULL)
			return size < UNI_VMM_API_MAX ? -UNI_EAGAIN : -UNI_EPROTO;
		len = (size_t)(end - line);
		if (pos == 0 && !is_ok(line, len))
			return -UNI_EPROTO;
		pos += len + 2;
		if (len == 0)
			break;
		known = length_of(line, len, &length) || known;
	}
	if (!known)
		return -UNI_EPROTO;
	if (length > size - pos)
		return -UNI_EAGAIN;
	*body_ret = pos;
	*body_size_ret = length;
	return 0;
}

static int connect_to(const char *path, int pid)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t peer_len = sizeof(peer);
	size_t len = strlen(path);
	int fd;

	if (len == 0 || len >= sizeof(un.sun_path))
		return -UNI_ENOENT;
	memcpy(un.sun_path, path, len + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -UNI_EIO;
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
		getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_len) == 0 && peer.pid == pid)
		return fd;
	(void)close(fd);
	return errno == EACCES ? -UNI_EPERM : -UNI_ENOENT;
}

static int receive_reply(
	int fd, char *buf, uint64_t deadline_ns, size_t *body_ret, size_t *size_ret)
{
	size_t have = 0;

	for (;;) {
		int rc = uni_wait_fd(fd, POLLIN, deadline_ns);
		ssize_t n;

		if (rc != 0)
			return rc;
		if (have == UNI_VMM_API_MAX)
			return -UNI_EPROTO;
		n = recv(fd, buf + have, UNI_VMM_API_MAX - have, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return -UNI_EPROTO;
		have += (size_t)n;
		rc = uni_vmm_http_parse(buf, have, body_ret, size_ret);
		if (rc != -UNI_EAGAIN)
			return rc;
	}
}

int uni_vmm_api_read(int pid, struct uni_vmm_cmdline *c)
{
	static const char firecracker[] = "GET /vm/config HTTP/1.1\r\nHost: localhost\r\n"
					  "Accept: application/json\r\n\r\n";
	static const char other[] = "GET /api/v1/vm.info HTTP/1.1\r\nHost: localhost\r\n"
				    "Accept: application/json\r\n\r\n";
	bool fc = strcmp(c->vmm, "firecracker") == 0;
	const char *request = fc ? firecracker : other;
	_cleanup_close_ int fd = connect_to(c->api, pid);
	_cleanup_free_ char *buf = NULL;
	size_t body = 0, size = 0;
	int rc;

	if (fd < 0)
		return fd;
	buf = malloc(UNI_VMM_API_MAX);
	if (buf == NULL)
		return -UNI_ENOMEM;
	/* Far smaller than any socket's buffer: it is sent at once, or not at all. */
	if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
		return -UNI_EIO;
	rc = receive_reply(fd, buf, uni_now_ns() + TIMEOUT_NS, &body, &size);
	if (rc != 0)
		return rc;
	return uni_vmm_config_parse(buf + body, size, c) ? 0 : -UNI_EPROTO;
}
