/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP on the loopback interface. One thread: the caller waits for uni_httpd_fd() and lets it run.
 * What is answered is the business of who made it (serve/ftrace_http.h, serve/viewer.h); here are
 * the limits: of connections, of what a request may hold, of how long a client may do nothing.
 */
#ifndef UNI_SERVE_HTTPD_H
#define UNI_SERVE_HTTPD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/strbuf.h"

/* All borrowed; headers are NULL where there was none. */
struct uni_httpd_request {
	const char *method, *path; /* path: decoded, without what is behind '?' */
	const char *host, *origin, *fetch_site, *if_none_match;
	uint16_t port;		     /* ours */
	const struct sockaddr *peer; /* the client's; NULL: it cannot be told */
	const char *body;
	size_t len;
	bool too_long; /* the body is more than cfg.body_max, and is not here */
};

#define UNI_HTTPD_WAIT	(-1) /* nothing now: again after uni_httpd_wake() */
#define UNI_HTTPD_ERROR (-2)

/* A body: text, bytes that somebody else holds, or a stream. */
struct uni_httpd_reply {
	unsigned status;
	const char *type;
	const char *policy; /* content security policy; NULL: nothing may be loaded */
	const char *allow;  /* of 405 */
	char etag[32];	    /* "" none */
	struct uni_strbuf body;
	/* Instead: these; release(held) when they are no longer needed. */
	const void *bytes;
	size_t nr_bytes;
	void (*release)(void *held);
	void *held;
	/* Instead: bytes as they come; 0 at the end. close(reader) in any case. */
	long (*read)(void *reader, char *buf, size_t max);
	void (*close)(void *reader);
	void *reader;
};

struct uni_httpd_cfg {
	uint16_t port; /* 0: any that is free */
	unsigned connections_max;
	size_t body_max;
	/* ret is zeroed and has status 200. */
	void (*request)(void *ctx, const struct uni_httpd_request *q, struct uni_httpd_reply *ret);
	void *ctx;
};

/* "WHY\n" as text. */
void uni_httpd_refuse(struct uni_httpd_reply *ret, unsigned status, const char *why);

struct uni_httpd; /* opaque */

int uni_httpd_create(const struct uni_httpd_cfg *cfg, struct uni_httpd **ret, struct uni_err *err);
/* Ends what is on its way. NULL-safe. */
void uni_httpd_destroy(struct uni_httpd *h);
uint16_t uni_httpd_port(const struct uni_httpd *h);
/* Readable when there is something to do; borrowed. */
int uni_httpd_fd(const struct uni_httpd *h);
/* At most so many ms until uni_httpd_run() is due, whatever the descriptor says. */
int uni_httpd_timeout(const struct uni_httpd *h, int most_ms);
/* Does what can be done now: a bounded piece for each connection. */
int uni_httpd_run(struct uni_httpd *h, struct uni_err *err);
/* Streams that said UNI_HTTPD_WAIT are asked again. */
void uni_httpd_wake(struct uni_httpd *h);

#endif
