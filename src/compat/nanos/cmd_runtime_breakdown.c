/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/page.h"
#include "app/source.h"
#include "compat/nanos/calls.h"

static struct {
	const char *output;
	bool json, cpu;
	struct uni_page_args page;
} o;

static const struct uni_opt *list_runtime_breakdown_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default -)", "FILE", NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "as JSON, in nanoseconds", NULL, NULL },
		{ 0, "cpu", UNI_OPT_FLAG, &o.cpu, NULL,
			"by CPU, not by thread; a trace.csv does not tell CPUs unless parse-trace "
			"--cpu wrote it",
			NULL, NULL },
		{ 0, "html", UNI_OPT_OUTPUT, &o.page.output, "FILE",
			"a page instead: a bar for each thread, whose functions can be hidden by a "
			"click; it opens in a browser, without a network",
			"FILE", NULL },
		{ 0, "hide", UNI_OPT_LIST, &o.page.hide, "GLOB",
			"with --html: functions that are hidden at first", NULL, NULL },
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
	struct uni_source_args src = {
		.path = ctx->operands[0], .build = UNI_BUILD_DEFAULTS, .quiet = true
	};
	struct uni_call_table t;
	int rc;

	if (o.page.output != NULL)
		return uni_exit_of(uni_page_report(&src, &o.page, err));
	if (o.page.hide.items.nr != 0)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--hide goes with --html"));
	rc = uni_compat_calls(ctx->operands[0], o.cpu, &t, err);
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
	.summary = "print the time of each thread by function, as Nanos' "
		   "runtime-breakdown.py did",
	.details = "CSV is what parse-trace writes; a text of ftrace or a session will do, too.",
	.examples = "  uniscope compat runtime-breakdown trace.csv\n"
		    "  uniscope compat runtime-breakdown --html breakdown.html trace.csv\n"
		    "  uniscope compat runtime-breakdown --json --cpu trace -o breakdown.json",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_runtime_breakdown_options,
	.run = run_runtime_breakdown,
};
