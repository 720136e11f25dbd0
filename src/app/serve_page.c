/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thread answers requests, and does nothing that takes long. The recording is a process of its
 * own (serve_child.c). A second thread (serve_build.c) makes the page's data from the files of that
 * process, so that neither waits for a client.
 */
#include "app/serve_page.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/privilege.h"
#include "base/text.h"
#include "app/record.h"
#include "app/scratch.h"
#include "app/serve_build.h"
#include "app/serve_child.h"
#include "app/signals.h"
#include "app/summary.h"
#include "app/term.h"
#include "page/page.h"
#include "page/store.h"
#include "serve/viewer.h"

#define CONNECTIONS_MAX 512
#define STREAMS_MAX	64
#define LOOK_MS		100
#define FILE_MAX	((size_t)4 << 30)
/* While it grows, data are made anew no more often, and take no more of a CPU than a tenth. */
#define AGAIN_NS   UNI_NSEC_PER_SEC
#define AGAIN_PART 9

struct serve {
	const struct uni_serve_page_args *args;
	struct uni_httpd *httpd;
	struct uni_viewer *viewer;
	struct uni_page_builder *builder;
	struct uni_viewer_state state;
	struct uni_input in; /* of a file */
	struct uni_scratch scratch;
	struct uni_serve_jobs jobs;
	struct uni_serve_child child;
	struct uni_strbuf page, policy;
	char *path; /* of the session that is recorded, or was last */
	unsigned number;
	uint64_t begin_ns;	 /* of the recording */
	uint64_t next_ns;	 /* when data may be made again */
	bool stale;		 /* a last look is due */
	bool never;		 /* the recording that was to begin at the start never began */
	bool looked;		 /* the recording had ended when the last look began */
	struct uni_built *built; /* the newest; the viewer's */
};

static int start_recording(void *ctx, enum uni_viewer_what what, struct uni_err *err)
{
	struct serve *s = ctx;
	char *path;
	int rc;

	if (s->child.runs)
		return uni_err_set(err, UNI_EBUSY, "it is being recorded already");
	path = uni_serve_path(&s->jobs, ++s->number);
	if (path == NULL)
		return uni_err_nomem(err);
	rc = uni_serve_child_start(&s->child,
		what == UNI_VIEWER_CALLS ? UNI_SERVE_CALLS : UNI_SERVE_SAMPLES, s->number, err);
	if (rc != 0) {
		free(path);
		return rc;
	}
	free(s->path);
	s->path = path;
	s->state.what = what;
	s->state.said[0] = '\0';
	s->begin_ns = uni_now_ns();
	s->next_ns = 0;
	s->looked = false;
	return 0;
}

static int stop_recording(void *ctx, struct uni_err *err)
{
	struct serve *s = ctx;

	uni_serve_child_ask_to_end(&s->child);
	return 0;
}

static int reply_rows(void *held, const struct uni_viewer_rows *q, struct uni_strbuf *ret)
{
	const struct uni_built *built = held;

	return built->store == NULL ? -UNI_ENOENT
				    : uni_page_store_reply_rows(built->store, q->t0, q->t1, q->px,
					      q->first, q->nr, ret);
}

static int reply_sums(void *held, const struct uni_viewer_sums *q, struct uni_strbuf *ret)
{
	const struct uni_built *built = held;

	return built->store == NULL ? -UNI_ENOENT
				    : uni_page_store_reply_sums(built->store, q->t0, q->t1,
					      (struct uni_page_who){ q->thread, q->cpu }, ret);
}

static void begin_build(struct serve *s)
{
	struct uni_builder_job job = { .args = s->args->source, .whole = s->args->whole };

	if (s->args->target != NULL) {
		job.args.path = s->path;
		job.title = s->state.target;
		/* A recording that still goes on may get its missing data later. */
		job.hush = job.grows = s->child.runs;
	} else {
		job.args.in = &s->in;
	}
	s->looked = !s->child.runs;
	uni_page_builder_begin(s->builder, &job);
}

static bool is_same(const struct uni_built *a, const struct uni_built *b)
{
	return a != NULL && a->data.len == b->data.len &&
	       memcmp(a->data.s, b->data.s, a->data.len) == 0;
}

/* 1, 0, or why it failed. */
static int take_build(struct serve *s, struct uni_err *err)
{
	struct uni_err why = { 0 };
	struct uni_built *built = NULL;
	int rc = uni_page_builder_take(s->builder, &built, &why);

	if (rc == 0)
		return 0;
	s->next_ns = uni_now_ns() + uni_max(AGAIN_NS, rc > 0 ? AGAIN_PART * built->took_ns : 0);
	if (rc < 0 && s->args->target == NULL)
		return uni_err_set(err, (enum uni_errcode)why.code, "%s", why.msg);
	/* As long as it is recorded there may be nothing yet that can be read. */
	if (rc < 0 && s->looked && s->state.said[0] == '\0')
		(void)snprintf(s->state.said, sizeof(s->state.said), "%s", why.msg);
	if (rc < 0)
		return 0;
	if (is_same(s->built, built)) {
		uni_built_free(built);
		return 0;
	}
	if (uni_viewer_set_data(s->viewer, built->data.s, built->data.len, uni_built_free, built) !=
		0) {
		uni_built_free(built);
		return uni_err_nomem(err);
	}
	s->built = built;
	return 0;
}

/* Why, if the recorder's last words are that. */
static void say_ended(struct serve *s)
{
	const char *why = s->child.said, *kept = strstr(why, UNI_SUMMARY_KEPT);

	if (kept != NULL && strcmp(kept, UNI_SUMMARY_KEPT) == 0)
		(void)snprintf(
			s->state.said, sizeof(s->state.said), "%.*s", (int)(kept - why), why);
	else
		(void)snprintf(s->state.said, sizeof(s->state.said), "the guest has ended");
}

static void look_at_child(struct serve *s)
{
	bool asked = s->child.asked;
	enum uni_serve_child_end end = uni_serve_child_look(&s->child);

	if (end == UNI_CHILD_RUNS)
		return;
	s->state.what = UNI_VIEWER_NOTHING;
	/* If the user stops it at once, the earlier data stays, and the name is free. */
	if (end == UNI_CHILD_NEVER_BEGAN) {
		s->number--;
		return;
	}
	s->stale = true;
	s->next_ns = 0;
	if (end == UNI_CHILD_FAILED)
		(void)snprintf(s->state.said, sizeof(s->state.said), "%s",
			s->child.said[0] != '\0' ? s->child.said : "the recording failed");
	else if (!asked)
		say_ended(s);
	s->never = end == UNI_CHILD_FAILED && s->number == 1 && !s->args->idle && s->built == NULL;
	if (s->never)
		return;
	if (s->state.said[0] != '\0')
		uni_note("%s", s->state.said);
	else if (s->args->output != NULL)
		uni_note("wrote %s", s->path);
}

/* Without viewers, only the final recording becomes data. */
static void look_at_data(struct serve *s)
{
	bool grows = s->child.runs && uni_viewer_is_watched(s->viewer);

	if ((!grows && !s->stale) || uni_now_ns() < s->next_ns ||
		uni_page_builder_is_busy(s->builder))
		return;
	if (!s->child.runs)
		s->stale = false;
	begin_build(s);
}

static int serve_page_once(struct serve *s, struct uni_err *err)
{
	struct pollfd fd[] = { { .fd = uni_httpd_fd(s->httpd), .events = POLLIN },
		{ .fd = uni_page_builder_fd(s->builder), .events = POLLIN } };
	uint64_t now_ns;
	int rc;

	if (poll(fd, uni_array_len(fd), uni_httpd_timeout(s->httpd, LOOK_MS)) < 0 && errno != EINTR)
		return uni_err_set(err, UNI_EIO, "poll: %s", strerror(errno));
	look_at_child(s);
	if (s->never)
		return uni_err_set(err, UNI_EIO, "%s", s->state.said);
	rc = take_build(s, err);
	look_at_data(s);
	now_ns = uni_now_ns();
	s->state.reading =
		!s->child.runs && (s->stale || (s->looked && uni_page_builder_is_busy(s->builder)));
	s->state.since_ms = s->child.runs ? (now_ns - s->begin_ns) / UNI_NSEC_PER_MSEC : 0;
	uni_viewer_set_state(s->viewer, &s->state);
	if (uni_viewer_tick(s->viewer, now_ns))
		uni_httpd_wake(s->httpd);
	return rc < 0 ? rc : uni_httpd_run(s->httpd, err);
}

static int serve_page_loop(struct serve *s, struct uni_err *err)
{
	const atomic_bool *ended = uni_signals_stop();
	int rc = 0;

	if (s->args->target == NULL)
		begin_build(s);
	else if (!s->args->idle)
		rc = start_recording(s, UNI_VIEWER_SAMPLES, err);
	if (rc == 0)
		uni_note("serving http://127.0.0.1:%u/%s/ (Ctrl-C ends it)",
			uni_httpd_port(s->httpd), uni_viewer_token(s->viewer));
	while (rc == 0 && !atomic_load(ended))
		rc = serve_page_once(s, err);
	if (!s->child.runs)
		return rc;
	if (uni_serve_child_end(&s->child) == UNI_CHILD_GOOD && s->args->output != NULL)
		uni_note("wrote %s: try `uniscope report %s`", s->path, s->path);
	return rc;
}

/* The same for every viewer. */
static int make_page(struct serve *s, struct uni_err *err)
{
	struct uni_sink *page, *policy;
	int rc = uni_sink_open_strbuf(&s->page, &page);

	if (rc != 0)
		return uni_err_nomem(err);
	uni_page_write_shell(page);
	rc = uni_sink_close(page, err);
	if (rc == 0 && uni_sink_open_strbuf(&s->policy, &policy) != 0)
		rc = uni_err_nomem(err);
	if (rc != 0)
		return rc;
	uni_page_put_policy(policy, true);
	uni_sink_puts(policy, "; frame-ancestors 'none'");
	return uni_sink_close(policy, err);
}

/* Before there are threads: folders that go away have a keeper each. */
static int open_starter(struct serve *s, struct uni_err *err)
{
	int rc = s->args->output == NULL ? uni_scratch_make(&s->scratch, err) : 0;

	s->jobs = (struct uni_serve_jobs){ .argv = { s->args->record, s->args->trace },
		.output = s->args->output,
		.folder = s->scratch.path };
	return rc == 0 ? uni_serve_child_open(&s->child, &s->jobs, err) : rc;
}

/* The socket is open by now: a process without rights cannot make any. */
static int drop_rights(struct serve *s, struct uni_err *err)
{
	int rc = uni_privilege_drop(err);

	if (rc == 0 && s->args->target == NULL)
		rc = uni_input_open(s->args->source.path, FILE_MAX, &s->in, err);
	return rc == 0 && s->args->target == NULL
		       ? uni_source_check_input(&s->args->source, &s->in, err)
		       : rc;
}

static int open_all(struct serve *s, struct uni_err *err)
{
	static const struct uni_viewer_ops live = { start_recording, stop_recording, reply_rows,
		reply_sums };
	static const struct uni_viewer_ops file = { NULL, NULL, reply_rows, reply_sums };
	struct uni_viewer_cfg cfg = {
		.ops = s->args->target != NULL ? &live : &file, .ctx = s, .max_streams = STREAMS_MAX
	};
	struct uni_httpd_cfg httpd = { .port = s->args->port,
		.connections_max = CONNECTIONS_MAX,
		.request = uni_viewer_request };
	int rc = 0;

	if (s->args->target != NULL)
		rc = open_starter(s, err);
	if (rc == 0)
		rc = make_page(s, err);
	cfg.page = s->page.s;
	cfg.policy = s->policy.s;
	if (rc == 0)
		rc = uni_viewer_create(&cfg, &s->viewer, err);
	httpd.ctx = s->viewer;
	if (rc == 0)
		rc = uni_httpd_create(&httpd, &s->httpd, err);
	if (rc == 0)
		rc = drop_rights(s, err);
	return rc == 0 ? uni_page_builder_start(&s->builder, err) : rc;
}

static void close_all(struct serve *s)
{
	uni_page_builder_stop(s->builder);
	uni_httpd_destroy(s->httpd);
	uni_viewer_destroy(s->viewer);
	uni_input_close(&s->in);
	uni_serve_child_close(&s->child);
	uni_scratch_remove(&s->scratch);
	uni_strbuf_deinit(&s->page);
	uni_strbuf_deinit(&s->policy);
	free(s->path);
}

int uni_serve_page(const struct uni_serve_page_args *args, struct uni_err *err)
{
	struct serve s = { .args = args };
	struct uni_signals signals;
	int rc;

	if (args->target != NULL) {
		s.state.can[UNI_VIEWER_SAMPLES] = s.state.can[UNI_VIEWER_CALLS] = true;
		(void)uni_text_clean(
			s.state.target, sizeof(s.state.target), args->target, strlen(args->target));
	}
	uni_strbuf_init(&s.page);
	uni_strbuf_init(&s.policy);
	uni_signals_begin(&signals);
	rc = open_all(&s, err);
	if (rc == 0)
		rc = serve_page_loop(&s, err);
	close_all(&s);
	uni_signals_end(&signals);
	return rc;
}
