/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "app/cmd.h"
#include "app/term.h"
#include "app/trace_open.h"
#include "trace/stats.h"

static struct {
	struct uni_trace_args args;
	uint64_t functions;
	const char *sort, *before, *later;
	bool json;
} o;

static const struct uni_opt *list_trace_report_options(void)
{
	static const struct uni_opt table[] = {
		{ 'n', "max", UNI_OPT_U64, &o.functions, "N",
			"functions to list at most; 0 lists all (default 30)", NULL, NULL,
			.old_name = "functions" },
		{ 0, "sort", UNI_OPT_STR, &o.sort, "ORDER",
			"self, total, calls, avg, max, p99 or name (default self)", UNI_TRACE_SORTS,
			NULL },
		{ 0, "function", UNI_OPT_STR, &o.args.function, "NAME",
			"only functions whose name matches; * and ? stand for any text", NULL,
			NULL },
		{ 0, "before", UNI_OPT_STR, &o.before, "FILE",
			"compare: show the difference from this older session", "FILE", NULL },
		{ 0, "diff", UNI_OPT_STR, &o.later, "SESSION", NULL, NULL, NULL },
		UNI_TRACE_OPTIONS(o.args),
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON, times in ns", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .functions = 30, .sort = "self" };
	return table;
}

struct one {
	struct uni_trace_open t;
	struct uni_trace_report r;
};

static void one_close(struct one *one)
{
	uni_trace_report_deinit(&one->r);
	uni_trace_close(&one->t);
}

static int one_make(const char *path, enum uni_trace_sort by, struct one *ret, struct uni_err *err)
{
	int rc;

	ret->r = (struct uni_trace_report){ 0 };
	rc = uni_trace_open(path, &o.args, &ret->t, err);
	if (rc != 0)
		return rc;
	rc = uni_trace_report_make(ret->t.in, &ret->t.filter, ret->t.funcs, &ret->r, err);
	if (rc != 0) {
		one_close(ret);
		return rc;
	}
	uni_trace_report_sort(&ret->r, ret->t.funcs, by);
	uni_trace_note(&ret->t, path, &ret->r.stats);
	return 0;
}

static void put_head(struct uni_sink *out, const struct uni_calls_stats *st)
{
	uni_sink_printf(out, "events     %" PRIu64 " in %.3f s, %" PRIu64 " lost\n\n", st->events,
		(double)(st->end_ns - st->begin_ns) / 1e9, st->lost);
}

static void put_row(struct uni_json *j, const struct uni_func_stats *f, struct uni_funcs *funcs)
{
	uni_json_object(j);
	uni_json_kv(str, j, "function", uni_funcs_name(funcs, f->func));
	uni_json_kv(hex, j, "address", uni_funcs_address(funcs, f->func));
	uni_json_kv(u64, j, "calls", f->calls);
	uni_json_kv(u64, j, "timed", f->timed);
	uni_json_kv(u64, j, "without_return", f->cut);
	uni_json_kv(u64, j, "total_ns", f->total);
	uni_json_kv(u64, j, "self_ns", f->self);
	uni_json_kv(u64, j, "sum_ns", f->sum);
	uni_json_kv(u64, j, "min_ns", f->min);
	uni_json_kv(u64, j, "max_ns", f->max);
	uni_json_kv(u64, j, "p50_ns", f->p50);
	uni_json_kv(u64, j, "p99_ns", f->p99);
	uni_json_object_end(j);
}

static void put_json(struct uni_sink *out, struct one *one)
{
	const struct uni_calls_stats *st = &one->r.stats;
	struct uni_json j;

	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-trace-report");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(u64, &j, "events", st->events);
	uni_json_kv(u64, &j, "lost", st->lost);
	uni_json_kv(u64, &j, "damaged_bytes", st->damaged);
	uni_json_kv(u64, &j, "returns_without_call", st->returns);
	uni_json_kv(u64, &j, "calls_without_return", st->cut);
	uni_json_kv(u64, &j, "begin_ns", st->begin_ns);
	uni_json_kv(u64, &j, "end_ns", st->end_ns);
	uni_json_key(&j, "functions");
	uni_json_array(&j);
	for (size_t i = 0; i < one->r.func.nr && (o.functions == 0 || i < o.functions); i++)
		put_row(&j, &one->r.func.v[i], one->t.funcs);
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}

static int no_function(struct uni_err *err)
{
	return uni_err_set(
		err, UNI_ENOENT, "no call of a function '%s' in this trace", o.args.function);
}

static int put_diff(struct uni_sink *out, struct one *one, struct uni_err *err)
{
	struct uni_trace_diff d;
	struct one then;
	int rc = one_make(o.before, UNI_TRACE_BY_SELF, &then, err);

	if (rc != 0)
		return rc;
	if (o.args.function != NULL && one->r.func.nr + then.r.func.nr == 0) {
		one_close(&then);
		return no_function(err);
	}
	rc = uni_trace_diff_make(&then.r, then.t.funcs, &one->r, one->t.funcs, &d);
	if (rc == 0) {
		uni_trace_diff_print(&d, o.functions, out);
		uni_trace_diff_deinit(&d);
	} else {
		rc = uni_err_nomem(err);
	}
	one_close(&then);
	return rc;
}

static int print_trace_report(struct one *one, struct uni_err *err)
{
	struct uni_sink *out;
	int rc = 0;

	if (o.args.function != NULL && o.before == NULL && one->r.func.nr == 0)
		return no_function(err);
	rc = uni_sink_open_file("-", &out, err);
	if (rc != 0)
		return rc;
	if (o.before != NULL) {
		rc = put_diff(out, one, err);
	} else if (o.json) {
		put_json(out, one);
	} else {
		put_head(out, &one->r.stats);
		uni_trace_report_print(&one->r, one->t.funcs, o.functions, out);
	}
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

static int run_trace_report(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *path = ctx->operands[0];
	enum uni_trace_sort by;
	struct one one;
	int rc = 0;

	if (o.later != NULL) {
		uni_note("--diff NEW OLD is an old form: use --before OLD NEW");
		o.before = path;
		path = o.later;
	}

	if (uni_trace_sort_named(o.sort, &by) != 0)
		rc = uni_err_set(err, UNI_EUSAGE, "--sort takes one of %s, not '%s'",
			UNI_TRACE_SORTS, o.sort);
	if (rc == 0 && o.json && o.before != NULL)
		rc = uni_err_set(err, UNI_EUSAGE, "--before prints no JSON: leave out --json");
	if (rc == 0)
		rc = one_make(path, by, &one, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = print_trace_report(&one, err);
	one_close(&one);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_report = {
	.name = "report",
	.operands = "SESSION",
	.reads_only = true,
	.summary = "print the cost of a trace's functions: calls, total, self, percentiles",
	.details = "TOTAL is the time in a function and in its callees. SELF leaves out "
		   "traced callees, and\n"
		   "the time in which the function's thread did not run.",
	.examples = "  uniscope trace report web1.uniscope\n"
		    "  uniscope trace report --sort p99 --function 'tcp_*' web1.uniscope\n"
		    "  uniscope trace report --before web1.uniscope web2.uniscope",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_report_options,
	.run = run_trace_report,
};
