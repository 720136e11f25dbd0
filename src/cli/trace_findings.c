/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/promises.h"
#include "promise/text.h"

static struct {
	struct uni_promises_args a;
	double busy_ms;
	bool json;
} o;

static const struct uni_opt *list_trace_findings_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "busy", UNI_OPT_DOUBLE, &o.busy_ms, "MS",
			"call a thread starved if it could run, but waited this "
			"long for one other (default 100)",
			NULL, NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL,
			"the whole model and the findings as JSON (docs/formats/promises.md)", NULL,
			NULL },
		UNI_PROMISES_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .busy_ms = UNI_PROMISE_BUSY_NS / 1e6 };
	return table;
}

static int run_trace_findings(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_findings found = { 0 };
	struct uni_promises p;
	int rc;

	if (o.busy_ms < 0.001 || o.busy_ms > 1e9)
		return uni_exit_of(
			uni_err_set(err, UNI_EUSAGE, "--busy takes 0.001 to 1e9 milliseconds"));
	rc = uni_promises_open(&p, ctx->operands[0], &o.a, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = uni_promise_findings(p.m, (uint64_t)(o.busy_ms * 1e6), &found);
	if (rc == 0 && o.json)
		uni_promise_json(p.out, p.m, &found);
	else if (rc == 0)
		rc = uni_promise_text_findings(p.out, p.m, &found);
	uni_findings_deinit(&found);
	return uni_promises_close(&p, rc, err);
}

const struct uni_cmd uni_trace_findings = {
	.name = "findings",
	.operands = "FILE",
	.reads_only = true,
	.summary = "find errors: lost wake-ups, unresolved promises, deadlocks, "
		   "starvation",
	.details = "Prints each finding with its evidence, then the longest chains "
		   "of waits that ended well.\n"
		   "If the guest tells of locks, those follow: who waited, and who had them.\n"
		   "Prints \"no finding\" if there is none. Names what is unknown "
		   "because events are missing, or\n"
		   "because something was open before the trace began. Lists what "
		   "still waits at the end.\n"
		   "A thread may have waited for one of which the trace has no "
		   "events. Then the host may have had\n"
		   "the CPU, and the wait is listed as in doubt. A trace with function calls "
		   "decides it.",
	.examples = "  uniscope trace findings web1.uniscope\n"
		    "  uniscope trace findings trace.ctf --json | jq .findings",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_findings_options,
	.run = run_trace_findings,
};
