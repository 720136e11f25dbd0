/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "compat/nanos/calls.h"

static struct {
	const char *output;
	bool json, cpu;
} o;

static const struct uni_opt *list_runtime_breakdown_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"where to; - is standard output (default -)", "FILE", NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "as JSON, in nanoseconds", NULL, NULL },
		{ 0, "cpu", UNI_OPT_FLAG, &o.cpu, NULL,
			"by CPU, not by thread; a trace.csv does not tell CPUs unless parse-trace "
			"--cpu wrote it",
			NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "-" };
	return table;
}

static int write_breakdown(const struct uni_call_table *t, struct uni_err *err)
{
	const char *where = o.cpu ? "cpu" : "tid";
	struct uni_sink *out;
	int rc = uni_sink_open_file(o.output, &out, err);

	if (rc != 0)
		return rc;
	if (o.json)
		uni_compat_breakdown_json(t, where, out);
	else
		uni_compat_breakdown(t, where, out);
	return uni_sink_close(out, err);
}

static int run_runtime_breakdown(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_call_table t;
	int rc = uni_compat_calls(ctx->operands[0], o.cpu, &t, err);

	if (rc == 0) {
		uni_call_table_sort(&t);
		rc = write_breakdown(&t, err);
	}
	uni_call_table_deinit(&t);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_runtime_breakdown = {
	.name = "runtime-breakdown",
	.tool = "runtime-breakdown.py",
	.operands = "CSV",
	.reads_only = true,
	.summary = "which functions each thread's time went to, as Nanos' runtime-breakdown.py did",
	.details = "CSV is what parse-trace writes; a text of ftrace or a session will do, too.",
	.examples = "  uniscope compat runtime-breakdown trace.csv\n"
		    "  uniscope compat runtime-breakdown --json --cpu trace -o breakdown.json",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_runtime_breakdown_options,
	.run = run_runtime_breakdown,
};
