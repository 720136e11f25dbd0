/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/tracing.h"

static struct uni_tracing_args o;

static const struct uni_opt *list_trace_start_options(void)
{
	static const struct uni_opt table[] = {
		UNI_CHOICE_OPTIONS(o),
		UNI_TRACING_OPTIONS(o),
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

static int run_trace_start(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_trace_done done = { 0 };
	struct uni_choice choice;
	struct uni_tracing t;
	int rc = uni_choice_make(&choice, &o, err);

	if (rc != 0)
		return uni_exit_of(rc);
	o.await_run = o.may_give_up = o.owns = true;
	rc = uni_tracing_open(&t, ctx->operands[0], &o, err);
	if (rc == 0) {
		rc = uni_tracer_set(t.tracer, &choice.c, &done, err);
		if (rc == 0)
			uni_tracing_say(&done);
		uni_tracing_close(&t);
	}
	uni_choice_free(&choice);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_start = {
	.name = "start",
	.operands = "TARGET",
	.summary = "switch functions of a running guest on",
	.details = "The guest then records their calls into its own rings, whatever "
		   "happens to uniscope.\n"
		   "Functions that were on and are not chosen now are switched off. "
		   "The guest is stopped for\n"
		   "less than a millisecond to change its code (gdb: once for each 32 "
		   "places).",
	.examples = "  uniscope trace start web1 --filter 'tcp_*'\n"
		    "  uniscope trace start kvm:pid=4121 --exclude 'spin_*' --min-duration 10\n"
		    "  uniscope trace start web1 --trigger handle_error:freeze",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_start_options,
	.run = run_trace_start,
};
