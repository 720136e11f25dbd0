/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "app/cmd.h"
#include "app/term.h"
#include "app/timeline.h"
#include "format/export.h"

static struct {
	const char *output;
	bool cpu;
} o;

static const struct uni_opt *list_parse_trace_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default trace.csv)", "FILE", NULL },
		{ 0, "cpu", UNI_OPT_FLAG, &o.cpu, NULL,
			"the CPU's number in the column tid, not the thread's", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "trace.csv" };
	return table;
}

static int write_rows(struct uni_call_source *s, struct uni_err *err)
{
	const struct uni_exporter *e = uni_exporter_by_name("csv");
	const struct uni_export_opt opt = { "cpu", o.cpu ? "yes" : "no" };
	_cleanup_strbuf_ struct uni_strbuf lost;
	const struct uni_view view = { .timeline = uni_call_source_get(s), .lost = &lost };
	struct uni_sink *out;
	int rc = uni_sink_open_file(o.output, &out, err);

	uni_strbuf_init(&lost);
	if (rc != 0)
		return rc;
	rc = e->write(&view, &opt, 1, out, err);
	if (rc != 0) {
		uni_sink_abort(out);
		return rc;
	}
	rc = uni_sink_close(out, err);
	if (rc == 0 && lost.len != 0)
		uni_note("%.*s", (int)strcspn(lost.s, "\n"), lost.s);
	return rc;
}

static int run_parse_trace(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_source_args args = { .path = ctx->operands[0], .build = UNI_BUILD_DEFAULTS };
	struct uni_call_source *s;
	int rc = uni_call_source_open(&args, &s, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = write_rows(s, err);
	if (rc == 0)
		uni_call_source_note(s);
	uni_call_source_close(s);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_parse_trace = {
	.name = "parse-trace",
	.tool = "parse-trace.py",
	.operands = "TRACE",
	.reads_only = true,
	.summary = "make trace.csv of a function_graph text, as Nanos' parse-trace.py did",
	.details = "TRACE is a text that Nanos' or Linux' ftrace printed, or a session with a "
		   "trace; - is\n"
		   "standard input. A row for each call that returned.",
	.examples = "  wget -qO trace http://127.0.0.1:9090/ftrace/trace\n"
		    "  uniscope compat parse-trace trace && uniscope compat summarize-trace -t "
		    "trace.csv",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_parse_trace_options,
	.run = run_parse_trace,
};
