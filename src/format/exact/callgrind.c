/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exact counts in callgrind's format: how often each instruction was executed, and how often each
 * function called each other function. The tree does not record the call sites, so all calls are at
 * the caller's first instruction. The cost of an arc counts its outermost call only, as in the
 * other writer.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "format/opts.h"
#include "obj/usym.h"
#include "recording/exact.h"
#include "recording/recording.h"

static int write_callgrind(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_callgrind_exact = {
	.name = "callgrind-exact",
	.ext = "callgrind",
	.mime = "text/plain",
	.summary = "exact counts: calls and instructions, for KCachegrind and callgrind_annotate",
	.lost = "whole stacks (only pairs of caller and callee)",
	.needs = UNI_NEEDS_SAMPLES | UNI_NEEDS_EXACT,
	.write = write_callgrind,
};

struct arc {
	uint32_t caller, callee;
	uint64_t calls, insns;
};

struct writer {
	const struct uni_exact_function *function;
	const struct uni_exact_node *node;
	const struct uni_symtab *symtab;
	struct uni_sink *out;
	uint64_t *total; /* by node, including its callees */
	struct arc *arc;
	struct uni_exact_insn *insn;
	size_t nr_insns;
	uint32_t nr_functions, nr_nodes, nr_arcs;
	bool *named; /* by function */
};

static int arc_order(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

/* The same call is open further up: recursion. */
static bool is_inner(const struct writer *w, uint32_t node)
{
	uint32_t callee = w->node[node].function, at = w->node[node].parent;
	uint32_t caller = w->node[at].function;

	for (unsigned i = 0; i <= UNI_EXACT_DEPTH && w->node[at].parent != 0; i++) {
		uint32_t parent = w->node[at].parent;

		if (w->node[at].function == callee && w->node[parent].function == caller)
			return true;
		at = parent;
	}
	return false;
}

/* One arc for each node that has a caller, then one for each pair. A parent comes before its nodes.
 */
static int collect_arcs(struct writer *w)
{
	uint32_t nr = 0;

	w->total = calloc(w->nr_nodes + 1ull, sizeof(*w->total));
	w->arc = calloc(w->nr_nodes + 1ull, sizeof(*w->arc));
	if (w->total == NULL || w->arc == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = w->nr_nodes; i-- > 1;) {
		w->total[i] += w->node[i].insns;
		w->total[w->node[i].parent] += w->total[i];
	}
	for (uint32_t i = 1; i < w->nr_nodes; i++) {
		const struct uni_exact_node *n = &w->node[i];

		if (n->parent != 0 && (n->calls != 0 || w->total[i] != 0))
			w->arc[nr++] = (struct arc){ w->node[n->parent].function, n->function,
				n->calls, is_inner(w, i) ? 0 : w->total[i] };
	}
	qsort(w->arc, nr, sizeof(*w->arc), arc_order);
	for (uint32_t i = 0; i < nr; i++) {
		struct arc *last = w->nr_arcs != 0 ? &w->arc[w->nr_arcs - 1] : NULL;

		if (last == NULL || arc_order(last, &w->arc[i]) != 0) {
			w->arc[w->nr_arcs++] = w->arc[i];
			continue;
		}
		last->calls += w->arc[i].calls;
		last->insns += w->arc[i].insns;
	}
	return 0;
}

static void put_name(struct writer *w, const char *what, uint32_t function)
{
	const struct uni_exact_function *f = &w->function[function];
	const char *name = NULL;
	uint64_t offset;

	uni_sink_printf(w->out, "%s=(%" PRIu32 ")", what, function + 1);
	if (!w->named[function]) {
		w->named[function] = true;
		if (function != 0 && f->end != 0 && w->symtab != NULL)
			(void)uni_symtab_lookup(w->symtab, f->start, &name, &offset);
		if (name != NULL)
			uni_sink_printf(w->out, " %s", name);
		else
			uni_sink_printf(w->out, " 0x%" PRIx64, f->start);
	}
	uni_sink_putc(w->out, '\n');
}

/* Arcs and instructions are in the order of functions, which is that of their addresses. */
static void put_functions(struct writer *w)
{
	size_t k = 0;
	uint32_t a = 0;

	for (uint32_t i = 1; i < w->nr_functions; i++) {
		const struct uni_exact_function *f = &w->function[i];
		bool begun = false;

		while (k < w->nr_insns && w->insn[k].addr < f->start)
			k++;
		for (; f->end != 0 && k < w->nr_insns && w->insn[k].addr < f->end; k++) {
			if (w->insn[k].count == 0)
				continue;
			if (!begun)
				put_name(w, "fn", i);
			begun = true;
			uni_sink_printf(w->out, "0x%" PRIx64 " 0 %" PRIu64 "\n", w->insn[k].addr,
				w->insn[k].count);
		}
		while (a < w->nr_arcs && w->arc[a].caller < i)
			a++;
		for (; a < w->nr_arcs && w->arc[a].caller == i; a++) {
			if (!begun)
				put_name(w, "fn", i);
			begun = true;
			put_name(w, "cfn", w->arc[a].callee);
			uni_sink_printf(w->out,
				"calls=%" PRIu64 " 0x%" PRIx64 " 0\n0x%" PRIx64 " 0 %" PRIu64 "\n",
				w->arc[a].calls, w->function[w->arc[a].callee].start, f->start,
				w->arc[a].insns);
		}
	}
}

static int put_all(struct writer *w, const struct uni_exact *e, const char *image)
{
	w->function = uni_exact_functions(e, &w->nr_functions);
	w->node = uni_exact_nodes(e, &w->nr_nodes);
	w->named = calloc(w->nr_functions, sizeof(*w->named));
	if (w->named == NULL || collect_arcs(w) != 0 ||
		uni_exact_count_insns(e, &w->insn, &w->nr_insns) != 0)
		return -UNI_ENOMEM;
	uni_sink_printf(w->out,
		"# callgrind format\nversion: 1\ncreator: uniscope\npositions: instr line\n");
	if (uni_exact_stat(e, UNI_EXACT_FOLDED) != 0)
		uni_sink_printf(w->out,
			"desc: Limits: %" PRIu64 " calls were too deep, or in too many contexts; "
			"some of them have no arc, or another caller's\n",
			uni_exact_stat(e, UNI_EXACT_FOLDED));
	uni_sink_printf(w->out,
		"event: Ir : Instructions executed\nevents: Ir\nsummary: %" PRIu64 "\n\n"
		"ob=%s\nfl=???\n",
		uni_exact_insns(e), image);
	put_functions(w);
	return 0;
}

static int write_callgrind(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err)
{
	int rc = uni_export_opts_parse(&uni_exporter_callgrind_exact, opts, nr_opts, NULL, err);
	struct uni_exact *e = NULL;
	struct writer w = { .out = out };

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_callgrind_exact, v, err);
	if (rc == 0)
		rc = uni_exact_load(uni_recording_path(v->samples), 0, &e, err);
	if (rc == 0) {
		w.symtab =
			v->symtab != NULL ? v->symtab : uni_recording_guest(v->samples, 0).symtab;
		if (put_all(&w, e, uni_recording_meta(v->samples)->image_path) != 0)
			rc = uni_err_nomem(err);
	}
	uni_exact_destroy(e);
	free(w.total);
	free(w.arc);
	free(w.insn);
	free(w.named);
	return rc;
}
