/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/timeline.h"

#include <stdlib.h>

#include "trace/text.h"

struct uni_trace_timeline {
	struct uni_funcs *funcs;
	struct uni_calls *calls;
	double ns_per_cycle;
};

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	struct uni_trace_timeline *t = ctx;

	return uni_calls_read(t->calls, ret, nr_ret);
}

static const char *func_name(void *ctx, uint32_t func)
{
	struct uni_trace_timeline *t = ctx;

	return uni_funcs_name(t->funcs, func);
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	struct uni_trace_timeline *t = ctx;

	return uni_calls_thread_name(t->calls, thread, number_ret);
}

static const uint64_t *event_words(void *ctx, const struct uni_call_event *e)
{
	struct uni_trace_timeline *t = ctx;

	return uni_calls_words(t->calls, e);
}

int uni_trace_timeline_open(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	const struct uni_funcs_naming *naming, struct uni_trace_timeline **ret, struct uni_err *err)
{
	struct uni_trace_timeline *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return uni_err_nomem(err);
	t->ns_per_cycle = (double)uni_trace_rate(in).mult / 4294967296.0;
	t->funcs = uni_funcs_create(naming);
	if (t->funcs == NULL)
		rc = uni_err_nomem(err);
	else
		rc = uni_calls_open(in, filter, t->funcs, &t->calls, err);
	if (rc != 0) {
		uni_trace_timeline_close(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void uni_trace_timeline_close(struct uni_trace_timeline *t)
{
	if (t == NULL)
		return;
	uni_calls_close(t->calls);
	uni_funcs_destroy(t->funcs);
	free(t);
}

static const char *text_thread(const void *ctx, uint32_t thread, uint64_t *number_ret)
{
	const struct uni_trace_timeline *t = ctx;

	return uni_calls_thread_name(t->calls, thread, number_ret);
}

static int write_text(void *ctx, bool function, struct uni_sink *out, struct uni_err *err)
{
	struct uni_trace_timeline *t = ctx;
	const struct uni_trace_text_opts opts = {
		.kind = function ? UNI_TRACE_TEXT_FUNCTION : UNI_TRACE_TEXT_GRAPH,
		.thread_name = text_thread,
		.ctx = t,
	};
	struct uni_trace_text *text = uni_trace_text_open(out, t->funcs, &opts);
	const struct uni_call_event *e;
	int rc = text == NULL ? -UNI_ENOMEM : 1;
	size_t nr;

	while (rc == 1 && (rc = uni_calls_read(t->calls, &e, &nr)) == 1)
		rc = uni_trace_text_put(text, e, nr) == 0 ? 1 : -UNI_ENOMEM;
	uni_trace_text_close(text);
	return rc == 0 ? 0 : uni_err_nomem(err);
}

static uint64_t damaged_bytes(void *ctx)
{
	return uni_calls_stats(((struct uni_trace_timeline *)ctx)->calls)->damaged;
}

struct uni_timeline uni_trace_timeline_get(struct uni_trace_timeline *t)
{
	return (struct uni_timeline){ .ctx = t,
		.read = read_calls,
		.func = func_name,
		.thread = thread_name,
		.text = write_text,
		.words = event_words,
		.damaged = damaged_bytes,
		.ns_per_cycle = t->ns_per_cycle };
}

const struct uni_calls_stats *uni_trace_timeline_stats(const struct uni_trace_timeline *t)
{
	return uni_calls_stats(t->calls);
}
