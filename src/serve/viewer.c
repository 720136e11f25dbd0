/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/viewer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "serve/guard.h"

#define ALIVE_NS (10 * UNI_NSEC_PER_SEC)

/* The newest data. A client that reads older data holds them. */
struct data {
	const void *bytes;
	size_t len;
	void (*release)(void *held);
	void *held;
	unsigned refs;
	uint64_t rev;
};

struct uni_viewer {
	struct uni_viewer_cfg cfg;
	char token[UNI_VIEWER_TOKEN];
	struct data *data;
	struct uni_viewer_state state;
	uint64_t rev, change; /* of data; of any news for streams */
	uint64_t alive_ns;    /* when streams last sent a sign of life */
	uint64_t beat;
	unsigned streams;
	bool news;
};

struct stream {
	struct uni_viewer *v;
	struct uni_strbuf text; /* still to be sent, from `at` on */
	size_t at;
	uint64_t change, beat; /* that were sent */
};

static const char *const names[] = {
	[UNI_VIEWER_NOTHING] = "",
	[UNI_VIEWER_SAMPLES] = "samples",
	[UNI_VIEWER_CALLS] = "calls",
};

static int make_token(char ret[UNI_VIEWER_TOKEN], struct uni_err *err)
{
	unsigned char random[(UNI_VIEWER_TOKEN - 1) / 2];
	ssize_t r;

	do {
		r = getrandom(random, sizeof(random), 0);
	} while (r < 0 && errno == EINTR);
	if (r != (ssize_t)sizeof(random))
		return uni_err_set(err, UNI_EIO, "no random numbers to be had: %s",
			r < 0 ? strerror(errno) : "too few");
	for (size_t i = 0; i < sizeof(random); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", random[i]);
	return 0;
}

int uni_viewer_create(
	const struct uni_viewer_cfg *cfg, struct uni_viewer **ret, struct uni_err *err)
{
	struct uni_viewer *v = calloc(1, sizeof(*v));
	int rc;

	if (v == NULL)
		return uni_err_nomem(err);
	v->cfg = *cfg;
	rc = make_token(v->token, err);
	if (rc != 0) {
		free(v);
		return rc;
	}
	*ret = v;
	return 0;
}

static void data_put(void *arg)
{
	struct data *d = arg;

	if (d == NULL || --d->refs != 0)
		return;
	d->release(d->held);
	free(d);
}

void uni_viewer_destroy(struct uni_viewer *v)
{
	if (v == NULL)
		return;
	data_put(v->data);
	free(v);
}

const char *uni_viewer_token(const struct uni_viewer *v)
{
	return v->token;
}

int uni_viewer_set_data(struct uni_viewer *v, const void *bytes, size_t len,
	void (*release)(void *held), void *held)
{
	struct data *d = malloc(sizeof(*d));

	if (d == NULL)
		return -UNI_ENOMEM;
	*d = (struct data){ bytes, len, release, held, 1, ++v->rev };
	data_put(v->data);
	v->data = d;
	v->change++;
	v->news = true;
	return 0;
}

/* Only what a viewer would show is news; the elapsed time is not. */
void uni_viewer_set_state(struct uni_viewer *v, const struct uni_viewer_state *state)
{
	const struct uni_viewer_state *old = &v->state;
	bool same = old->what == state->what && old->reading == state->reading &&
		    memcmp(old->can, state->can, sizeof(old->can)) == 0 &&
		    strcmp(old->target, state->target) == 0 && strcmp(old->said, state->said) == 0;

	v->state = *state;
	if (same)
		return;
	v->change++;
	v->news = true;
}

bool uni_viewer_is_watched(const struct uni_viewer *v)
{
	return v->streams != 0;
}

bool uni_viewer_tick(struct uni_viewer *v, uint64_t now_ns)
{
	bool news = v->news;

	v->news = false;
	if (now_ns - v->alive_ns < ALIVE_NS)
		return news;
	v->alive_ns = now_ns;
	v->beat++;
	return true;
}

static void put_state(const struct uni_viewer *v, struct uni_strbuf *b)
{
	const struct uni_viewer_state *s = &v->state;
	struct uni_sink *out;
	struct uni_json j;

	if (uni_sink_open_strbuf(b, &out) != 0)
		return;
	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(u64, &j, "rev", v->rev);
	uni_json_kv(str, &j, "recording", names[s->what]);
	uni_json_kv(bool, &j, "reading", s->reading);
	uni_json_kv(u64, &j, "since_ms", s->since_ms);
	uni_json_key(&j, "can");
	uni_json_array(&j);
	for (unsigned i = UNI_VIEWER_NOTHING + 1; i < UNI_VIEWER_WHATS; i++) {
		if (s->can[i])
			uni_json_str(&j, names[i]);
	}
	uni_json_array_end(&j);
	uni_json_kv(str, &j, "target", s->target);
	uni_json_kv(str, &j, "said", s->said);
	uni_json_object_end(&j);
	(void)uni_sink_close(out, NULL);
}

static long read_events(void *reader, char *buf, size_t max)
{
	struct stream *s = reader;
	size_t n;

	if (s->at == s->text.len && s->change == s->v->change && s->beat == s->v->beat)
		return UNI_HTTPD_WAIT;
	if (s->at == s->text.len) {
		uni_strbuf_reset(&s->text);
		s->at = 0;
		if (s->change != s->v->change) {
			uni_strbuf_adds(&s->text, "data: ");
			put_state(s->v, &s->text);
			uni_strbuf_adds(&s->text, "\n\n");
		} else {
			uni_strbuf_adds(&s->text, ":\n\n");
		}
		s->change = s->v->change;
		s->beat = s->v->beat;
	}
	if (uni_strbuf_failed(&s->text))
		return UNI_HTTPD_ERROR;
	n = uni_min(max, s->text.len - s->at);
	memcpy(buf, s->text.s + s->at, n);
	s->at += n;
	return (long)n;
}

static void close_events(void *reader)
{
	struct stream *s = reader;

	s->v->streams--;
	uni_strbuf_deinit(&s->text);
	free(s);
}

static void on_events(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	struct stream *s = v->streams < v->cfg.max_streams ? calloc(1, sizeof(*s)) : NULL;

	if (s == NULL) {
		uni_httpd_refuse(ret, 503, "too many watch already");
		return;
	}
	s->v = v;
	s->change = UINT64_MAX;
	s->beat = v->beat;
	uni_strbuf_init(&s->text);
	v->streams++;
	ret->type = "text/event-stream";
	ret->read = read_events;
	ret->close = close_events;
	ret->reader = s;
}

static void on_page(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	ret->type = "text/html; charset=utf-8";
	ret->policy = v->cfg.policy;
	uni_strbuf_adds(&ret->body, v->cfg.page);
}

static void on_data(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	struct data *d = v->data;

	/* The page asks before it knows whether there are data: this is no error. */
	if (d == NULL) {
		ret->status = 204;
		return;
	}
	(void)snprintf(ret->etag, sizeof(ret->etag), "\"%" PRIu64 "\"", d->rev);
	ret->type = "application/octet-stream";
	if (q->if_none_match != NULL && strcmp(q->if_none_match, ret->etag) == 0) {
		ret->status = 304;
		return;
	}
	d->refs++;
	ret->bytes = d->bytes;
	ret->nr_bytes = d->len;
	ret->release = data_put;
	ret->held = d;
}

static void on_state(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	ret->type = "application/json";
	put_state(v, &ret->body);
}

static void part_done(const struct uni_viewer *v, int rc, struct uni_httpd_reply *ret)
{
	ret->type = "application/octet-stream";
	if (rc == -UNI_ENOENT)
		uni_httpd_refuse(ret, 404, "these data have no parts");
	else if (rc != 0 || uni_strbuf_failed(&ret->body))
		uni_httpd_refuse(ret, 503, "out of memory");
	else
		(void)snprintf(ret->etag, sizeof(ret->etag), "\"%" PRIu64 "\"", v->data->rev);
}

static void on_rows(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	struct uni_viewer_rows rows;

	if (!uni_viewer_parse_rows(rest, &rows))
		uni_httpd_refuse(ret, 400, "rows/BEGIN/END/PIXELS/FIRST/NUMBER");
	else if (v->data == NULL || v->cfg.ops->rows == NULL)
		part_done(v, -UNI_ENOENT, ret);
	else
		part_done(v, v->cfg.ops->rows(v->data->held, &rows, &ret->body), ret);
}

static void on_sums(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	struct uni_viewer_sums sums;

	if (!uni_viewer_parse_sums(rest, &sums))
		uni_httpd_refuse(
			ret, 400, "sums/BEGIN/END/THREAD/CPU, each of these a number or all");
	else if (v->data == NULL || v->cfg.ops->sums == NULL)
		part_done(v, -UNI_ENOENT, ret);
	else
		part_done(v, v->cfg.ops->sums(v->data->held, &sums, &ret->body), ret);
}

static void reply_ordered(int rc, const struct uni_err *err, struct uni_httpd_reply *ret)
{
	if (rc != 0)
		uni_httpd_refuse(ret, rc == -UNI_EBUSY ? 409 : 500, err->msg);
	else
		ret->status = 204;
}

static void on_record(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	struct uni_err err = { 0 };

	for (unsigned i = UNI_VIEWER_NOTHING + 1; i < UNI_VIEWER_WHATS; i++) {
		if (strcmp(rest, names[i]) == 0 && v->state.can[i]) {
			reply_ordered(v->cfg.ops->record(v->cfg.ctx, i, &err), &err, ret);
			return;
		}
	}
	uni_httpd_refuse(ret, 404, "that cannot be recorded here");
}

static void on_stop(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
	struct uni_httpd_reply *ret)
{
	struct uni_err err = { 0 };

	if (v->cfg.ops->stop == NULL)
		uni_httpd_refuse(ret, 404, "nothing can be recorded here");
	else
		reply_ordered(v->cfg.ops->stop(v->cfg.ctx, &err), &err, ret);
}

/* All paths. A path that ends in '/' is followed by arguments; the others are complete. */
static const struct {
	const char *path;
	bool post;
	void (*on)(struct uni_viewer *v, const char *rest, const struct uni_httpd_request *q,
		struct uni_httpd_reply *ret);
} routes[] = {
	{ "", false, on_page },
	{ "data", false, on_data },
	{ "state", false, on_state },
	{ "events", false, on_events },
	{ "rows/", false, on_rows },
	{ "sums/", false, on_sums },
	{ "record/", true, on_record },
	{ "stop", true, on_stop },
};

static void route_request(struct uni_viewer *v, size_t i, const char *rest,
	const struct uni_httpd_request *q, struct uni_httpd_reply *ret)
{
	bool get = strcmp(q->method, "GET") == 0, post = strcmp(q->method, "POST") == 0;

	ret->allow = routes[i].post ? "POST" : "GET";
	if (routes[i].post ? !post : !get)
		uni_httpd_refuse(ret, 405, routes[i].post ? "POST it" : "GET it");
	else if (q->too_long || q->len != 0)
		uni_httpd_refuse(ret, 413, "there is nothing to be sent");
	else
		routes[i].on(v, rest, q, ret);
}

/*
 * The path after the token; NULL: not our token. The comparison takes the same time in all cases.
 */
static const char *behind_token(const struct uni_viewer *v, const char *path)
{
	const size_t len = UNI_VIEWER_TOKEN - 1;
	unsigned char differ = 0;

	if (strlen(path) < len + 2 || path[0] != '/' || path[len + 1] != '/')
		return NULL;
	for (size_t i = 0; i < len; i++)
		differ |= (unsigned char)(path[1 + i] ^ v->token[i]);
	return differ == 0 ? path + len + 2 : NULL;
}

void uni_viewer_request(void *arg, const struct uni_httpd_request *q, struct uni_httpd_reply *ret)
{
	struct uni_viewer *v = arg;
	const char *why = uni_serve_refuses_page(q->host, q->origin, q->fetch_site, q->port);
	const char *path = behind_token(v, q->path);

	if (why != NULL) {
		uni_httpd_refuse(ret, 403, why);
		return;
	}
	/* A browser requests it by itself. */
	if (strcmp(q->path, "/favicon.ico") == 0) {
		ret->status = 204;
		return;
	}
	for (size_t i = 0; path != NULL && i < uni_array_len(routes); i++) {
		size_t len = strlen(routes[i].path);
		bool goes_on = len != 0 && routes[i].path[len - 1] == '/';

		if (goes_on ? strncmp(path, routes[i].path, len) == 0
			    : strcmp(path, routes[i].path) == 0) {
			route_request(v, i, path + len, q, ret);
			return;
		}
	}
	uni_httpd_refuse(ret, 404, "there is no such thing");
}
