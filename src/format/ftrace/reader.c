/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Texts of Nanos' and Linux' tracers: function_graph, weighted by the nanoseconds that each call
 * took itself, and function, weighted by calls.
 */
#include "format/stack.h"
#include "profile/calls.h"
#include "format/ftrace/fcalls.h"

static int sniff_ftrace(const char *data, size_t size)
{
	return uni_ftext_sniff(data, size);
}

static int add_graph(const struct uni_ftext *t, struct uni_profile *p, struct uni_import_stats *st)
{
	struct uni_fcalls *c = uni_fcalls_open(t);
	struct uni_profile_calls added;
	struct uni_timeline tl;
	int rc;

	if (c == NULL)
		return -UNI_ENOMEM;
	tl = uni_fcalls_timeline(c);
	rc = uni_profile_add_calls(p, &tl, false, NULL, &added);
	st->stacks = added.calls;
	st->truncated = added.cut + uni_fcalls_stats(c)->unopened;
	uni_fcalls_close(c);
	return rc;
}

static void push_function(struct uni_stack *s, const struct uni_ftext *t, uint32_t name)
{
	uni_stack_push(s, uni_stack_name(s, uni_strtab_get(t->strings, name),
				  uni_strtab_len(t->strings, name)));
}

static int add_hits(const struct uni_ftext *t, struct uni_profile *p, struct uni_import_stats *st)
{
	struct uni_stack s;
	int rc = uni_stack_init(&s, p) ? 0 : -UNI_ENOMEM;

	uni_profile_set_unit(p, "calls");
	for (size_t i = 0; rc == 0 && i < t->events.nr; i++) {
		const struct uni_ftext_event *e = &t->events.v[i];

		push_function(&s, t, e->other);
		push_function(&s, t, e->name);
		rc = uni_stack_flush(&s, false, 1.0, 0.0, st);
	}
	uni_stack_deinit(&s);
	return rc;
}

static int read_ftrace(const char *data, size_t size, const struct uni_import_opts *opts,
	struct uni_profile *p, struct uni_import_stats *stats_ret, struct uni_err *err)
{
	struct uni_import_stats st = { 0 };
	struct uni_ftext_stats text;
	struct uni_ftext t;
	int rc = uni_ftext_parse(data, size, &t, &text, err);

	if (rc == 0) {
		st.bad_lines = text.bad_lines + text.outside;
		st.first_bad_line = text.first_bad_line;
		rc = t.tracer == UNI_FTEXT_FUNCTION ? add_hits(&t, p, &st) : add_graph(&t, p, &st);
		if (rc != 0)
			rc = uni_err_nomem(err);
	}
	if (rc == 0 && st.stacks == 0)
		rc = uni_err_set(err, UNI_EFORMAT, "a trace without a call");
	uni_ftext_deinit(&t);
	if (rc == 0)
		*stats_ret = st;
	return rc;
}

const struct uni_importer uni_importer_ftrace = {
	.name = "ftrace",
	.summary = "what the tracers function_graph and function of Nanos and Linux print",
	.gives = UNI_GIVES_CALLS,
	.sniff = sniff_ftrace,
	.read = read_ftrace,
};
