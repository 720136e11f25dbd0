/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request for the page that is served: method, path behind the token, Host and Origin, one line
 * each. Whatever they are, it is answered with one of a few statuses, and a query gets through only
 * with numbers in their limits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/viewer.h"
#include "told.h"

#define LINES 4
#define PORT  9090

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int record(void *ctx, enum uni_viewer_what what, struct uni_err *err)
{
	if (what != UNI_VIEWER_SAMPLES)
		abort();
	return 0;
}

static int stop(void *ctx, struct uni_err *err)
{
	return 0;
}

static int rows(void *held, const struct uni_viewer_rows *q, struct uni_strbuf *ret)
{
	if (q->t0 >= q->t1 || q->px == 0 || q->px > UNI_VIEWER_PX_MAX ||
		q->nr > UNI_VIEWER_ROWS_MAX)
		abort();
	told_u64(q->t0);
	told_u64(q->t1);
	told_u64(q->px);
	told_u64(q->nr);
	return 0;
}

static int sums(void *held, const struct uni_viewer_sums *q, struct uni_strbuf *ret)
{
	if ((q->t0 >= q->t1 && (q->t0 != 0 || q->t1 != 0)) || q->thread < -1 ||
		q->thread > UINT32_MAX)
		abort();
	told_u64(q->t0);
	told_u64(q->t1);
	told_u64((uint64_t)q->thread);
	return -UNI_ENOENT;
}

static void release(void *held)
{
}

static const struct uni_viewer_ops ops = { record, stop, rows, sums };

/* Lines of the input, each a string; what is missing is empty. */
static void split(char *text, char *line[LINES])
{
	for (unsigned i = 0; i < LINES; i++) {
		char *end = strchr(text, '\n');

		line[i] = text;
		text = end != NULL ? end + 1 : text + strlen(text);
		if (end != NULL)
			*end = '\0';
	}
}

static void ask(struct uni_viewer *v, char *line[LINES])
{
	struct uni_httpd_reply r = { .status = 200 };
	struct uni_strbuf path;
	struct uni_httpd_request q = { .method = line[0],
		.host = line[2][0] != '\0' ? line[2] : "localhost:9090",
		.origin = line[3][0] != '\0' ? line[3] : NULL,
		.if_none_match = "\"1\"",
		.port = PORT };
	char buf[16];

	uni_strbuf_init(&path);
	uni_strbuf_init(&r.body);
	/* A path that begins with '/' has no token of ours. */
	if (line[1][0] != '/')
		uni_strbuf_addf(&path, "/%s/", uni_viewer_token(v));
	uni_strbuf_adds(&path, line[1]);
	q.path = path.s;
	uni_viewer_request(v, &q, &r);
	if (line[1][0] == '/' && r.status < 300 && strcmp(q.path, "/favicon.ico") != 0)
		abort();
	if (r.status < 200 || r.status > 503)
		abort();
	told_u64((uint64_t)r.status);
	if (r.bytes != NULL)
		r.release(r.held);
	if (r.read != NULL) {
		(void)r.read(r.reader, buf, sizeof(buf));
		r.close(r.reader);
	}
	uni_strbuf_deinit(&r.body);
	uni_strbuf_deinit(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct uni_viewer *v;
	const struct uni_viewer_cfg cfg = {
		.ops = &ops, .page = "", .policy = "", .max_streams = 1
	};
	const struct uni_viewer_state state = { .can = { [UNI_VIEWER_SAMPLES] = true } };
	char *text, *line[LINES];

	if (v == NULL && (uni_viewer_create(&cfg, &v, NULL) != 0 ||
				 uni_viewer_set_data(v, "data", 4, release, NULL) != 0))
		abort();
	uni_viewer_set_state(v, &state);
	text = malloc(size + 1);
	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	split(text, line);
	ask(v, line);
	free(text);
	return 0;
}
