/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/confine.h"
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
			"also save calls from before the newest start (default: "
			"only later ones)",
			NULL, NULL },
		UNI_TRACING_OPTIONS(o.a),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.s.quiet, NULL, "no summary", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .a = { .rest_ok = true, .may_give_up = true, .reads_only = true },
		.s = { .snapshot = true } };
	return table;
}

static int run_trace_dump(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_tracing t;
	int rc;

	uni_confine_output(o.s.write);
	uni_confine_output(o.s.output != NULL ? o.s.output : "session"); /* in this folder */
	rc = uni_tracing_open(&t, ctx->operands[0], &o.a, err);

	if (rc == 0) {
		rc = uni_tracing_write(&t, &o.s, err);
		uni_tracing_close(&t);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_dump = {
	.name = "dump",
	.operands = "TARGET",
	.summary = "save the content of a guest's rings: its last calls",
	.details = "The flight recorder of a running, stopped or dead (core:) guest. It "
		   "stops a running guest\n"
		   "only while it copies the newest part. Calls from before the newest "
		   "`trace start` or\n"
		   "`trace record` are left out, unless --all-sessions is given.",
	.examples = "  uniscope trace dump web1\n"
		    "  uniscope trace dump core:file=vm.core -e app.elf -o crash.uniscope\n"
		    "  ssh host uniscope trace dump web1 -w - | uniscope trace findings -",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_dump_options,
	.run = run_trace_dump,
};
