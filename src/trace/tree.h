/* SPDX-License-Identifier: BSD-2-Clause */
/* The call tree of a trace: a node for each function below each chain of callers. */
#ifndef UNI_TRACE_TREE_H
#define UNI_TRACE_TREE_H

#include "base/err.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/vec.h"
#include "trace/calls.h"
#include "trace/funcs.h"
#include "trace/input.h"

#define UNI_CALL_NODES_MAX (1u << 20) /* calls of more are in UNI_CALL_NODE_MORE */
#define UNI_CALL_NODE_MORE 1

struct uni_call_node {
	uint32_t func, parent;
	uint32_t child, next; /* first child, next sibling; 0: none */
	uint64_t calls;
	/* Calls that it made, if only their records know of it (mode callers). Its own are below
	 * its callers, if it is traced. Else 0. */
	uint64_t made;
	uint64_t total, self; /* ns, as struct uni_func_stats has them */
};

struct uni_call_tree {
	/* Node 0 is the root: no function. Parents come before their children. */
	UNI_VEC(struct uni_call_node) node;
	struct uni_calls_stats stats;
};

/* filter NULL: all; its function pattern means nothing here. Threads are merged. */
int uni_call_tree_make(const struct uni_trace_input *in, const struct uni_calls_filter *filter,
	struct uni_funcs *funcs, struct uni_call_tree *ret, struct uni_err *err);
void uni_call_tree_deinit(struct uni_call_tree *t);

/*
 * The calls made by functions that match the glob, as a tree with these functions as its root.
 * callers: the calls that lead to them, innermost caller first. A call of such a function within
 * another one is part of it. Returns 0, -UNI_ENOMEM, or -UNI_ENOENT if there is no such call.
 */
int uni_call_tree_of(const struct uni_call_tree *t, struct uni_funcs *funcs, const char *glob,
	bool callers, struct uni_call_tree *ret);

struct uni_call_tree_text {
	double min_percent; /* of the root's total: leave out smaller nodes */
	uint64_t max_depth; /* 0: all */
	bool callers;	    /* of such a tree: there is no self time */
};
/* Children by total time, most first. 0 or -UNI_ENOMEM. */
int uni_call_tree_print(const struct uni_call_tree *t, struct uni_funcs *funcs,
	const struct uni_call_tree_text *opts, struct uni_sink *out);
/* The same as an array: an object a line of the text, with its depth. */
int uni_call_tree_json(const struct uni_call_tree *t, struct uni_funcs *funcs,
	const struct uni_call_tree_text *opts, struct uni_json *j);

#endif
