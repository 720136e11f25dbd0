/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "compat/nanos/calls.h"

static struct {
	bool table;
} o;

static const struct uni_opt *list_summarize_trace_options(void)
{
	static const struct uni_opt table[] = {
		{ 't', "table", UNI_OPT_FLAG, &o.table, NULL, "columns, not commas", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

static int write_summary(const struct uni_call_table *t, struct uni_err *err)
{
	struct uni_call_table merged;
	struct uni_sink *out;
	int rc = uni_call_table_merge(t, &merged);

	if (rc != 0)
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = uni_sink_open_file("-", &out, err);
	if (rc == 0) {
		uni_call_table_sort(&merged);
		uni_compat_summary(&merged, o.table, out);
		rc = uni_sink_close(out, err);
	}
	uni_call_table_deinit(&merged);
	return rc;
}

static int run_summarize_trace(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_call_table t;
	int rc = uni_compat_calls(ctx->operands[0], false, &t, err);

	if (rc == 0)
		rc = write_summary(&t, err);
	uni_call_table_deinit(&t);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_summarize_trace = {
	.name = "summarize-trace",
	.tool = "summarize-trace.awk",
	.operands = "CSV",
	.reads_only = true,
	.summary = "calls and times of each function of a trace.csv, as Nanos' script did",
	.details =
		"CSV is what parse-trace writes; a text of ftrace or a session will do, too. Times "
		"are\n"
		"milliseconds. Most self time first.",
	.examples = "  uniscope compat summarize-trace -t trace.csv",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_summarize_trace_options,
	.run = run_summarize_trace,
};
