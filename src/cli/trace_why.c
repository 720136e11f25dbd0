/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/promises.h"
#include "promise/text.h"

static struct {
	struct uni_promises_args a;
	bool json;
} o;

static const struct uni_opt *list_trace_why_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL,
			"print JSON, times in ns (docs/formats/promises.md)", NULL, NULL },
		UNI_PROMISES_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .a = { 0 } };
	return table;
}

static int run_trace_why(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_promises p;
	uint32_t who;
	int rc = uni_promises_open(&p, ctx->operands[0], &o.a, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = uni_promises_find(&p, ctx->operands[1], &who, err);
	if (rc == 0 && o.json)
		rc = uni_promise_json_why(p.out, p.m, who);
	else if (rc == 0)
		uni_promise_text_why(p.out, p.m, who);
	return uni_promises_close(&p, rc, err);
}

const struct uni_cmd uni_trace_why = {
	.name = "why",
	.operands = "FILE THREAD",
	.reads_only = true,
	.summary = "show why a thread or promise ended, or what it waits for",
	.details = "The chain of waits, the newest first: each line follows from the one below it. "
		   "THREAD is its\n"
		   "number or name (the newest of that name). Times count from the first event.",
	.examples = "  uniscope trace why web1.uniscope 'tcp connect'",
	.min_operands = 2,
	.max_operands = 2,
	.options = list_trace_why_options,
	.run = run_trace_why,
};
