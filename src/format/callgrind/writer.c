/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * callgrind's format for KCachegrind and callgrind_annotate: each function's self cost, by line,
 * and the cost of its calls of each other function. Samples do not show how often one calls
 * another: the "calls" are the places in the call tree where it does. An arc that leads into itself
 * again (recursion) counts its outermost call only, as a function's total does.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "format/opts.h"

struct cost {
	double self, self2;
};

/* From one function to another, at a line of the caller. */
struct arc {
	uint32_t caller, line, callee;
	uint32_t open; /* of these that the walk is in */
	uint64_t places;
	struct cost total;
};

struct self {
	uint32_t func, line;
	struct cost cost;
};

struct writer {
	const struct uni_profile *p;
	struct uni_sink *out;
	struct uni_strtab *funcs; /* "NAME IMAGE FILE" by their strings' numbers; 1 is the first */
	struct uni_strtab *keys;  /* of arcs and selfs */
	uint32_t *func_of;	  /* by frame */
	UNI_VEC(uint32_t) frame_of; /* by function: the first frame of it */
	UNI_VEC(struct arc) arcs;
	UNI_VEC(struct self) selfs;
	UNI_VEC(uint32_t) path; /* nodes */
	bool *named, *file_named, *image_named;
	uint64_t rounded;
	bool two;
};

static int write_callgrind(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_callgrind = {
	.name = "callgrind",
	.ext = "callgrind",
	.mime = "text/plain",
	.summary = "functions and what they call: for KCachegrind and callgrind_annotate",
	.lost = "whole stacks (only pairs of caller and callee), times, vCPUs, threads",
	.needs = UNI_NEEDS_PROFILE,
	.write = write_callgrind,
};

static int name_functions(struct writer *w)
{
	size_t nr = uni_profile_nr_frames(w->p);

	w->func_of = calloc(nr + 1, sizeof(*w->func_of));
	if (w->func_of == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *f = uni_profile_get_frame(w->p, (uint32_t)i);
		uint32_t key[3] = { uni_frame_said(f), f->image, f->file };
		uint32_t id = uni_strtab_add(w->funcs, (const char *)key, sizeof(key));

		if (id == UNI_STR_NONE ||
			(id > w->frame_of.nr && !uni_vec_push(&w->frame_of, (uint32_t)i)))
			return -UNI_ENOMEM;
		w->func_of[i] = id;
	}
	return 0;
}

static uint32_t line_of(const struct writer *w, uint32_t node)
{
	return uni_profile_get_frame(w->p, uni_profile_node(w->p, node)->frame)->line;
}

static uint32_t func_of(const struct writer *w, uint32_t node)
{
	return w->func_of[uni_profile_node(w->p, node)->frame];
}

/* Index of the arc to this node from its caller; UINT32_MAX: out of memory. */
static uint32_t find_arc(struct writer *w, uint32_t node)
{
	uint32_t parent = uni_profile_node(w->p, node)->parent;
	struct arc arc = {
		.caller = func_of(w, parent), .line = line_of(w, parent), .callee = func_of(w, node)
	};
	uint32_t key[4] = { arc.caller, arc.line, arc.callee, 1 };
	size_t before = uni_strtab_nr(w->keys);
	uint32_t id = uni_strtab_add(w->keys, (const char *)key, sizeof(key));

	if (id == UNI_STR_NONE)
		return UINT32_MAX;
	/* Arcs and selfs share the table: both lists are as long as it is. */
	if (id == before &&
		(!uni_vec_push(&w->arcs, arc) || !uni_vec_push(&w->selfs, ((struct self){ 0 }))))
		return UINT32_MAX;
	return id - 1;
}

static int add_self(struct writer *w, uint32_t node)
{
	struct cost cost = { uni_profile_node(w->p, node)->self, uni_profile_self2(w->p, node) };
	struct self self = { .func = func_of(w, node), .line = line_of(w, node) };
	uint32_t key[4] = { self.func, self.line, 0, 2 }, id;
	size_t before = uni_strtab_nr(w->keys);

	if (cost.self == 0.0 && cost.self2 == 0.0)
		return 0;
	id = uni_strtab_add(w->keys, (const char *)key, sizeof(key));
	if (id == UNI_STR_NONE)
		return -UNI_ENOMEM;
	if (id == before &&
		(!uni_vec_push(&w->selfs, self) || !uni_vec_push(&w->arcs, ((struct arc){ 0 }))))
		return -UNI_ENOMEM;
	assert(w->selfs.v != NULL && id - 1 < w->selfs.nr);
	w->selfs.v[id - 1].cost.self += cost.self;
	w->selfs.v[id - 1].cost.self2 += cost.self2;
	return 0;
}

static int enter_node(struct writer *w, uint32_t node)
{
	const struct uni_node *n = uni_profile_node(w->p, node);
	uint32_t id;

	if (!uni_vec_push(&w->path, node))
		return -UNI_ENOMEM;
	if (n->parent != UNI_NODE_ROOT) {
		id = find_arc(w, node);
		if (id == UINT32_MAX)
			return -UNI_ENOMEM;
		assert(w->arcs.v != NULL && id < w->arcs.nr);
		w->arcs.v[id].places++;
		if (w->arcs.v[id].open++ == 0) {
			w->arcs.v[id].total.self += n->total;
			w->arcs.v[id].total.self2 += uni_profile_total2(w->p, node);
		}
	}
	return add_self(w, node);
}

/* The node's right neighbour. */
static uint32_t leave_node(struct writer *w)
{
	uint32_t node = w->path.v[--w->path.nr], id;

	if (uni_profile_node(w->p, node)->parent != UNI_NODE_ROOT) {
		id = find_arc(w, node);
		assert(w->arcs.v != NULL && id < w->arcs.nr); /* enter_node() made it */
		w->arcs.v[id].open--;
	}
	return uni_profile_node(w->p, node)->next;
}

static int walk_nodes(struct writer *w)
{
	uint32_t next = uni_profile_node(w->p, UNI_NODE_ROOT)->child;

	for (;;) {
		while (next == UNI_NODE_NONE) {
			if (w->path.nr == 0)
				return 0;
			next = leave_node(w);
		}
		if (enter_node(w, next) != 0)
			return -UNI_ENOMEM;
		next = uni_profile_node(w->p, next)->child;
	}
}

static int arc_order(const void *a, const void *b)
{
	const struct arc *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->callee < y->callee ? -1 : x->callee > y->callee;
}

static int self_order(const void *a, const void *b)
{
	const struct self *x = a, *y = b;

	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* "fn=(3) name" the first time, "fn=(3)" from then on. */
static void put_name(
	struct writer *w, const char *what, uint32_t id, const char *name, bool *is_named)
{
	uni_sink_printf(w->out, "%s=(%" PRIu32 ")", what, id);
	if (!*is_named)
		uni_sink_printf(w->out, " %s", name[0] != '\0' ? name : "???");
	*is_named = true;
	uni_sink_putc(w->out, '\n');
}

static void put_function(struct writer *w, uint32_t func, bool called)
{
	const struct uni_frame *f = uni_profile_get_frame(w->p, w->frame_of.v[func - 1]);

	put_name(w, called ? "cob" : "ob", f->image + 1, uni_profile_str(w->p, f->image),
		&w->image_named[f->image]);
	put_name(w, called ? "cfi" : "fl", f->file + 1, uni_profile_str(w->p, f->file),
		&w->file_named[f->file]);
	put_name(w, called ? "cfn" : "fn", func, uni_profile_str(w->p, uni_frame_said(f)),
		&w->named[func]);
}

static void put_cost(struct writer *w, uint32_t line, const struct cost *c)
{
	uni_sink_printf(w->out, "%" PRIu32 " %.0f", line, round(c->self));
	if (w->two)
		uni_sink_printf(w->out, " %.0f", round(c->self2));
	uni_sink_putc(w->out, '\n');
	w->rounded += c->self != round(c->self) || c->self2 != round(c->self2);
}

static void put_functions(struct writer *w)
{
	size_t a = 0, s = 0;

	for (uint32_t func = 1; func <= w->frame_of.nr; func++) {
		uni_sink_putc(w->out, '\n');
		put_function(w, func, false);
		for (; s < w->selfs.nr && w->selfs.v[s].func <= func; s++) {
			if (w->selfs.v[s].func != 0)
				put_cost(w, w->selfs.v[s].line, &w->selfs.v[s].cost);
		}
		for (; a < w->arcs.nr && w->arcs.v[a].caller <= func; a++) {
			const struct arc *arc = &w->arcs.v[a];

			if (arc->caller == 0)
				continue;
			put_function(w, arc->callee, true);
			uni_sink_printf(w->out, "calls=%" PRIu64 " 0\n", arc->places);
			put_cost(w, arc->line, &arc->total);
		}
	}
}

/* One word: it names a column. */
static void put_event_name(struct writer *w, const char *prefix, const char *unit)
{
	uni_sink_printf(w->out, " %s", prefix);
	for (; *unit != '\0'; unit++)
		uni_sink_putc(w->out, *unit == ' ' || *unit == ':' ? '_' : *unit);
}

static void put_header(struct writer *w, const struct uni_view *v)
{
	const struct cost sum = { uni_profile_total(w->p),
		uni_profile_total2(w->p, UNI_NODE_ROOT) };
	const char *unit = uni_profile_unit(w->p);

	uni_sink_puts(w->out, "# callgrind format\nversion: 1\ncreator: uniscope\npid: 1\n");
	uni_sink_printf(w->out, "cmd: %s\npart: 1\n\n", v->title != NULL ? v->title : "guest");
	uni_sink_puts(w->out, "positions: line\nevents:");
	put_event_name(w, w->two ? "before_" : "", unit);
	if (w->two)
		put_event_name(w, "after_", unit);
	uni_sink_printf(w->out, "\nsummary: %.0f", round(sum.self));
	if (w->two)
		uni_sink_printf(w->out, " %.0f", round(sum.self2));
	uni_sink_putc(w->out, '\n');
}

static int write_callgrind_body(struct writer *w, const struct uni_view *v)
{
	size_t nr_strings = uni_profile_nr_strings(w->p);

	w->funcs = uni_strtab_create();
	w->keys = uni_strtab_create();
	if (w->funcs == NULL || w->keys == NULL || name_functions(w) != 0 || walk_nodes(w) != 0)
		return -UNI_ENOMEM;
	w->named = calloc(w->frame_of.nr + 1, sizeof(*w->named));
	w->file_named = calloc(nr_strings + 1, sizeof(*w->file_named));
	w->image_named = calloc(nr_strings + 1, sizeof(*w->image_named));
	if (w->named == NULL || w->file_named == NULL || w->image_named == NULL)
		return -UNI_ENOMEM;
	if (w->arcs.nr != 0)
		qsort(w->arcs.v, w->arcs.nr, sizeof(w->arcs.v[0]), arc_order);
	if (w->selfs.nr != 0)
		qsort(w->selfs.v, w->selfs.nr, sizeof(w->selfs.v[0]), self_order);
	put_header(w, v);
	put_functions(w);
	if (w->rounded != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost, "%" PRIu64 " value%s rounded to whole numbers\n",
			w->rounded, w->rounded == 1 ? " was" : "s were");
	return 0;
}

static int write_callgrind(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { .p = v->profile, .out = out };
	int rc = uni_export_opts_parse(&uni_exporter_callgrind, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_callgrind, v, err);
	if (rc != 0)
		return rc;
	w.two = uni_profile_has_second(w.p);
	rc = write_callgrind_body(&w, v);
	uni_strtab_destroy(w.funcs);
	uni_strtab_destroy(w.keys);
	uni_vec_free(&w.frame_of);
	uni_vec_free(&w.arcs);
	uni_vec_free(&w.selfs);
	uni_vec_free(&w.path);
	free(w.func_of);
	free(w.named);
	free(w.file_named);
	free(w.image_named);
	return rc == 0 ? 0 : uni_err_nomem(err);
}
