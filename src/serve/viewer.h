/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page that shows a recording while it grows, for a web browser. It has a fixed table of paths
 * below a token that nobody can guess (docs/formats/live.md). No sockets here (serve/httpd.h has
 * them), one thread, and no long work: the data are made elsewhere.
 */
#ifndef UNI_SERVE_VIEWER_H
#define UNI_SERVE_VIEWER_H

#include <stdbool.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "serve/httpd.h"

#define UNI_VIEWER_TOKEN 33 /* with the NUL */

enum uni_viewer_what { UNI_VIEWER_NOTHING, UNI_VIEWER_SAMPLES, UNI_VIEWER_CALLS, UNI_VIEWER_WHATS };

/* A request for rows of intervals: how t0 <= t < t1 looks on so many pixels. */
struct uni_viewer_rows {
	uint64_t t0, t1; /* ns since the begin of the data; t0 < t1 */
	uint32_t px;	 /* 1 to UNI_VIEWER_PX_MAX */
	uint32_t first, nr;
};
/* A request for sums by node of a call tree. */
struct uni_viewer_sums {
	uint64_t t0, t1;     /* both 0: the whole time */
	int64_t thread, cpu; /* -1: all */
};

#define UNI_VIEWER_PX_MAX   8192
#define UNI_VIEWER_ROWS_MAX 512

struct uni_viewer_ops {
	/* Both NULL: nothing can be recorded. -UNI_EBUSY: something else is being recorded. */
	int (*record)(void *ctx, enum uni_viewer_what what, struct uni_err *err);
	int (*stop)(void *ctx, struct uni_err *err);
	/*
	 * Parts of data that are too large to be sent whole; each call does a bounded amount of
	 * work. held is the one of uni_viewer_set_data(). -UNI_ENOENT: there are no such parts.
	 * Both NULL: never.
	 */
	int (*rows)(void *held, const struct uni_viewer_rows *q, struct uni_strbuf *ret);
	int (*sums)(void *held, const struct uni_viewer_sums *q, struct uni_strbuf *ret);
};

struct uni_viewer_cfg {
	const struct uni_viewer_ops *ops;
	void *ctx;
	const char *page, *policy; /* the HTML and its content security policy; borrowed */
	unsigned max_streams;	   /* streams that report changes */
};

/* The state that the page is told, besides the arrival of new data. */
struct uni_viewer_state {
	enum uni_viewer_what what; /* the current recording */
	bool can[UNI_VIEWER_WHATS];
	bool reading;	   /* the recording has ended, but the data do not have all of it yet */
	uint64_t since_ms; /* time since its start */
	char target[256];  /* clean, as all texts here; "": a file */
	char said[640];	   /* the error; "": none */
};

struct uni_viewer; /* opaque */

int uni_viewer_create(
	const struct uni_viewer_cfg *cfg, struct uni_viewer **ret, struct uni_err *err);
/* Call it after all its connections have ended. NULL-safe. */
void uni_viewer_destroy(struct uni_viewer *v);
const char *uni_viewer_token(const struct uni_viewer *v);
/* The bytes are gzip, as docs/formats/page.md; release(held) is called after the last reader. */
int uni_viewer_set_data(struct uni_viewer *v, const void *bytes, size_t len,
	void (*release)(void *held), void *held);
void uni_viewer_set_state(struct uni_viewer *v, const struct uni_viewer_state *state);
/* Does any stream report changes? */
bool uni_viewer_is_watched(const struct uni_viewer *v);
/*
 * True: streams have news, so call uni_httpd_wake(). Now and then they send a sign of life, so that
 * a client that has gone is noticed.
 */
bool uni_viewer_tick(struct uni_viewer *v, uint64_t now_ns);

/* For uni_httpd_cfg.request. */
void uni_viewer_request(void *v, const struct uni_httpd_request *q, struct uni_httpd_reply *ret);

/* "12/345/1600/0/64": five numbers, each within its limits. */
bool uni_viewer_parse_rows(const char *text, struct uni_viewer_rows *ret);
/* "0/0/all/all", "12/345/3/0" */
bool uni_viewer_parse_sums(const char *text, struct uni_viewer_sums *ret);

#endif
