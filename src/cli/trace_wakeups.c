/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/promises.h"
#include "promise/text.h"

static struct {
	struct uni_promises_args a;
	bool json;
	uint64_t max;
} o;

static const struct uni_opt *list_trace_wakeups_options(void)
{
	static const struct uni_opt table[] = {
		{ 'n', "max", UNI_OPT_U64, &o.max, "N", "rows to list at most (default 40)", NULL,
			NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL,
			"print JSON, times in ns (docs/formats/promises.md)", NULL, NULL },
		UNI_PROMISES_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .max = 40 };
	return table;
}

static int run_trace_wakeups(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_promises p;
	int rc;

	if (o.max == 0 || o.max > 1000000)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--max takes 1 to 1000000 rows"));
	rc = uni_promises_open(&p, ctx->operands[0], &o.a, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = o.json ? uni_promise_json_wakeups(p.out, p.m, o.max)
		    : uni_promise_text_wakeups(p.out, p.m, o.max);
	return uni_promises_close(&p, rc, err);
}

const struct uni_cmd uni_trace_wakeups = {
	.name = "wakeups",
	.operands = "FILE",
	.reads_only = true,
	.summary = "list wake-ups by latency: the time from a value's arrival until its "
		   "waiter ran",
	.details = "Long ones mean that the scheduler, not the event, kept a thread waiting.",
	.examples = "  uniscope trace wakeups web1.uniscope -n 10",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_wakeups_options,
	.run = run_trace_wakeups,
};
