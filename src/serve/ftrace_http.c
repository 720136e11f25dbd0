/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/ftrace_http.h"

#include <string.h>

#include "base/checked.h"
#include "base/owner.h"
#include "serve/guard.h"
#include "serve/peer.h"

#define CONNECTIONS_MAX 32

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

static long read_text(void *reader, char *buf, size_t max)
{
	long n = uni_ftrace_read(reader, buf, max);

	return n < 0 ? UNI_HTTPD_ERROR : n;
}

static void close_text(void *reader)
{
	uni_ftrace_reader_close(reader);
}

static bool is_ours(const struct uni_httpd_request *q)
{
	uid_t uid;

	return uni_peer_uid(q->peer, q->port, &uid) && uni_owner_is_ours(uid);
}

static void answer_request(
	void *ctx, const struct uni_httpd_request *q, struct uni_httpd_reply *ret)
{
	const char *why = uni_serve_refuses(q->host, q->origin, q->fetch_site, q->port);
	struct uni_ftrace_reply reply;
	enum uni_ftrace_method m;

	ret->allow = "GET, HEAD, PUT, POST, DELETE";
	if (why != NULL) {
		uni_httpd_refuse(ret, 403, why);
	} else if (!method_of(q->method, &m)) {
		uni_httpd_refuse(ret, 405, "GET, HEAD, PUT, POST and DELETE are known");
	} else if (uni_ftrace_changes(m, q->path) && !is_ours(q)) {
		uni_httpd_refuse(ret, 403,
			"only the user who serves this guest, and root, may change what is traced");
	} else if (q->too_long) {
		uni_httpd_refuse(ret, 413, "that is too much to write");
	} else {
		uni_ftrace_request(ctx, m, q->path, q->body, q->len, &reply);
		ret->status = reply.status;
		ret->type = reply.type;
		ret->body = reply.body;
		if (reply.reader != NULL) {
			ret->read = read_text;
			ret->close = close_text;
			ret->reader = reply.reader;
		}
	}
}

struct uni_httpd_cfg uni_ftrace_httpd(struct uni_ftrace *f, uint16_t port)
{
	return (struct uni_httpd_cfg){ .port = port,
		.connections_max = CONNECTIONS_MAX,
		.body_max = UNI_FTRACE_BODY_MAX,
		.request = answer_request,
		.ctx = f };
}
