/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/exits.h"

#include <string.h>

#include "base/checked.h"
#include "profile/build.h"

static int add_exit(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	struct uni_exit_rows *r = ctx;
	const struct uni_exit_lane lane = { .guest = e->guest, .vcpu = e->vcpu };
	uint64_t weight = uni_max(e->weight, UINT64_C(1));
	struct uni_exit_row row = { .t_ns = e->t_ns,
		.host_ns = e->host_ns / weight,
		.weight = weight,
		/* Until the tree is finished a frame is only known through its node. */
		.frame = node };

	while (row.lane < r->lanes.nr &&
		(r->lanes.v[row.lane].guest != e->guest || r->lanes.v[row.lane].vcpu != e->vcpu))
		row.lane++;
	if (row.lane == r->lanes.nr && !uni_vec_push(&r->lanes, lane))
		return -UNI_ENOMEM;
	r->lanes.v[row.lane].nr++;
	return uni_vec_push(&r->rows, row) ? 0 : -UNI_ENOMEM;
}

bool uni_view_has_exits(const struct uni_view *v)
{
	if (v->samples == NULL || uni_recording_meta(v->samples)->aggregate ||
		(v->build != NULL && v->build->what != UNI_BUILD_SAMPLES))
		return false;
	for (uint32_t i = 0; i < uni_recording_nr_guests(v->samples); i++) {
		if (uni_recording_guest(v->samples, i).meta->exits_every != 0)
			return true;
	}
	return false;
}

int uni_exit_rows_init(struct uni_exit_rows *r, const struct uni_view *v, struct uni_err *err)
{
	const struct uni_build_watch watch = { .ctx = r, .exit = add_exit };
	struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	int rc;

	memset(r, 0, sizeof(*r));
	if (!uni_view_has_exits(v))
		return 0;
	if (v->build != NULL)
		opts = *v->build;
	if (v->filter != NULL)
		opts.filter = *v->filter;
	opts.what = UNI_BUILD_EXITS;
	opts.symtab = v->symtab;
	opts.no_guest_roots = true;
	opts.watch = &watch;
	rc = uni_profile_build(v->samples, &opts, &r->p, NULL, err);
	for (size_t i = 0; rc == 0 && i < r->rows.nr; i++)
		r->rows.v[i].frame = uni_profile_node(r->p, r->rows.v[i].frame)->frame;
	return rc;
}

void uni_exit_rows_deinit(struct uni_exit_rows *r)
{
	uni_profile_destroy(r->p);
	uni_vec_free(&r->rows);
	uni_vec_free(&r->lanes);
	memset(r, 0, sizeof(*r));
}

const char *uni_exit_row_name(const struct uni_exit_rows *r, uint32_t frame)
{
	return uni_profile_str(r->p, uni_profile_get_frame(r->p, frame)->name);
}
