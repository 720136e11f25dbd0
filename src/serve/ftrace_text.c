/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/ftrace_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "trace/calls.h"

struct uni_ftrace_text {
	struct uni_tstore_copy data;
	const struct uni_trace_clock *clock;
	struct uni_trace_input in;
	struct uni_funcs *funcs;
	struct uni_calls *calls;
	struct uni_trace_text *text;
	struct uni_sink *out;
	struct uni_strbuf ready; /* text that was not fetched yet starts at `at` */
	size_t at;
	bool live, done;
};

static const char *thread_name(const void *ctx, uint32_t thread, uint64_t *number_ret)
{
	const struct uni_ftrace_text *p = ctx;

	return uni_calls_thread_name(p->calls, thread, number_ret);
}

static void take_data(struct uni_ftrace_text *p, struct uni_tstore_copy *copy)
{
	uni_tstore_copy_free(&p->data);
	p->data = *copy;
	memset(copy, 0, sizeof(*copy));
	for (unsigned i = 0; p->clock != NULL && i < p->data.nr_cpus; i++)
		p->data.cpu[i].clock = p->clock[i];
	p->in.cpu = p->data.cpu;
}

static int open_all(
	struct uni_ftrace_text *p, const struct uni_ftrace_text_cfg *cfg, struct uni_err *err)
{
	const struct uni_trace_text_opts opts = {
		.kind = cfg->kind, .no_header = cfg->live, .thread_name = thread_name, .ctx = p
	};
	int rc;

	p->funcs = uni_funcs_create(cfg->naming);
	if (p->funcs == NULL || uni_sink_open_strbuf(&p->ready, &p->out) != 0)
		return uni_err_nomem(err);
	rc = uni_calls_open(&p->in, NULL, p->funcs, &p->calls, err);
	if (rc != 0)
		return rc;
	p->text = uni_trace_text_open(p->out, p->funcs, &opts);
	return p->text == NULL ? uni_err_nomem(err) : 0;
}

int uni_ftrace_text_create(const struct uni_ftrace_text_cfg *cfg, struct uni_tstore_copy *copy,
	struct uni_ftrace_text **ret, struct uni_err *err)
{
	struct uni_ftrace_text *p = calloc(1, sizeof(*p));
	int rc;

	if (p == NULL) {
		uni_tstore_copy_free(copy);
		return uni_err_nomem(err);
	}
	uni_strbuf_init(&p->ready);
	p->live = cfg->live;
	p->clock = cfg->clock;
	p->in.info = *cfg->info;
	p->in.live = cfg->live;
	p->in.mode = UNI_TRACE_MODE_GRAPH;
	take_data(p, copy);
	rc = open_all(p, cfg, err);
	if (rc != 0) {
		uni_ftrace_text_destroy(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void uni_ftrace_text_destroy(struct uni_ftrace_text *p)
{
	if (p == NULL)
		return;
	uni_trace_text_close(p->text);
	uni_sink_abort(p->out);
	uni_calls_close(p->calls);
	uni_funcs_destroy(p->funcs);
	uni_strbuf_deinit(&p->ready);
	uni_tstore_copy_free(&p->data);
	free(p);
}

void uni_ftrace_text_more(struct uni_ftrace_text *p, struct uni_tstore_copy *copy)
{
	take_data(p, copy);
	uni_calls_more(p->calls);
	p->done = false;
}

bool uni_ftrace_text_busy(const struct uni_ftrace_text *p)
{
	return !p->done || p->at != p->ready.len;
}

/* Some more text, or the end. */
static int make_more(struct uni_ftrace_text *p)
{
	const struct uni_call_event *e;
	size_t nr;
	int rc = uni_calls_read(p->calls, &e, &nr);

	if (rc == 1)
		rc = uni_trace_text_put(p->text, e, nr) == 0 ? 1 : -UNI_ENOMEM;
	if (rc < 0)
		return rc;
	if (rc == 0) {
		p->done = true;
		if (p->live) {
			uni_trace_text_flush(p->text);
		} else {
			uni_trace_text_close(p->text);
			p->text = NULL;
		}
		uni_sink_flush(p->out);
	}
	return uni_sink_failed(p->out) ? -UNI_ENOMEM : 0;
}

long uni_ftrace_text_read(struct uni_ftrace_text *p, char *buf, size_t len)
{
	size_t n;

	while (p->at == p->ready.len) {
		int rc = 0;

		uni_strbuf_reset(&p->ready);
		p->at = 0;
		if (p->done)
			return 0;
		rc = make_more(p);
		if (rc != 0)
			return rc;
	}
	n = uni_min(len, p->ready.len - p->at);
	memcpy(buf, p->ready.s + p->at, n);
	p->at += n;
	return (long)n;
}
