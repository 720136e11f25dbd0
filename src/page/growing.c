/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Columns that grow. Their contents stay until near samples must be summed over a wider piece of
 * time. The last piece of time may still change. For a look it is put at the end, and the next look
 * removes it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "page/prune.h"
#include "page/samples_priv.h"

struct part {
	struct uni_build_opts opts;
	struct uni_build_watch watch;
	struct uni_builder *builder;
	struct uni_part_tree_info info;
	struct uni_sample_adder a;
	struct uni_blob blob;
	struct uni_column *parent, *frame;
	uint32_t nodes;		   /* in the columns, with the root */
	size_t put;		   /* samples of a.near in the columns */
	uint64_t widened;	   /* near.widened at the time they were put */
	uint64_t kept_ns, kept_nr; /* the adder's values, without the part that is not settled */
};

struct uni_page_growing {
	struct uni_recording *rec;
	struct uni_page_whole whole;
	struct part samples, exits;
	bool has_exits;
};

static int on_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	struct part *p = ctx;
	const struct uni_near_one o = uni_near_of_sample(s, node);

	return uni_near_add(&p->a.near, &o);
}

static int on_exit_seen(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	struct part *p = ctx;
	const struct uni_near_one o = uni_near_of_exit(e, node);

	return uni_near_add(&p->a.near, &o);
}

/* Makes empty columns. */
static void begin_columns(struct part *p)
{
	const bool samples = p->opts.what == UNI_BUILD_SAMPLES;

	uni_blob_deinit(&p->blob);
	memset(&p->blob, 0, sizeof(p->blob));
	uni_samples_columns(&p->a, &p->blob, p->opts.what);
	p->parent = uni_blob_column(&p->blob, samples ? "s.parent" : "x.parent");
	p->frame = uni_blob_column(&p->blob, samples ? "s.frame" : "x.frame");
	p->nodes = 1;
	p->put = 0;
	p->a.nr = p->kept_nr = 0;
	p->a.last_ns = p->kept_ns = 0;
	p->widened = p->a.near.widened;
}

static int begin_part(struct uni_page_growing *g, struct part *p, enum uni_build_what what,
	const struct uni_build_opts *opts)
{
	p->opts = *opts;
	p->opts.what = what;
	p->watch = (struct uni_build_watch){ .ctx = p, .sample = on_sample, .exit = on_exit_seen };
	p->opts.watch = &p->watch;
	p->a.info = &p->info;
	p->a.near.max = g->whole.samples;
	begin_columns(p);
	return uni_builder_of_recording(g->rec, &p->opts, &p->builder);
}

static void end_part(struct part *p)
{
	uni_builder_destroy(p->builder);
	uni_near_deinit(&p->a.near);
	uni_blob_deinit(&p->blob);
}

int uni_page_growing_create(struct uni_recording *rec, const struct uni_build_opts *opts,
	const struct uni_page_whole *whole, struct uni_page_growing **ret)
{
	struct uni_page_growing *g = calloc(1, sizeof(*g));
	int rc;

	if (g == NULL)
		return -UNI_ENOMEM;
	g->rec = rec;
	g->whole = *whole;
	g->has_exits = uni_part_has_exits(rec);
	rc = begin_part(g, &g->samples, UNI_BUILD_SAMPLES, opts);
	if (rc == 0 && g->has_exits)
		rc = begin_part(g, &g->exits, UNI_BUILD_EXITS, opts);
	if (rc != 0)
		uni_page_growing_destroy(g);
	else
		*ret = g;
	return rc;
}

void uni_page_growing_destroy(struct uni_page_growing *g)
{
	if (g == NULL)
		return;
	end_part(&g->samples);
	end_part(&g->exits);
	free(g);
}

int uni_page_growing_sample(void *growing, const struct uni_sample *s)
{
	struct uni_page_growing *g = growing;

	return uni_builder_add(g->samples.builder, s);
}

int uni_page_growing_exit(void *growing, const struct uni_stream_exit *e)
{
	struct uni_page_growing *g = growing;

	return g->has_exits ? uni_builder_add_exit(g->exits.builder, e) : 0;
}

/* From now on, the settled bytes are kept in compressed form. */
static void settle_part(struct part *p)
{
	for (size_t i = 0; i < p->blob.columns.nr; i++)
		p->blob.columns.v[i]->kept = p->blob.columns.v[i]->bytes.len;
	p->kept_ns = p->a.last_ns;
	p->kept_nr = p->a.nr;
}

/* Removes what the last look added after the settled part. */
static void unsettle_part(struct part *p)
{
	for (size_t i = 0; i < p->blob.columns.nr; i++) {
		struct uni_column *c = p->blob.columns.v[i];

		c->bytes.len = c->kept;
		if (c != p->parent && c != p->frame)
			c->nr = p->kept_nr;
	}
	p->a.last_ns = p->kept_ns;
	p->a.nr = p->kept_nr;
}

/* Puts the last piece of time as if it had ended. */
static int put_open(struct part *p, size_t from)
{
	const struct uni_near *n = &p->a.near;
	struct uni_near open = { .within_ns = n->within_ns, .first_ns = n->first_ns };
	int rc = 0;

	for (size_t i = from; rc == 0 && i < n->v.nr; i++)
		rc = uni_vec_push(&open.v, n->v.v[i]) ? 0 : -UNI_ENOMEM;
	uni_near_end(&open, NULL);
	for (size_t i = 0; rc == 0 && i < open.v.nr; i++)
		uni_samples_put(&p->a, &open.v.v[i]);
	uni_near_deinit(&open);
	return rc;
}

static int put_new(struct part *p)
{
	const struct uni_near *n = &p->a.near;
	size_t settled = n->within_ns != 0 ? n->from : n->v.nr;

	if (p->widened != n->widened)
		begin_columns(p);
	else
		unsettle_part(p);
	for (; p->put < settled; p->put++)
		uni_samples_put(&p->a, &n->v.v[p->put]);
	uni_part_nodes(p->parent, p->frame, uni_builder_profile(p->builder), &p->nodes);
	settle_part(p);
	p->info.near_ns = n->within_ns;
	return put_open(p, settled);
}

/* Adds up the sum of each node with its descendants. */
static void add_up(const struct uni_profile *tree, const struct uni_near *n, uint64_t *total)
{
	for (size_t i = 0; i < n->v.nr; i++)
		total[n->v.v[i].node] += n->v.v[i].sum[0];
	for (uint32_t i = (uint32_t)uni_profile_nr_nodes(tree); i-- > 1;)
		total[uni_profile_node(tree, i)->parent] += total[i];
}

/* If the tree is too large, all columns are made anew: another part of it may matter now. */
static int put_pruned(
	struct part *p, uint32_t max, struct uni_blob *b, struct uni_part_tree_info *ret)
{
	const struct uni_profile *tree = uni_builder_profile(p->builder);
	const struct uni_near *n = &p->a.near;
	_cleanup_free_ uint64_t *total = calloc(uni_profile_nr_nodes(tree) + 1, sizeof(*total));
	_cleanup_free_ uint32_t *map = NULL;
	struct uni_near all = { .within_ns = n->within_ns, .first_ns = n->first_ns };
	struct uni_sample_adder a = { .info = ret };
	int rc = -UNI_ENOMEM;

	ret->borrowed = false;
	ret->tree = NULL;
	if (total != NULL) {
		add_up(tree, n, total);
		rc = uni_page_prune(tree, total, max, &map, &ret->tree);
	}
	for (size_t i = 0; rc == 0 && i < n->v.nr; i++)
		rc = uni_vec_push(&all.v, n->v.v[i]) ? 0 : -UNI_ENOMEM;
	if (rc == 0)
		rc = uni_profile_finish(ret->tree);
	if (rc == 0) {
		ret->near_ns = n->within_ns;
		ret->flat = (uint32_t)(uni_profile_nr_nodes(tree) -
				       uni_min(uni_profile_nr_nodes(tree),
					       uni_profile_nr_nodes(ret->tree)));
		uni_near_end(&all, map);
		uni_samples_columns(&a, b, p->opts.what);
		for (size_t i = 0; i < all.v.nr; i++)
			uni_samples_put(&a, &all.v.v[i]);
		uni_part_tree(b, p->opts.what == UNI_BUILD_SAMPLES ? "s" : "x", ret->tree);
	}
	uni_near_deinit(&all);
	return rc;
}

static int put_part(
	struct part *p, uint32_t max, struct uni_blob *b, struct uni_part_tree_info *ret)
{
	const struct uni_profile *tree = uni_builder_profile(p->builder);
	int rc;

	if (max != 0 && uni_profile_nr_nodes(tree) > max)
		return put_pruned(p, max, b, ret);
	rc = put_new(p);
	*ret = p->info;
	ret->tree = (struct uni_profile *)(uintptr_t)tree;
	ret->borrowed = true;
	if (rc == 0)
		uni_blob_borrow(b, &p->blob);
	return rc;
}

int uni_part_growing(struct uni_blob *b, struct uni_page_growing *g, struct uni_part_samples *ret)
{
	int rc;

	uni_builder_set_threads(g->samples.builder, g->rec);
	rc = put_part(&g->samples, g->whole.nodes, b, &ret->samples);
	if (rc != 0 || !g->has_exits)
		return rc;
	uni_builder_set_threads(g->exits.builder, g->rec);
	return put_part(&g->exits, g->whole.nodes, b, &ret->exits);
}
