/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/httpd.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/checked.h"

#define CONNECTION_BYTES (32 * 1024)
#define IDLE_S		 30 /* a client that neither reads nor sends a request for so long is dropped */
#define BLOCK		 (64 * 1024)
#define ROUNDS		 8 /* in one uni_httpd_run() */
#define BACKLOG		 1024u

/* A client; their number is limited. */
struct client {
	struct MHD_Connection *c;
	struct client *next, **prev;
	bool shed; /* its connection was shut down */
};

struct stream {
	struct uni_httpd *h;
	struct MHD_Connection *c;
	struct uni_httpd_reply reply;
	struct stream *next, **prev;
	bool waits;
};

struct uni_httpd {
	struct MHD_Daemon *daemon;
	struct uni_httpd_cfg cfg;
	struct stream *streams;
	/* Clients without a request in progress; the longest idle first. */
	struct client *idle, **idle_end;
	unsigned nr_clients, nr_shed;
	bool again; /* some clients are just leaving: they free their places only in a further run
		     */
	uint16_t port;
	int fd;
};

struct request {
	size_t len;
	bool too_long;
	char body[];
};

void uni_httpd_refuse(struct uni_httpd_reply *ret, unsigned status, const char *why)
{
	ret->status = status;
	ret->type = "text/plain; charset=utf-8";
	uni_strbuf_reset(&ret->body);
	uni_strbuf_addf(&ret->body, "%s\n", why);
}

static void idle_add(struct uni_httpd *h, struct client *c)
{
	c->next = NULL;
	c->prev = h->idle_end;
	*h->idle_end = c;
	h->idle_end = &c->next;
}

/* Does nothing if the client is not in the list. */
static void idle_remove(struct uni_httpd *h, struct client *c)
{
	if (c->prev == NULL)
		return;
	*c->prev = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	else
		h->idle_end = c->prev;
	c->prev = NULL;
}

static void on_client(void *cls, struct MHD_Connection *conn, void **state,
	enum MHD_ConnectionNotificationCode what)
{
	struct uni_httpd *h = cls;
	struct client *c = *state;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*state = c;
		if (c == NULL)
			return;
		c->c = conn;
		h->nr_clients++;
		idle_add(h, c);
	} else if (c != NULL) {
		idle_remove(h, c);
		h->nr_clients--;
		h->nr_shed -= c->shed;
		free(c);
		*state = NULL;
	}
}

static struct client *client_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

/*
 * Clients that connect and send nothing, or never complete a request, must not keep others out.
 * Before all places are taken, the longest idle ones are shut down.
 */
static void shed_idle(struct uni_httpd *h)
{
	const unsigned most = h->cfg.connections_max - h->cfg.connections_max / 4;

	for (struct client *c = h->idle; c != NULL && h->nr_clients - h->nr_shed > most;
		c = c->next) {
		const union MHD_ConnectionInfo *info =
			MHD_get_connection_info(c->c, MHD_CONNECTION_INFO_CONNECTION_FD);

		if (c->shed || info == NULL)
			continue;
		c->shed = shutdown(info->connect_fd, SHUT_RDWR) == 0;
		h->nr_shed += c->shed;
	}
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
	struct stream *s = cls;
	long n = s->reply.read(s->reply.reader, buf, max);

	if (n == UNI_HTTPD_WAIT) {
		s->waits = true;
		MHD_suspend_connection(s->c);
		return 0;
	}
	if (n < 0)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	return n == 0 ? MHD_CONTENT_READER_END_OF_STREAM : n;
}

static void close_stream(void *cls)
{
	struct stream *s = cls;

	s->reply.close(s->reply.reader);
	*s->prev = s->next;
	if (s->next != NULL)
		s->next->prev = s->prev;
	free(s);
}

/* Closes the reader also on failure. */
static struct MHD_Response *open_stream(
	struct uni_httpd *h, struct MHD_Connection *c, const struct uni_httpd_reply *reply)
{
	struct stream *s = calloc(1, sizeof(*s));
	struct MHD_Response *r;

	if (s == NULL) {
		reply->close(reply->reader);
		return NULL;
	}
	*s = (struct stream){ h, c, *reply, h->streams, &h->streams, false };
	if (s->next != NULL)
		s->next->prev = &s->next;
	h->streams = s;
	r = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK, read_stream, s, close_stream);
	if (r == NULL)
		close_stream(s);
	return r;
}

static struct MHD_Response *make_body(
	struct uni_httpd *h, struct MHD_Connection *c, struct uni_httpd_reply *reply)
{
	struct MHD_Response *r;

	if (reply->read != NULL)
		return open_stream(h, c, reply);
	if (reply->bytes == NULL)
		return MHD_create_response_from_buffer(
			reply->body.len, reply->body.s, MHD_RESPMEM_MUST_COPY);
	r = MHD_create_response_from_buffer_with_free_callback_cls(
		reply->nr_bytes, (void *)(uintptr_t)reply->bytes, reply->release, reply->held);
	if (r == NULL)
		reply->release(reply->held);
	return r;
}

static void header_of(struct MHD_Response *r, const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		(void)MHD_add_response_header(r, name, value);
}

static enum MHD_Result send_reply(
	struct uni_httpd *h, struct MHD_Connection *c, struct uni_httpd_reply *reply)
{
	struct MHD_Response *r = make_body(h, c, reply);
	enum MHD_Result ok;

	if (r == NULL)
		return MHD_NO;
	header_of(r, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
	header_of(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	header_of(r, "X-Content-Type-Options", "nosniff");
	header_of(r, "Referrer-Policy", "no-referrer");
	header_of(r, "Cross-Origin-Resource-Policy", "same-origin");
	header_of(r, "Content-Security-Policy",
		reply->policy != NULL ? reply->policy
				      : "default-src 'none'; frame-ancestors 'none'");
	header_of(r, MHD_HTTP_HEADER_ETAG, reply->etag);
	if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		header_of(r, MHD_HTTP_HEADER_ALLOW, reply->allow);
	if (reply->status == MHD_HTTP_SERVICE_UNAVAILABLE)
		header_of(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
	ok = MHD_queue_response(c, reply->status, r);
	MHD_destroy_response(r);
	return ok;
}

static const struct sockaddr *peer_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info != NULL ? info->client_addr : NULL;
}

static const char *request_header(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Takes the body, piece by piece; drops what exceeds the maximum. */
static void take_body(struct request *q, size_t max, const char *data, size_t len)
{
	if (len > max - q->len) {
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
	struct uni_httpd_reply reply = { .status = 200 };
	struct client *client = client_of(c);
	enum MHD_Result ok;

	if (q == NULL) {
		*state = calloc(1, sizeof(*q) + h->cfg.body_max);
		return *state != NULL ? MHD_YES : MHD_NO;
	}
	if (*len != 0) {
		take_body(q, h->cfg.body_max, data, *len);
		*len = 0;
		return MHD_YES;
	}
	if (client != NULL)
		idle_remove(h, client);
	uni_strbuf_init(&reply.body);
	h->cfg.request(h->cfg.ctx,
		&(struct uni_httpd_request){ .method = method,
			.path = url,
			.host = request_header(c, "Host"),
			.origin = request_header(c, "Origin"),
			.fetch_site = request_header(c, "Sec-Fetch-Site"),
			.if_none_match = request_header(c, "If-None-Match"),
			.port = h->port,
			.peer = peer_of(c),
			.body = q->body,
			.len = q->len,
			.too_long = q->too_long },
		&reply);
	ok = send_reply(h, c, &reply);
	uni_strbuf_deinit(&reply.body);
	return ok;
}

static void on_end(
	void *cls, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode how)
{
	struct client *client = client_of(c);

	free(*state);
	*state = NULL;
	if (client != NULL) {
		idle_remove(cls, client);
		idle_add(cls, client);
	}
}

static int learn_descriptors(struct uni_httpd *h, struct uni_err *err)
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

int uni_httpd_create(const struct uni_httpd_cfg *cfg, struct uni_httpd **ret, struct uni_err *err)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_port = htons(cfg->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct uni_httpd *h = calloc(1, sizeof(*h));
	int rc;

	if (h == NULL)
		return uni_err_nomem(err);
	h->cfg = *cfg;
	h->idle_end = &h->idle;
	errno = 0;
	h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, cfg->port, NULL,
		NULL, on_request, h, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&addr,
		MHD_OPTION_LISTEN_BACKLOG_SIZE, BACKLOG, MHD_OPTION_CONNECTION_LIMIT,
		cfg->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_NOTIFY_COMPLETED,
		on_end, h, MHD_OPTION_NOTIFY_CONNECTION, on_client, h, MHD_OPTION_END);
	if (h->daemon == NULL)
		rc = uni_err_set(err, errno == EADDRINUSE ? UNI_EBUSY : UNI_EIO,
			"cannot listen on 127.0.0.1:%u: %s%s", cfg->port,
			errno != 0 ? strerror(errno) : "libmicrohttpd failed",
			errno == EADDRINUSE ? " (-p takes another port)" : "");
	else
		rc = learn_descriptors(h, err);
	if (rc != 0) {
		uni_httpd_destroy(h);
		return rc;
	}
	*ret = h;
	return 0;
}

void uni_httpd_set_ctx(struct uni_httpd *h, void *ctx)
{
	h->cfg.ctx = ctx;
}

void uni_httpd_wake(struct uni_httpd *h)
{
	for (struct stream *s = h->streams; s != NULL; s = s->next) {
		if (s->waits) {
			s->waits = false;
			MHD_resume_connection(s->c);
		}
	}
}

void uni_httpd_destroy(struct uni_httpd *h)
{
	if (h == NULL)
		return;
	/* The daemon does not stop while connections wait, so wake them. */
	uni_httpd_wake(h);
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

	if (h->again)
		return uni_min(most_ms, 1);
	return MHD_get_timeout(h->daemon, &ms) == MHD_YES && ms < (unsigned)most_ms ? (int)ms
										    : most_ms;
}

int uni_httpd_run(struct uni_httpd *h, struct uni_err *err)
{
	h->again = true;
	for (int i = 0; h->again && i < ROUNDS; i++) {
		unsigned before = h->nr_clients;

		if (MHD_run(h->daemon) != MHD_YES)
			return uni_err_set(err, UNI_EIO, "the HTTP server failed");
		shed_idle(h);
		h->again = h->nr_shed != 0 || h->nr_clients < before;
	}
	return 0;
}
