/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP on the loopback interface. One thread: the caller waits for uni_httpd_fd() and calls
 * uni_httpd_run(). The owner makes the replies (serve/ftrace_http.h, serve/viewer.h). The limits
 * are here: connections, size of a request, idle time of a client.
 */
#ifndef UNI_SERVE_HTTPD_H
#define UNI_SERVE_HTTPD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/strbuf.h"

/* All borrowed; missing headers are NULL. */
struct uni_httpd_request {
	const char *method, *path; /* path: decoded, without the part from '?' on */
	const char *host, *origin, *fetch_site, *if_none_match;
	uint16_t port;		     /* ours */
	const struct sockaddr *peer; /* the client's; NULL: not known */
	const char *body;
	size_t len;
	bool too_long; /* the body is larger than cfg.body_max, and is left out */
};

#define UNI_HTTPD_WAIT	(-1) /* nothing now: try again after uni_httpd_wake() */
#define UNI_HTTPD_ERROR (-2)

/* A body: text, bytes of another owner, or a stream. */
struct uni_httpd_reply {
	unsigned status;
	const char *type;
	const char *policy; /* content security policy; NULL: nothing may be loaded */
	const char *allow;  /* for status 405 */
	char etag[32];	    /* "": none */
	struct uni_strbuf body;
	/* Instead of text: these bytes; release(held) is called when they are no longer needed. */
	const void *bytes;
	size_t nr_bytes;
	void (*release)(void *held);
	void *held;
	/* Instead of text: a stream; read returns 0 at the end. close(reader) is always called. */
	long (*read)(void *reader, char *buf, size_t max);
	void (*close)(void *reader);
	void *reader;
};

struct uni_httpd_cfg {
	uint16_t port; /* 0: any free port */
	unsigned connections_max;
	size_t body_max;
	/* ret is zeroed, and has status 200. */
	void (*request)(void *ctx, const struct uni_httpd_request *q, struct uni_httpd_reply *ret);
	void *ctx;
};

/*
 * Replies "WHY
 * " as text.
 */
void uni_httpd_refuse(struct uni_httpd_reply *ret, unsigned status, const char *why);

struct uni_httpd; /* opaque */

/* It listens, and answers nobody before uni_httpd_run(). */
int uni_httpd_create(const struct uni_httpd_cfg *cfg, struct uni_httpd **ret, struct uni_err *err);
void uni_httpd_set_ctx(struct uni_httpd *h, void *ctx); /* in place of cfg.ctx */
/* Ends all connections. NULL-safe. */
void uni_httpd_destroy(struct uni_httpd *h);
uint16_t uni_httpd_port(const struct uni_httpd *h);
/* Readable when there is work; borrowed. */
int uni_httpd_fd(const struct uni_httpd *h);
/*
 * The time in ms, up to most_ms, after which uni_httpd_run() must be called even if the descriptor
 * is not readable.
 */
int uni_httpd_timeout(const struct uni_httpd *h, int most_ms);
/* Does all work that is possible now, a bounded amount for each connection. */
int uni_httpd_run(struct uni_httpd *h, struct uni_err *err);
/* Reads again from streams that returned UNI_HTTPD_WAIT. */
void uni_httpd_wake(struct uni_httpd *h);

#endif
