/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/timeline.h"

#include <stdlib.h>

struct uni_trace_timeline {
	struct uni_funcs *funcs;
	struct uni_calls *calls;
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

int uni_trace_timeline_open(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	const struct uni_funcs_naming *naming, struct uni_trace_timeline **ret, struct uni_err *err)
{
	struct uni_trace_timeline *t = calloc(1, sizeof(*t));
	int rc;

	if (t == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	t->funcs = uni_funcs_create(naming);
	if (t->funcs == NULL)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
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

struct uni_timeline uni_trace_timeline_get(struct uni_trace_timeline *t)
{
	return (struct uni_timeline){
		.ctx = t, .read = read_calls, .func = func_name, .thread = thread_name
	};
}

const struct uni_calls_stats *uni_trace_timeline_stats(const struct uni_trace_timeline *t)
{
	return uni_calls_stats(t->calls);
}
