/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/json.h"
#include "base/text.h"
#include "app/cmd.h"
#include "app/trace_open.h"
#include "trace/stats.h"
#include "trace/tree.h"

static struct {
	struct uni_trace_args args;
	const char *function;
	uint64_t depth;
	double min_percent;
	bool json;
} o;

static const struct uni_opt *list_trace_graph_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "function", UNI_OPT_STR, &o.function, "NAME",
			"show the callers and callees of functions whose name "
			"matches (default: the whole tree)",
			NULL, NULL, 'f' },
		{ 0, "depth", UNI_OPT_U64, &o.depth, "N", "levels to show; 0 is all (default 0)",
			NULL, NULL },
		{ 0, "min", UNI_OPT_DOUBLE, &o.min_percent, "PERCENT",
			"leave out lines with a smaller share of the total "
			"(default 0.5)",
			NULL, NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON, times in ns", NULL, NULL },
		UNI_TRACE_OPTIONS(o.args),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .min_percent = 0.5 };
	return table;
}

static int put_of(
	const struct uni_call_tree *t, struct uni_funcs *funcs, bool callers, struct uni_sink *out)
{
	const struct uni_call_tree_text text = { o.min_percent, o.depth, callers };
	struct uni_call_tree part;
	char total[UNI_SPAN_MAX], self[UNI_SPAN_MAX];
	int rc = uni_call_tree_of(t, funcs, o.function, callers, &part);

	if (rc != 0)
		return rc;
	if (!callers) {
		uni_trace_span(total, part.node.v[0].total);
		uni_trace_span(self, part.node.v[0].self);
		uni_sink_printf(out, "%s: %" PRIu64 " call%s, %s, self %s\n\ncalls\n", o.function,
			part.node.v[0].calls, uni_plural(part.node.v[0].calls), total, self);
	} else {
		uni_sink_puts(out, "\ncalled by\n");
	}
	rc = uni_call_tree_print(&part, funcs, &text, out);
	uni_call_tree_deinit(&part);
	return rc;
}

static int put_json_of(
	const struct uni_call_tree *t, struct uni_funcs *funcs, bool callers, struct uni_json *j)
{
	const struct uni_call_tree_text text = { o.min_percent, o.depth, callers };
	struct uni_call_tree part;
	int rc = uni_call_tree_of(t, funcs, o.function, callers, &part);

	if (rc != 0)
		return rc;
	if (!callers) {
		uni_json_kv(u64, j, "calls", part.node.v[0].calls);
		uni_json_kv(u64, j, "total_ns", part.node.v[0].total);
		uni_json_kv(u64, j, "self_ns", part.node.v[0].self);
	}
	uni_json_key(j, callers ? "callers" : "callees");
	rc = uni_call_tree_json(&part, funcs, &text, j);
	uni_call_tree_deinit(&part);
	return rc;
}

static int print_json(
	const struct uni_trace_open *t, const struct uni_call_tree *tree, struct uni_sink *out)
{
	const struct uni_call_tree_text text = { o.min_percent, o.depth, false };
	struct uni_json j;
	int rc;

	uni_json_init(&j, out, true);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-trace-graph");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(u64, &j, "events", tree->stats.events);
	uni_json_kv(u64, &j, "lost", tree->stats.lost);
	if (o.function == NULL) {
		uni_json_key(&j, "tree");
		rc = uni_call_tree_json(tree, t->funcs, &text, &j);
	} else {
		uni_json_kv(str, &j, "functions", o.function);
		rc = put_json_of(tree, t->funcs, false, &j);
		if (rc == 0)
			rc = put_json_of(tree, t->funcs, true, &j);
	}
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
	return rc;
}

static int print_graph(const struct uni_trace_open *t, const struct uni_call_tree *tree,
	struct uni_sink *out, struct uni_err *err)
{
	const struct uni_call_tree_text text = { o.min_percent, o.depth, false };
	int rc;

	if (o.json) {
		rc = print_json(t, tree, out);
	} else if (o.function == NULL) {
		rc = uni_call_tree_print(tree, t->funcs, &text, out);
	} else {
		rc = put_of(tree, t->funcs, false, out);
		if (rc == 0)
			rc = put_of(tree, t->funcs, true, out);
	}
	if (rc == -UNI_ENOENT)
		return uni_err_set(
			err, UNI_ENOENT, "no call of a function '%s' in this trace", o.function);
	return rc == 0 ? 0 : uni_err_nomem(err);
}

static int make_graph(const struct uni_trace_open *t, const char *path, struct uni_err *err)
{
	struct uni_call_tree tree;
	struct uni_sink *out;
	int rc = uni_call_tree_make(t->in, &t->filter, t->funcs, &tree, err);

	if (rc != 0)
		return rc;
	uni_trace_note(t, path, &tree.stats);
	rc = uni_sink_open_file("-", &out, err);
	if (rc == 0) {
		rc = print_graph(t, &tree, out, err);
		if (rc == 0)
			rc = uni_sink_close(out, err);
		else
			uni_sink_abort(out);
	}
	uni_call_tree_deinit(&tree);
	return rc;
}

static int run_trace_graph(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_trace_open t;
	int rc = uni_trace_open(ctx->operands[0], &o.args, &t, err);

	if (rc == 0) {
		rc = make_graph(&t, ctx->operands[0], err);
		uni_trace_close(&t);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_graph = {
	.name = "graph",
	.operands = "SESSION",
	.reads_only = true,
	.summary = "print a trace's call tree, or callers and callees of a function",
	.details = "Threads are merged; --thread shows one.",
	.examples = "  uniscope trace graph web1.uniscope\n"
		    "  uniscope trace graph --function tcp_input --depth 4 web1.uniscope\n"
		    "  uniscope trace graph --json web1.uniscope",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_graph_options,
	.run = run_trace_graph,
};
