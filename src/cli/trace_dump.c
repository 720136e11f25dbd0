/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/tracing_session.h"

static struct {
	struct uni_tracing_args a;
	struct uni_tracing_session s;
} o;

static const struct uni_opt *list_trace_dump_options(void)
{
	static const struct uni_opt table[] = {
		UNI_TRACING_OUTPUT_OPTIONS(o.s),
		{ 0, "all-sessions", UNI_OPT_FLAG, &o.s.all_sessions, NULL,
			"also what was recorded before the newest start; without it only what came "
			"since",
			NULL, NULL },
		UNI_TRACING_OPTIONS(o.a),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.s.quiet, NULL, "no summary", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .a = { .rest_ok = true }, .s = { .snapshot = true } };
	return table;
}

static int run_trace_dump(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_tracing t;
	int rc = uni_tracing_open(&t, ctx->operands[0], &o.a, err);

	if (rc == 0) {
		rc = uni_tracing_write(&t, &o.s, err);
		uni_tracing_close(&t);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_dump = {
	.name = "dump",
	.operands = "TARGET",
	.summary = "save what a guest's rings hold: the last calls before now",
	.details = "The flight recorder of a guest that runs, stands or is dead (core:). Stops a "
		   "running guest\n"
		   "only while the newest part is copied. What was recorded before the newest "
		   "`trace start`\n"
		   "or `trace record` is left out, unless --all-sessions asks for it.",
	.examples = "  uniscope trace dump web1\n"
		    "  uniscope trace dump core:file=vm.core -e app.elf -o crash.uniscope\n"
		    "  ssh host uniscope trace dump web1 -w - | uniscope trace findings -",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_dump_options,
	.run = run_trace_dump,
};
