/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "page/near.h"
#include "page/parts.h"
#include "page/prune.h"
#include "page/samples_priv.h"

/* In the order of time, differences are small, and never negative. */
void uni_samples_put(struct uni_sample_adder *a, const struct uni_near_one *o)
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

static int add_near_sample(struct uni_sample_adder *a, const struct uni_near_one *o)
{
	if (a->near.max != 0)
		return uni_near_add(&a->near, o);
	if (a->nr < a->max)
		uni_samples_put(a, o);
	else
		++*a->left_out;
	return 0;
}

struct uni_near_one uni_near_of_sample(const struct uni_sample *s, uint32_t node)
{
	return (struct uni_near_one){ .t_ns = s->t_ns,
		.node = node,
		.guest = s->guest,
		.vcpu = uni_state_is_off_cpu(s->state) ? 0 : s->vcpu + 1,
		.thread = s->thread,
		.kind = s->state,
		.sum = { s->weight, s->pause_ns } };
}

struct uni_near_one uni_near_of_exit(const struct uni_stream_exit *e, uint32_t node)
{
	uint64_t asleep = uni_min(e->asleep_ns, e->host_ns);

	return (struct uni_near_one){ .t_ns = e->t_ns,
		.node = node,
		.guest = e->guest,
		.vcpu = e->vcpu + 1,
		.kind = e->userspace,
		.sum = { e->weight, e->host_ns, asleep,
			uni_min(e->stolen_ns, e->host_ns - asleep) } };
}

static int add_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	const struct uni_near_one o = uni_near_of_sample(s, node);

	return add_near_sample(ctx, &o);
}

static int add_exit(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	const struct uni_near_one o = uni_near_of_exit(e, node);

	return add_near_sample(ctx, &o);
}

/* Only served data have these limits: *tree may become a smaller tree. */
static int put_near(struct uni_sample_adder *a, uint32_t nodes, struct uni_profile **tree)
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
		uni_samples_put(a, &a->near.v.v[i]);
	if (to == NULL)
		return 0;
	a->info->flat = nr - uni_min(nr, (uint32_t)uni_profile_nr_nodes(to));
	uni_profile_destroy(*tree);
	*tree = to;
	return uni_profile_finish(to);
}

static uint64_t count_missing(const struct uni_recording *rec, enum uni_build_what what,
	const struct uni_build_read *read)
{
	const struct uni_record_stats *st = uni_recording_stats(rec);
	uint64_t all = what == UNI_BUILD_SAMPLES ? st->samples : st->exits;
	uint64_t got = what == UNI_BUILD_SAMPLES ? read->samples : read->exits;

	return uni_recording_was_closed(rec) && got < all ? all - got : 0;
}

static int read_all(struct uni_sample_adder *a, struct uni_blob *b, const struct uni_page_input *in,
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
		rc = uni_err_nomem(err);
	uni_near_deinit(&a->near);
	if (rc != 0)
		return rc;
	ret->torn += read.torn;
	ret->missing += count_missing(in->rec, opts->what, &read);
	uni_part_tree(b, opts->what == UNI_BUILD_SAMPLES ? "s" : "x", *tree);
	return 0;
}

void uni_samples_columns(struct uni_sample_adder *a, struct uni_blob *b, enum uni_build_what what)
{
	const struct {
		const char *name;
		struct uni_column **c;
	} samples[] = { { "s.time", &a->time }, { "s.node", &a->node }, { "s.guest", &a->guest },
		{ "s.vcpu", &a->vcpu }, { "s.weight", &a->weight }, { "s.state", &a->kind },
		{ "s.thread", &a->thread }, { "s.pause", &a->pause } },
	  exits[] = { { "x.time", &a->time }, { "x.node", &a->node }, { "x.guest", &a->guest },
		  { "x.vcpu", &a->vcpu }, { "x.weight", &a->weight }, { "x.user", &a->kind },
		  { "x.host", &a->host }, { "x.asleep", &a->asleep }, { "x.stolen", &a->stolen } };

	for (size_t i = 0; what == UNI_BUILD_SAMPLES && i < uni_array_len(samples); i++)
		*samples[i].c = uni_blob_column(b, samples[i].name);
	for (size_t i = 0; what != UNI_BUILD_SAMPLES && i < uni_array_len(exits); i++)
		*exits[i].c = uni_blob_column(b, exits[i].name);
}

static int read_samples(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	struct uni_sample_adder a = { .info = &ret->samples };
	struct uni_build_opts opts = *in->opts;

	opts.what = UNI_BUILD_SAMPLES;
	uni_samples_columns(&a, b, opts.what);
	return read_all(&a, b, in, &opts, ret, err);
}

static int read_exits(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	struct uni_sample_adder a = { .info = &ret->exits };
	struct uni_build_opts opts = *in->opts;

	opts.what = UNI_BUILD_EXITS;
	uni_samples_columns(&a, b, opts.what);
	return read_all(&a, b, in, &opts, ret, err);
}

bool uni_part_has_exits(const struct uni_recording *rec)
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

	return rc == 0 && uni_part_has_exits(in->rec) ? read_exits(b, in, ret, err) : rc;
}

void uni_part_samples_deinit(struct uni_part_samples *s)
{
	if (!s->samples.borrowed)
		uni_profile_destroy(s->samples.tree);
	if (!s->exits.borrowed)
		uni_profile_destroy(s->exits.tree);
}
