/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "trace/stats.h"
#include "trace/tree.h"

#define INDENT_MAX 200 /* levels that are indented: deeper ones only say how deep */

struct item {
	uint64_t total, calls;
	uint32_t node, depth;
};

typedef UNI_VEC(struct item) items;

/* So that the last one, which is printed next, is the largest. */
static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? -1 : 1;
	return x->node < y->node ? 1 : x->node > y->node ? -1 : 0;
}

static int push_children(const struct uni_call_tree *t, uint32_t node, uint32_t depth,
	const struct uni_call_tree_text *opts, items *todo)
{
	double least = (double)t->node.v[0].total * opts->min_percent / 100;
	size_t from = todo->nr;

	if (opts->max_depth != 0 && depth > opts->max_depth)
		return 0;
	for (uint32_t i = t->node.v[node].child; i != 0; i = t->node.v[i].next) {
		const struct uni_call_node *n = &t->node.v[i];

		if (n->calls + n->made == 0 || (double)n->total < least)
			continue;
		if (!uni_vec_push(todo, ((struct item){ n->total, n->calls + n->made, i, depth })))
			return -UNI_ENOMEM;
	}
	if (todo->nr > from)
		qsort(todo->v + from, todo->nr - from, sizeof(*todo->v), compare_items);
	return 0;
}

static const char *name_of(const struct uni_call_tree *t, struct uni_funcs *funcs, uint32_t node)
{
	return node == UNI_CALL_NODE_MORE ? "[more chains than fit]"
					  : uni_funcs_name(funcs, t->node.v[node].func);
}

static void put_node(const struct uni_call_tree *t, struct uni_funcs *funcs, const struct item *it,
	bool callers, struct uni_sink *out)
{
	const struct uni_call_node *n = &t->node.v[it->node];
	char calls[24] = "-", total[UNI_SPAN_MAX], self[UNI_SPAN_MAX];

	uni_trace_span(total, n->total);
	uni_trace_span(self, n->self);
	if (n->calls != 0)
		(void)snprintf(calls, sizeof(calls), "%" PRIu64, n->calls);
	uni_sink_printf(out, "%12s %10s %10s  ", calls, total, callers ? "-" : self);
	if (it->depth > INDENT_MAX)
		uni_sink_printf(out, "[%" PRIu32 " deep] ", it->depth);
	for (uint32_t i = 1; i < it->depth && it->depth <= INDENT_MAX; i++)
		uni_sink_puts(out, "  ");
	uni_sink_puts(out, name_of(t, funcs, it->node));
	uni_sink_putc(out, '\n');
}

int uni_call_tree_print(const struct uni_call_tree *t, struct uni_funcs *funcs,
	const struct uni_call_tree_text *opts, struct uni_sink *out)
{
	items todo = { 0 };
	int rc = push_children(t, 0, 1, opts, &todo);

	uni_sink_printf(out, "%12s %10s %10s  %s\n", "CALLS", "TOTAL", "SELF", "FUNCTION");
	while (rc == 0 && todo.nr != 0) {
		struct item it = todo.v[--todo.nr];

		put_node(t, funcs, &it, opts->callers, out);
		rc = push_children(t, it.node, it.depth + 1, opts, &todo);
	}
	uni_vec_free(&todo);
	return rc;
}

/* Flat, because readers of JSON refuse nesting as deep as a guest's calls may be. */
int uni_call_tree_json(const struct uni_call_tree *t, struct uni_funcs *funcs,
	const struct uni_call_tree_text *opts, struct uni_json *j)
{
	items todo = { 0 };
	int rc = push_children(t, 0, 1, opts, &todo);

	uni_json_array(j);
	while (rc == 0 && todo.nr != 0) {
		const struct item it = todo.v[--todo.nr];
		const struct uni_call_node *n = &t->node.v[it.node];

		uni_json_object(j);
		uni_json_kv(u64, j, "depth", it.depth);
		uni_json_kv(str, j, "function", name_of(t, funcs, it.node));
		if (it.node != UNI_CALL_NODE_MORE)
			uni_json_kv(hex, j, "address", uni_funcs_address(funcs, n->func));
		uni_json_kv(u64, j, "calls", n->calls);
		uni_json_kv(u64, j, "total_ns", n->total);
		if (!opts->callers)
			uni_json_kv(u64, j, "self_ns", n->self);
		uni_json_object_end(j);
		rc = push_children(t, it.node, it.depth + 1, opts, &todo);
	}
	uni_json_array_end(j);
	uni_vec_free(&todo);
	return rc;
}
