/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/checked.h"
#include "page/parts.h"

struct adder {
	uint64_t last_ns;
	uint64_t *first_ns;
	bool any;
	struct uni_column *time, *node, *guest, *vcpu, *weight;
	struct uni_column *thread, *state, *pause;	  /* of samples */
	struct uni_column *host, *asleep, *stolen, *user; /* of exits */
};

/* What comes in the order of time has differences that are small, and never negative. */
static void put_time(struct adder *a, uint64_t t_ns)
{
	if (!a->any)
		*a->first_ns = a->last_ns = t_ns;
	a->any = true;
	t_ns = uni_max(t_ns, a->last_ns);
	uni_column_put(a->time, t_ns - a->last_ns);
	a->last_ns = t_ns;
}

static int add_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	struct adder *a = ctx;

	put_time(a, s->t_ns);
	uni_column_put(a->node, node);
	uni_column_put(a->guest, s->guest);
	uni_column_put(a->vcpu, uni_state_is_off_cpu(s->state) ? 0 : s->vcpu + 1);
	uni_column_put(a->weight, s->weight);
	uni_column_put(a->thread, s->thread);
	uni_column_put(a->state, s->state);
	uni_column_put(a->pause, s->pause_ns);
	return 0;
}

static int add_exit(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	struct adder *a = ctx;

	put_time(a, e->t_ns);
	uni_column_put(a->node, node);
	uni_column_put(a->guest, e->guest);
	uni_column_put(a->vcpu, e->vcpu + 1);
	uni_column_put(a->weight, e->weight);
	uni_column_put(a->host, e->host_ns);
	uni_column_put(a->asleep, uni_min(e->asleep_ns, e->host_ns));
	uni_column_put(a->stolen, e->stolen_ns);
	uni_column_put(a->user, e->userspace);
	return 0;
}

static int read_samples(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	struct adder a = { .first_ns = &ret->first_sample,
		.time = uni_blob_column(b, "s.time"),
		.node = uni_blob_column(b, "s.node"),
		.guest = uni_blob_column(b, "s.guest"),
		.vcpu = uni_blob_column(b, "s.vcpu"),
		.weight = uni_blob_column(b, "s.weight"),
		.thread = uni_blob_column(b, "s.thread"),
		.state = uni_blob_column(b, "s.state"),
		.pause = uni_blob_column(b, "s.pause") };
	const struct uni_build_watch watch = { .ctx = &a, .sample = add_sample };
	struct uni_build_opts opts = *in->opts;
	struct uni_build_read read;
	int rc;

	opts.what = UNI_BUILD_SAMPLES;
	opts.watch = &watch;
	rc = uni_profile_build(in->rec, &opts, &ret->samples, &read, err);
	if (rc == 0)
		ret->torn += read.torn;
	if (rc == 0)
		uni_part_tree(b, "s", ret->samples);
	return rc;
}

static int read_exits(struct uni_blob *b, const struct uni_page_input *in,
	struct uni_part_samples *ret, struct uni_err *err)
{
	struct adder a = { .first_ns = &ret->first_exit,
		.time = uni_blob_column(b, "x.time"),
		.node = uni_blob_column(b, "x.node"),
		.guest = uni_blob_column(b, "x.guest"),
		.vcpu = uni_blob_column(b, "x.vcpu"),
		.weight = uni_blob_column(b, "x.weight"),
		.host = uni_blob_column(b, "x.host"),
		.asleep = uni_blob_column(b, "x.asleep"),
		.stolen = uni_blob_column(b, "x.stolen"),
		.user = uni_blob_column(b, "x.user") };
	const struct uni_build_watch watch = { .ctx = &a, .exit = add_exit };
	struct uni_build_opts opts = *in->opts;
	struct uni_build_read read;
	int rc;

	opts.what = UNI_BUILD_EXITS;
	opts.watch = &watch;
	rc = uni_profile_build(in->rec, &opts, &ret->exits, &read, err);
	if (rc == 0)
		ret->torn += read.torn;
	if (rc == 0)
		uni_part_tree(b, "x", ret->exits);
	return rc;
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
	uni_profile_destroy(s->samples);
	uni_profile_destroy(s->exits);
}
