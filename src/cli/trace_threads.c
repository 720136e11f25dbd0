/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/promises.h"
#include "promise/text.h"

static struct {
	struct uni_promises_args a;
	bool json;
	struct uni_promise_list_opts list;
	uint64_t max;
} o;

static const struct uni_opt *list_trace_threads_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "open", UNI_OPT_FLAG, &o.list.open_only, NULL,
			"only threads and promises that have not ended", NULL, NULL },
		{ 'l', "like", UNI_OPT_STR, &o.list.like, "GLOB",
			"only those whose name or type matches; * and ? stand for any text", NULL,
			NULL },
		{ 'a', "all", UNI_OPT_FLAG, &o.list.all, NULL,
			"also promises without a name that nobody waits for (--like: always)", NULL,
			NULL },
		{ 'n', "max", UNI_OPT_U64, &o.max, "N", "rows to list at most (default: all)", NULL,
			NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL,
			"print JSON, times in ns (docs/formats/promises.md)", NULL, NULL },
		UNI_PROMISES_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .a = { 0 } };
	return table;
}

static int run_trace_threads(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_promises p;
	int rc = uni_promises_open(&p, ctx->operands[0], &o.a, err);

	if (rc != 0)
		return uni_exit_of(rc);
	o.list.max = o.max;
	rc = o.json ? uni_promise_json_threads(p.out, p.m, &o.list)
		    : uni_promise_text_threads(p.out, p.m, &o.list);
	return uni_promises_close(&p, rc, err);
}

const struct uni_cmd uni_trace_threads = {
	.name = "threads",
	.operands = "FILE",
	.reads_only = true,
	.summary = "list the threads and promises of a trace: how long they lived, ran and waited",
	.details = "FILE is a session of `trace record --threads` or `trace dump`, or a "
		   "trace ring of MirageOS\n"
		   "(- reads one from stdin). Those that should have ended come first "
		   "(NEVER), then open\n"
		   "ones, then the others by life. WAIT is the time between wanting a value "
		   "and running again.\n"
		   "A program on Lwt makes a promise at each step. Those without a name, that "
		   "nobody\n"
		   "waits for, are left out without --all.",
	.examples = "  uniscope trace threads web1.uniscope --open\n"
		    "  uniscope trace threads trace.ctf --like 'tcp*'",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_threads_options,
	.run = run_trace_threads,
};
