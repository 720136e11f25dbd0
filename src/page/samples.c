/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "page/near.h"
#include "page/parts.h"
#include "page/prune.h"

/* Of samples what uni_near_one.kind is: their state; of exits: did the VMM have to handle it? */
struct adder {
	uint64_t last_ns, nr, max;
	uint64_t *left_out;
	struct uni_part_tree_info *info;
	struct uni_near near;
	struct uni_column *time, *node, *guest, *vcpu, *weight, *kind;
	struct uni_column *thread, *pause;	   /* of samples */
	struct uni_column *host, *asleep, *stolen; /* of exits */
};

/* What comes in the order of time has differences that are small, and never negative. */
static void put(struct adder *a, const struct uni_near_one *o)
{
	uint64_t t_ns = a->nr++ == 0 ? o->t_ns : uni_max(o->t_ns, a->last_ns);

	if (a->nr == 1)
		a->info->first_ns = a->last_ns = t_ns;
	uni_column_put(a->time, t_ns - a->last_ns);
	a->last_ns = t_ns;
	uni_column_put(a->node, o->node);
	uni_column_put(a->guest, o->guest);
	uni_column_put(a->vcpu, o->vcpu);
	uni_column_put(a->weight, o->sum[0]);
	uni_column_put(a->kind, o->kind);
	uni_column_put(a->thread, o->thread);
	uni_column_put(a->pause, o->sum[1]);
	uni_column_put(a->host, o->sum[1]);
	uni_column_put(a->asleep, uni_min(o->sum[2], o->sum[1]));
	uni_column_put(a->stolen, o->sum[3]);
}

static int add(struct adder *a, const struct uni_near_one *o)
{
	if (a->near.max != 0)
		return uni_near_add(&a->near, o);
	if (a->nr < a->max)
		put(a, o);
	else
		++*a->left_out;
	return 0;
}

static int add_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	const struct uni_near_one o = { .t_ns = s->t_ns,
		.node = node,
		.guest = s->guest,
		.vcpu = uni_state_is_off_cpu(s->state) ? 0 : s->vcpu + 1,
		.thread = s->thread,
		.kind = s->state,
		.sum = { s->weight, s->pause_ns } };

	return add(ctx, &o);
}

static int add_exit(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	const struct uni_near_one o = { .t_ns = e->t_ns,
		.node = node,
		.guest = e->guest,
		.vcpu = e->vcpu + 1,
		.kind = e->userspace,
		.sum = { e->weight, e->host_ns, uni_min(e->asleep_ns, e->host_ns), e->stolen_ns } };

	return add(ctx, &o);
}

/* Only what is served is bounded in these: *tree may become a smaller one. */
static int put_near(struct adder *a, uint32_t nodes, struct uni_profile **tree)
{
	const uint32_t nr = (uint32_t)uni_profile_nr_nodes(*tree);
	_cleanup_free_ uint64_t *total = calloc((size_t)nr + 1, sizeof(*total));
	_cleanup_free_ uint32_t *map = NULL;
	struct uni_profile *to = NULL;
	int rc;

	if (a->near.max == 0)
		return 0;
	if (total == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 0; i < nr; i++)
		total[i] = (uint64_t)uni_profile_node(*tree, i)->total;
	rc = nodes != 0 ? uni_page_prune(*tree, total, nodes, &map, &to) : 0;
	if (rc != 0)
		return rc;
	uni_near_end(&a->near, map);
	a->info->near_ns = a->near.within_ns;
	for (size_t i = 0; i < a->near.v.nr; i++)
		put(a, &a->near.v.v[i]);
	if (to == NULL)
		return 0;
	a->info->flat = nr - uni_min(nr, (uint32_t)uni_profile_nr_nodes(to));
	uni_profile_destroy(*tree);
	*tree = to;
	return uni_profile_finish(to);
}

static uint64_t missing(const struct uni_recording *rec, enum uni_build_what what,
	const struct uni_build_read *read)
{
	const struct uni_record_stats *st = uni_recording_stats(rec);
	uint64_t all = what == UNI_BUILD_SAMPLES ? st->samples : st->exits;
	uint64_t got = what == UNI_BUILD_SAMPLES ? read->samples : read->exits;

	return uni_recording_was_closed(rec) && got < all ? all - got : 0;
}

static int read_all(struct adder *a, struct uni_blob *b, const struct uni_page_input *in,
	const struct uni_build_opts *opts, struct uni_part_samples *ret, struct uni_err *err)
{
	const struct uni_build_watch watch = { .ctx = a, .sample = add_sample, .exit = add_exit };
	struct uni_build_opts watched = *opts;
	struct uni_profile **tree = &a->info->tree;
	struct uni_build_read read;
	int rc;

	a->left_out = &ret->left_out;
	a->max = in->max_samples != 0 ? in->max_samples : UNI_PAGE_SAMPLES_MAX;
	a->near.max = in->whole.samples;
	watched.watch = &watch;
	rc = uni_profile_build(in->rec, &watched, tree, &read, err);
	if (rc == 0 && put_near(a, in->whole.nodes, tree) != 0)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
	uni_near_deinit(&a->near);
	if (rc != 0)
		return rc;
	ret->torn += read.torn;
	ret->missing += missing(in->rec, opts->what, &read);
	uni_part_tree(b, opts->what == UNI_BUILD_SAMPLES ? "s" : "x", *tree);
	return 0;
}

static int read_samples(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	struct adder a = { .info = &ret->samples,
		.time = uni_blob_column(b, "s.time"),
		.node = uni_blob_column(b, "s.node"),
		.guest = uni_blob_column(b, "s.guest"),
		.vcpu = uni_blob_column(b, "s.vcpu"),
		.weight = uni_blob_column(b, "s.weight"),
		.thread = uni_blob_column(b, "s.thread"),
		.kind = uni_blob_column(b, "s.state"),
		.pause = uni_blob_column(b, "s.pause") };
	struct uni_build_opts opts = *in->opts;

	opts.what = UNI_BUILD_SAMPLES;
	return read_all(&a, b, in, &opts, ret, err);
}

static int read_exits(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	struct adder a = { .info = &ret->exits,
		.time = uni_blob_column(b, "x.time"),
		.node = uni_blob_column(b, "x.node"),
		.guest = uni_blob_column(b, "x.guest"),
		.vcpu = uni_blob_column(b, "x.vcpu"),
		.weight = uni_blob_column(b, "x.weight"),
		.host = uni_blob_column(b, "x.host"),
		.asleep = uni_blob_column(b, "x.asleep"),
		.stolen = uni_blob_column(b, "x.stolen"),
		.kind = uni_blob_column(b, "x.user") };
	struct uni_build_opts opts = *in->opts;

	opts.what = UNI_BUILD_EXITS;
	return read_all(&a, b, in, &opts, ret, err);
}

static bool has_exits(const struct uni_recording *rec)
{
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		if (uni_recording_guest(rec, i).meta->exits_every != 0)
			return true;
	}
	return false;
}

int uni_part_samples(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	int rc = read_samples(b, in, ret, err);

	return rc == 0 && has_exits(in->rec) ? read_exits(b, in, ret, err) : rc;
}

void uni_part_samples_deinit(struct uni_part_samples *s)
{
	uni_profile_destroy(s->samples.tree);
	uni_profile_destroy(s->exits.tree);
}
