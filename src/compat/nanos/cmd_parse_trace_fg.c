/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"
#include "app/cmd.h"
#include "app/timeline.h"
#include "profile/calls.h"

static struct {
	const char *output;
	bool ns;
} o;

static const struct uni_opt *list_parse_trace_fg_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default "
			"tracefg.out)",
			"FILE", NULL },
		{ 0, "ns", UNI_OPT_FLAG, &o.ns, NULL, "nanoseconds, not whole microseconds", NULL,
			NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "tracefg.out" };
	return table;
}

struct lines {
	const struct uni_profile *p;
	struct uni_strbuf stack; /* names down to the current node */
	struct uni_sink *out;
};

/* Names of other tools' stacks hold no ';'. */
static void push_name(struct lines *l, const char *name)
{
	if (l->stack.len != 0)
		uni_strbuf_addc(&l->stack, ';');
	for (; *name != '\0'; name++)
		uni_strbuf_addc(&l->stack, *name == ';' ? ':' : *name);
}

static void pop_name(struct lines *l)
{
	const char *last = memrchr(l->stack.s, ';', l->stack.len);

	if (l->stack.len == 0)
		return;
	l->stack.len = last != NULL ? (size_t)(last - l->stack.s) : 0;
	l->stack.s[l->stack.len] = '\0';
}

static void put_folded(struct lines *l, uint32_t node)
{
	uint64_t ns = (uint64_t)uni_profile_node(l->p, node)->self;

	uni_sink_printf(l->out, "%s %" PRIu64 "\n", l->stack.s,
		o.ns ? ns : (uint64_t)(ns / UNI_NSEC_PER_USEC));
}

/* In the order of names at each level. */
static void put_all(struct lines *l)
{
	uint32_t node = uni_profile_node(l->p, UNI_NODE_ROOT)->child;

	while (node != UNI_NODE_NONE && node != UNI_NODE_ROOT) {
		const struct uni_node *n = uni_profile_node(l->p, node);

		push_name(l, uni_profile_node_name(l->p, node));
		put_folded(l, node);
		if (n->child != UNI_NODE_NONE) {
			node = n->child;
			continue;
		}
		pop_name(l);
		while (n->next == UNI_NODE_NONE && n->parent != UNI_NODE_ROOT) {
			pop_name(l);
			n = uni_profile_node(l->p, n->parent);
		}
		node = n->next;
	}
}

static int write_stacks(const struct uni_profile *p, struct uni_err *err)
{
	struct lines l = { .p = p };
	bool failed;
	int rc = uni_sink_open_file(o.output, &l.out, err);

	if (rc != 0)
		return rc;
	uni_strbuf_init(&l.stack);
	put_all(&l);
	failed = uni_strbuf_failed(&l.stack);
	uni_strbuf_deinit(&l.stack);
	if (!failed)
		return uni_sink_close(l.out, err);
	uni_sink_abort(l.out);
	return uni_err_nomem(err);
}

static int run_parse_trace_fg(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_source_args args = { .path = ctx->operands[0], .build = UNI_BUILD_DEFAULTS };
	struct uni_profile *p = uni_profile_create();
	struct uni_profile_calls added;
	struct uni_call_source *s = NULL;
	int rc = p == NULL ? uni_err_nomem(err) : uni_call_source_open(&args, &s, err);

	if (rc == 0 &&
		(uni_profile_add_calls(p, uni_call_source_get(s), false, NULL, &added) != 0 ||
			uni_profile_finish(p) != 0))
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = write_stacks(p, err);
	if (rc == 0)
		uni_call_source_note(s);
	uni_call_source_close(s);
	uni_profile_destroy(p);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_parse_trace_fg = {
	.name = "parse-trace-fg",
	.tool = "parse-trace-fg.py",
	.operands = "TRACE",
	.reads_only = true,
	.summary = "make folded stacks of a function_graph text, as Nanos' parse-trace-fg.py did",
	.details = "TRACE is a text that Nanos' or Linux' ftrace printed, or a session with a "
		   "trace; - is\n"
		   "standard input. Values are the microseconds that the leaf itself took.",
	.examples = "  uniscope compat parse-trace-fg trace\n"
		    "  uniscope export tracefg.out -f svg -o trace.svg",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_parse_trace_fg_options,
	.run = run_parse_trace_fg,
};
