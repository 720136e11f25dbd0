/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/term.h"
#include "app/tracing.h"
#include "base/text.h"

static struct uni_tracing_args o;

static const struct uni_opt *list_trace_stop_options(void)
{
	static const struct uni_opt table[] = {
		UNI_TRACING_OPTIONS(o),
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .may_give_up = true };
	return table;
}

static int run_trace_stop(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_trace_done done = { 0 };
	struct uni_tracing t;
	char stood[UNI_STOOD_MAX];
	int rc = uni_tracing_open(&t, ctx->operands[0], &o, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = uni_tracer_set(t.tracer, NULL, &done, err);
	uni_tracing_stood(&done, stood);
	if (rc == 0)
		uni_note("tracing is off: %u place%s their old code again%s", done.nr_changed,
			done.nr_changed == 1 ? " has" : "s have", stood);
	uni_tracing_close(&t);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_stop = {
	.name = "stop",
	.operands = "TARGET",
	.summary = "switch all functions of a guest off, as before `start`",
	.details = "Restores every byte, also after a uniscope that was killed. The "
		   "rings keep their content:\n"
		   "`uniscope trace dump` still saves it.",
	.examples = "  uniscope trace stop web1",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_stop_options,
	.run = run_trace_stop,
};
