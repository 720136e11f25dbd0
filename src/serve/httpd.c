/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/httpd.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "serve/guard.h"

#define CONNECTIONS_MAX	 32
#define CONNECTION_BYTES (32 * 1024)
#define IDLE_S		 30 /* a client that neither reads nor asks for so long is given up */
#define BLOCK		 (64 * 1024)

struct uni_httpd {
	struct MHD_Daemon *daemon;
	struct uni_ftrace *f;
	uint16_t port;
	int fd;
};

struct request {
	char body[UNI_FTRACE_BODY_MAX];
	size_t len;
	bool too_long;
};

static ssize_t read_text(void *cls, uint64_t pos, char *buf, size_t max)
{
	long n = uni_ftrace_read(cls, buf, max);

	if (n < 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void close_text(void *cls)
{
	uni_ftrace_reader_close(cls);
}

static enum MHD_Result queue(
	struct MHD_Connection *c, unsigned status, const char *type, struct MHD_Response *r)
{
	enum MHD_Result ok;

	if (r == NULL)
		return MHD_NO;
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	(void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(
		r, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(
			r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD, PUT, POST, DELETE");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		(void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	ok = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ok;
}

static enum MHD_Result refuse(struct MHD_Connection *c, unsigned status, const char *why)
{
	struct uni_strbuf b;
	enum MHD_Result ok;

	uni_strbuf_init(&b);
	uni_strbuf_addf(&b, "%s\n", why);
	ok = queue(c, status, "text/plain; charset=utf-8",
		MHD_create_response_from_buffer(b.len, b.s, MHD_RESPMEM_MUST_COPY));
	uni_strbuf_deinit(&b);
	return ok;
}

static enum MHD_Result answer(struct uni_httpd *h, struct MHD_Connection *c,
	enum uni_ftrace_method method, const char *url, const struct request *q)
{
	struct MHD_Response *r;
	struct uni_ftrace_reply reply;
	enum MHD_Result ok;

	uni_ftrace_request(h->f, method, url, q->body, q->len, &reply);
	if (reply.reader != NULL) {
		r = MHD_create_response_from_callback(
			MHD_SIZE_UNKNOWN, BLOCK, read_text, reply.reader, close_text);
		if (r == NULL)
			uni_ftrace_reader_close(reply.reader);
	} else {
		r = MHD_create_response_from_buffer(
			reply.body.len, reply.body.s, MHD_RESPMEM_MUST_COPY);
	}
	ok = queue(c, reply.status, reply.type, r);
	uni_strbuf_deinit(&reply.body);
	return ok;
}

static bool method_of(const char *name, enum uni_ftrace_method *ret)
{
	static const struct {
		const char *name;
		enum uni_ftrace_method method;
	} methods[] = {
		{ "GET", UNI_FTRACE_READ },
		{ "HEAD", UNI_FTRACE_HEAD },
		{ "PUT", UNI_FTRACE_WRITE },
		{ "POST", UNI_FTRACE_WRITE },
		{ "DELETE", UNI_FTRACE_CLEAR },
	};

	for (unsigned i = 0; i < uni_array_len(methods); i++) {
		if (strcmp(methods[i].name, name) == 0) {
			*ret = methods[i].method;
			return true;
		}
	}
	return false;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* The body, piece by piece; what is longer than makes sense is read and dropped. */
static void take_body(struct request *q, const char *data, size_t len)
{
	if (len > sizeof(q->body) - q->len) {
		q->too_long = true;
		return;
	}
	memcpy(q->body + q->len, data, len);
	q->len += len;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *len, void **state)
{
	struct uni_httpd *h = cls;
	struct request *q = *state;
	enum uni_ftrace_method m;
	const char *why;

	if (q == NULL) {
		*state = calloc(1, sizeof(*q));
		return *state != NULL ? MHD_YES : MHD_NO;
	}
	if (*len != 0) {
		take_body(q, data, *len);
		*len = 0;
		return MHD_YES;
	}
	why = uni_serve_refuses(
		header(c, "Host"), header(c, "Origin"), header(c, "Sec-Fetch-Site"), h->port);
	if (why != NULL)
		return refuse(c, MHD_HTTP_FORBIDDEN, why);
	if (!method_of(method, &m))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED,
			"GET, HEAD, PUT, POST and DELETE are known");
	if (q->too_long)
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE, "that is too much to write");
	return answer(h, c, m, url, q);
}

static void on_end(
	void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	free(*state);
	*state = NULL;
}

static int learn(struct uni_httpd *h, struct uni_err *err)
{
	const union MHD_DaemonInfo *fd, *port;

	fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	port = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_BIND_PORT);
	if (fd == NULL || port == NULL)
		return uni_err_set(err, UNI_ENOTSUP, "libmicrohttpd here knows no epoll");
	h->fd = fd->epoll_fd;
	h->port = port->port;
	return 0;
}

int uni_httpd_create(
	struct uni_ftrace *f, uint16_t port, struct uni_httpd **ret, struct uni_err *err)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct uni_httpd *h = calloc(1, sizeof(*h));
	int rc;

	if (h == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	h->f = f;
	errno = 0;
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL, port, NULL, NULL, on_request, h,
		MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&addr, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
	if (h->daemon == NULL)
		rc = uni_err_set(err, errno == EADDRINUSE ? UNI_EBUSY : UNI_EIO,
			"cannot listen on 127.0.0.1:%u: %s", port,
			errno != 0 ? strerror(errno) : "libmicrohttpd failed");
	else
		rc = learn(h, err);
	if (rc != 0) {
		uni_httpd_destroy(h);
		return rc;
	}
	*ret = h;
	return 0;
}

void uni_httpd_destroy(struct uni_httpd *h)
{
	if (h == NULL)
		return;
	if (h->daemon != NULL)
		MHD_stop_daemon(h->daemon);
	free(h);
}

uint16_t uni_httpd_port(const struct uni_httpd *h)
{
	return h->port;
}

int uni_httpd_fd(const struct uni_httpd *h)
{
	return h->fd;
}

int uni_httpd_timeout(const struct uni_httpd *h, int most_ms)
{
	MHD_UNSIGNED_LONG_LONG ms;

	return MHD_get_timeout(h->daemon, &ms) == MHD_YES && ms < (unsigned)most_ms ? (int)ms
										    : most_ms;
}

int uni_httpd_run(struct uni_httpd *h, struct uni_err *err)
{
	return MHD_run(h->daemon) == MHD_YES ? 0
					     : uni_err_set(err, UNI_EIO, "the HTTP server failed");
}
