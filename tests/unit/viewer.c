/* SPDX-License-Identifier: BSD-2-Clause */
/* The page that is served, without sockets: who gets what, what streams are told, who is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "serve/guard.h"
#include "serve/viewer.h"

struct maker {
	enum uni_viewer_what recorded;
	unsigned stopped, released;
	int fails;
	struct uni_viewer_rows rows;
	struct uni_viewer_sums sums;
};

static int record(void *ctx, enum uni_viewer_what what, struct uni_err *err)
{
	struct maker *m = ctx;

	if (m->fails != 0)
		return uni_err_set(err, (enum uni_errcode)m->fails, "it does not want to");
	m->recorded = what;
	return 0;
}

static int stop(void *ctx, struct uni_err *err)
{
	((struct maker *)ctx)->stopped++;
	return 0;
}

static int rows(void *held, const struct uni_viewer_rows *q, struct uni_strbuf *ret)
{
	((struct maker *)held)->rows = *q;
	uni_strbuf_adds(ret, "rows");
	return 0;
}

static int sums(void *held, const struct uni_viewer_sums *q, struct uni_strbuf *ret)
{
	((struct maker *)held)->sums = *q;
	return -((struct maker *)held)->fails;
}

static void release(void *held)
{
	((struct maker *)held)->released++;
}

static const struct uni_viewer_ops ops = { record, stop, rows, sums };

static struct uni_viewer *make(struct maker *m, const struct uni_viewer_ops *with)
{
	const struct uni_viewer_cfg cfg = {
		.ops = with, .ctx = m, .page = "<page>", .policy = "policy", .max_streams = 2
	};
	struct uni_viewer *v = NULL;

	*m = (struct maker){ 0 };
	assert_int_equal(uni_viewer_create(&cfg, &v, NULL), 0);
	return v;
}

/* Whatever it holds is given back, but for a stream. */
static struct uni_httpd_reply ask(struct uni_viewer *v, const char *method, const char *path)
{
	struct uni_httpd_reply r = { .status = 200 };
	char whole[256];
	struct uni_httpd_request q = {
		.method = method, .path = whole, .host = "localhost:9090", .port = 9090, .body = ""
	};

	(void)snprintf(whole, sizeof(whole), "/%s/%s", uni_viewer_token(v), path);
	uni_strbuf_init(&r.body);
	uni_viewer_request(v, &q, &r);
	return r;
}

static void answers(struct uni_viewer *v, const char *method, const char *path, unsigned status,
	const char *body)
{
	struct uni_httpd_reply r = ask(v, method, path);

	assert_int_equal(r.status, status);
	if (body != NULL)
		assert_string_equal(r.body.s, body);
	if (r.bytes != NULL)
		r.release(r.held);
	if (r.read != NULL)
		r.close(r.reader);
	uni_strbuf_deinit(&r.body);
}

static void routes(void **state)
{
	static const char *const nothing[] = { "page", "data/", "data/x", "state/", "events/",
		"rows", "sums", "record", "stop/", "//", ".", "..", "../data", "DATA", "%64ata" };
	struct maker m;
	struct uni_viewer *v = make(&m, &ops);

	answers(v, "GET", "", 200, "<page>");
	answers(v, "GET", "data", 204, "");
	for (size_t i = 0; i < uni_array_len(nothing); i++)
		answers(v, "GET", nothing[i], 404, NULL);
	answers(v, "HEAD", "", 405, NULL);
	answers(v, "POST", "data", 405, NULL);
	answers(v, "GET", "stop", 405, NULL);
	answers(v, "GET", "record/samples", 405, NULL);
	assert_int_equal(m.stopped, 0);
	uni_viewer_destroy(v);
}

static void who(void **state)
{
	struct maker m;
	struct uni_viewer *v = make(&m, &ops);
	char good[64], bad[64], longer[64];
	const struct {
		const char *path, *host, *origin, *site;
		unsigned status;
	} asks[] = {
		{ good, "localhost:9090", NULL, NULL, 200 },
		{ good, "127.0.0.1:9090", "http://127.0.0.1:9090", "same-origin", 200 },
		{ good, "127.0.0.1:9090", "http://localhost:9090", "same-origin", 403 },
		{ good, "localhost:9090", "http://localhost:9091", NULL, 403 },
		{ good, "localhost:9090", "null", NULL, 403 },
		{ good, "localhost:9090", "https://localhost:9090", NULL, 403 },
		{ good, "localhost:9090", NULL, "cross-site", 403 },
		{ good, "example.com", NULL, NULL, 403 },
		{ good, NULL, NULL, NULL, 403 },
		{ bad, "localhost:9090", NULL, NULL, 404 },
		{ longer, "localhost:9090", NULL, NULL, 404 },
		{ "/", "localhost:9090", NULL, NULL, 404 },
		{ "", "localhost:9090", NULL, NULL, 404 },
		{ "/state", "localhost:9090", NULL, NULL, 404 },
		{ "/favicon.ico", "localhost:9090", NULL, NULL, 204 },
		{ "/favicon.ico", "example.com", NULL, NULL, 403 },
	};

	assert_int_equal(strlen(uni_viewer_token(v)), UNI_VIEWER_TOKEN - 1);
	(void)snprintf(good, sizeof(good), "/%s/state", uni_viewer_token(v));
	(void)snprintf(bad, sizeof(bad), "/%s/state", uni_viewer_token(v));
	bad[UNI_VIEWER_TOKEN - 1] ^= 1;
	(void)snprintf(longer, sizeof(longer), "/%s0/state", uni_viewer_token(v));
	for (size_t i = 0; i < uni_array_len(asks); i++) {
		struct uni_httpd_reply r = { .status = 200 };
		struct uni_httpd_request q = { .method = "GET",
			.path = asks[i].path,
			.host = asks[i].host,
			.origin = asks[i].origin,
			.fetch_site = asks[i].site,
			.port = 9090 };

		uni_strbuf_init(&r.body);
		uni_viewer_request(v, &q, &r);
		assert_int_equal(r.status, asks[i].status);
		uni_strbuf_deinit(&r.body);
	}
	uni_viewer_destroy(v);
}

static void tokens_differ(void **state)
{
	struct maker m;
	struct uni_viewer *a = make(&m, &ops), *b = make(&m, &ops);

	assert_string_not_equal(uni_viewer_token(a), uni_viewer_token(b));
	uni_viewer_destroy(a);
	uni_viewer_destroy(b);
}

/* A thread that reads old data keeps them; then they are released, each once. */
static void data(void **state)
{
	struct maker first, second;
	struct uni_viewer *v = make(&first, &ops);
	struct uni_httpd_reply r;

	assert_int_equal(uni_viewer_set_data(v, "one", 3, release, &first), 0);
	r = ask(v, "GET", "data");
	assert_true(r.status == 200 && r.nr_bytes == 3 && memcmp(r.bytes, "one", 3) == 0);
	assert_string_equal(r.etag, "\"1\"");
	second = (struct maker){ 0 };
	assert_int_equal(uni_viewer_set_data(v, "second", 6, release, &second), 0);
	assert_int_equal(first.released, 0);
	r.release(r.held);
	uni_strbuf_deinit(&r.body);
	assert_int_equal(first.released, 1);
	answers(v, "GET", "rows/1/2/3/4/5", 200, "rows");
	assert_true(second.rows.t0 == 1 && second.rows.t1 == 2 && second.rows.px == 3 &&
		    second.rows.first == 4 && second.rows.nr == 5);
	answers(v, "GET", "sums/0/0/all/all", 200, "");
	assert_true(second.sums.thread == -1 && second.sums.cpu == -1 && second.sums.t1 == 0);
	answers(v, "GET", "sums/7/8/9/2", 200, "");
	assert_true(second.sums.thread == 9 && second.sums.cpu == 2 && second.sums.t0 == 7 &&
		    second.sums.t1 == 8);
	second.fails = UNI_ENOENT;
	answers(v, "GET", "sums/0/0/all/0", 404, NULL);
	second.fails = UNI_ENOMEM;
	answers(v, "GET", "sums/0/0/all/0", 503, NULL);
	uni_viewer_destroy(v);
	assert_int_equal(second.released, 1);
}

static void orders(void **state)
{
	static const struct uni_viewer_ops none = { NULL, NULL, NULL, NULL };
	struct uni_viewer_state s = { .can = { [UNI_VIEWER_SAMPLES] = true } };
	struct maker m;
	struct uni_viewer *v = make(&m, &ops);

	answers(v, "POST", "record/samples", 404, NULL);
	uni_viewer_set_state(v, &s);
	answers(v, "POST", "record/samples", 204, "");
	assert_int_equal(m.recorded, UNI_VIEWER_SAMPLES);
	answers(v, "POST", "record/calls", 404, NULL);
	answers(v, "POST", "record/", 404, NULL);
	m.fails = UNI_EBUSY;
	answers(v, "POST", "record/samples", 409, "it does not want to\n");
	m.fails = UNI_EPERM;
	answers(v, "POST", "record/samples", 500, "it does not want to\n");
	answers(v, "POST", "stop", 204, "");
	assert_int_equal(m.stopped, 1);
	uni_viewer_destroy(v);
	v = make(&m, &none);
	answers(v, "POST", "stop", 404, NULL);
	answers(v, "GET", "rows/1/2/3/4/5", 404, NULL);
	uni_viewer_destroy(v);
}

static void next(struct uni_httpd_reply *r, const char *want)
{
	char buf[512];
	long n = r->read(r->reader, buf, 7), total = 0;

	/* However little is taken at a time. */
	for (; n > 0; n = r->read(r->reader, buf + total, 7))
		total += n;
	buf[total] = '\0';
	assert_int_equal(n, UNI_HTTPD_WAIT);
	assert_string_equal(buf, want);
}

static void events(void **state)
{
	struct uni_viewer_state s = { .what = UNI_VIEWER_CALLS, .target = "<kvm>", .said = "a\nb" };
	struct maker m;
	struct uni_viewer *v = make(&m, &ops);
	struct uni_httpd_reply a = ask(v, "GET", "events"), b = ask(v, "GET", "events");

	assert_true(a.status == 200 && b.status == 200 && uni_viewer_is_watched(v));
	answers(v, "GET", "events", 503, NULL);
	next(&a, "data: "
		 "{\"rev\":0,\"recording\":\"\",\"reading\":false,\"since_ms\":0,\"can\":[],"
		 "\"target\":\"\",\"said\":"
		 "\"\"}\n\n");
	next(&a, "");
	assert_true(uni_viewer_tick(v, 100 * UNI_NSEC_PER_SEC));
	next(&a, ":\n\n");
	assert_false(uni_viewer_tick(v, 101 * UNI_NSEC_PER_SEC));
	assert_int_equal(uni_viewer_set_data(v, "x", 1, release, &m), 0);
	uni_viewer_set_state(v, &s);
	assert_true(uni_viewer_tick(v, 101 * UNI_NSEC_PER_SEC));
	/* One line, whatever the texts hold. */
	next(&a, "data: "
		 "{\"rev\":1,\"recording\":\"calls\",\"reading\":false,\"since_ms\":0,\"can\":[],"
		 "\"target\":"
		 "\"\\u003ckvm>\","
		 "\"said\":\"a\\u000ab\"}\n\n");
	/* How long it has been is no news. */
	s.since_ms = 5000;
	uni_viewer_set_state(v, &s);
	assert_false(uni_viewer_tick(v, 102 * UNI_NSEC_PER_SEC));
	next(&a, "");
	a.close(a.reader);
	uni_strbuf_deinit(&a.body);
	answers(v, "GET", "events", 200, "");
	b.close(b.reader);
	uni_strbuf_deinit(&b.body);
	assert_false(uni_viewer_is_watched(v));
	uni_viewer_destroy(v);
	assert_int_equal(m.released, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes),
		cmocka_unit_test(who),
		cmocka_unit_test(tokens_differ),
		cmocka_unit_test(data),
		cmocka_unit_test(orders),
		cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
