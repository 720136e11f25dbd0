/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "profile/build.h"

#define NO_PERIOD_NS 1e3 /* used if the duration of a sample is not known */
#define MAX_NS	     9e18

static uint64_t track_hash(const struct uni_row_track *t)
{
	return uni_hash_pair((uint64_t)t->guest << 32 | t->vcpu,
		(uint64_t)t->thread << 2 | (uint64_t)t->is_lane << 1 | (uint64_t)t->off_cpu);
}

static bool track_equal(const struct uni_row_track *a, const struct uni_row_track *b)
{
	return a->guest == b->guest && a->vcpu == b->vcpu && a->thread == b->thread &&
	       a->off_cpu == b->off_cpu && a->is_lane == b->is_lane;
}

static size_t probe_track(const struct uni_rows *r, const struct uni_row_track *t)
{
	size_t mask = r->nr_slots - 1, i = (size_t)(track_hash(t) >> 9) & mask;

	while (r->slots[i] != 0 && !track_equal(&r->tracks.v[r->slots[i] - 1], t))
		i = (i + 1) & mask;
	return i;
}

static bool grow_tracks(struct uni_rows *r)
{
	size_t nr = r->nr_slots == 0 ? 64 : r->nr_slots * 2;
	uint32_t *slots = calloc(nr, sizeof(*slots));

	if (slots == NULL)
		return false;
	free(r->slots);
	r->slots = slots;
	r->nr_slots = nr;
	for (size_t i = 0; i < r->tracks.nr; i++)
		r->slots[probe_track(r, &r->tracks.v[i])] = (uint32_t)i + 1;
	return true;
}

static bool add_lane(struct uni_rows *r, struct uni_row_track *t);

/* Its index, or UINT32_MAX. Lanes are in the same table, as tracks of their own. */
static uint32_t find_track(struct uni_rows *r, struct uni_row_track t)
{
	size_t i;

	if ((r->tracks.nr + 2) * 2 > r->nr_slots && !grow_tracks(r))
		return UINT32_MAX;
	i = probe_track(r, &t);
	if (r->slots[i] != 0)
		return r->slots[i] - 1;
	if (!add_lane(r, &t))
		return UINT32_MAX;
	i = probe_track(r, &t);
	if (!uni_vec_push(&r->tracks, t))
		return UINT32_MAX;
	r->slots[i] = (uint32_t)r->tracks.nr;
	return (uint32_t)r->tracks.nr - 1;
}

static bool add_lane(struct uni_rows *r, struct uni_row_track *t)
{
	struct uni_row_track own = { .guest = t->guest, .thread = t->thread, .is_lane = true };
	struct uni_row_lane lane = { .guest = t->guest, .thread = t->thread };
	uint32_t found;

	lane.vcpu = own.vcpu = t->thread != 0 ? 0 : t->vcpu;
	if (t->is_lane) {
		t->lane = (uint32_t)r->lanes.nr;
		return uni_vec_push(&r->lanes, lane);
	}
	found = find_track(r, own);
	if (found == UINT32_MAX)
		return false;
	t->lane = r->tracks.v[found].lane;
	return true;
}

int uni_rows_push(struct uni_rows *r, struct uni_row row, const struct uni_row_track *t)
{
	row.track = find_track(r, *t);
	if (row.track == UINT32_MAX || r->rows.nr >= UINT32_MAX)
		return -UNI_ENOMEM;
	row.lane = r->tracks.v[row.track].lane;
	r->lanes.v[row.lane].nr++;
	return uni_vec_push(&r->rows, row) ? 0 : -UNI_ENOMEM;
}

static int add_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	bool off = uni_state_is_off_cpu(s->state);
	struct uni_row row = { .t_ns = s->t_ns,
		.value = (double)s->weight,
		.node = node,
		.pause_ns = s->pause_ns,
		.state = s->state };

	return uni_rows_push(ctx, row,
		&(struct uni_row_track){ .guest = s->guest,
			.vcpu = off ? 0 : s->vcpu,
			.thread = s->thread,
			.off_cpu = off });
}

static int from_recording(struct uni_rows *r, const struct uni_view *v, struct uni_err *err)
{
	struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	const struct uni_record_meta *meta = uni_recording_meta(v->samples);
	const struct uni_build_watch watch = { .ctx = r, .sample = add_sample };

	if (v->build != NULL)
		opts = *v->build;
	if (v->filter != NULL)
		opts.filter = *v->filter;
	opts.symtab = v->symtab;
	opts.naming.mangled = opts.naming.mangled || v->mangled;
	opts.no_guest_roots = true;
	opts.watch = &watch;
	r->timed = true;
	r->unit_ns =
		meta->frequency > 0.0 ? (double)UNI_NSEC_PER_SEC / meta->frequency : NO_PERIOD_NS;
	r->rec = v->samples;
	r->nr_guests = uni_recording_nr_guests(v->samples);
	return uni_profile_build(v->samples, &opts, &r->owned, NULL, err);
}

/* Stacks one after the other, in the order of the tree. */
static int from_profile(struct uni_rows *r, const struct uni_view *v)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1.0 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	const struct uni_profile *p = v->profile;
	double at = 0.0;

	r->unit_ns = NO_PERIOD_NS;
	r->nr_guests = 1;
	for (size_t i = 0; i < uni_array_len(units); i++) {
		if (strcmp(units[i].unit, uni_profile_unit(p)) == 0) {
			r->unit_ns = units[i].ns;
			r->is_time = true;
		}
	}
	for (size_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		double self = uni_profile_has_second(p) ? uni_profile_self2(p, (uint32_t)i)
							: uni_profile_node(p, (uint32_t)i)->self;
		struct uni_row row = { .t_ns = (uint64_t)fmin(at, MAX_NS), .node = (uint32_t)i };

		row.value = self;
		if (self <= 0.0)
			continue;
		if (uni_rows_push(r, row, &(struct uni_row_track){ 0 }) != 0)
			return -UNI_ENOMEM;
		at += self * r->unit_ns;
	}
	return 0;
}

int uni_rows_init(struct uni_rows *r, const struct uni_view *v, struct uni_err *err)
{
	bool samples = v->samples != NULL && !uni_recording_meta(v->samples)->aggregate &&
		       (v->build == NULL || v->build->what == UNI_BUILD_SAMPLES);
	int rc;

	memset(r, 0, sizeof(*r));
	r->title = v->title;
	rc = samples ? from_recording(r, v, err) : from_profile(r, v);
	r->p = r->owned != NULL ? r->owned : v->profile;
	return rc == -UNI_ENOMEM ? uni_err_nomem(err) : rc;
}

void uni_rows_deinit(struct uni_rows *r)
{
	uni_profile_destroy(r->owned);
	uni_vec_free(&r->rows);
	uni_vec_free(&r->tracks);
	uni_vec_free(&r->lanes);
	free(r->slots);
	memset(r, 0, sizeof(*r));
}

void uni_rows_say(const struct uni_rows *r, const struct uni_view *v)
{
	if (!r->timed && v->lost != NULL)
		uni_strbuf_adds(v->lost,
			"there are no times: the stacks are written one after the other\n");
}

void uni_rows_guest(const struct uni_rows *r, uint32_t guest, char ret[UNI_TEXT_MAX])
{
	char name[UNI_GUEST_NAME_MAX] = "profile";

	if (r->rec != NULL)
		uni_recording_guest_name(r->rec, guest, name);
	else if (r->tl != NULL && r->title != NULL)
		(void)snprintf(name, sizeof(name), "%s", r->title);
	(void)uni_text_clean(ret, UNI_TEXT_MAX, name, strlen(name));
}

void uni_rows_thread(
	const struct uni_rows *r, uint32_t guest, uint32_t thread, char ret[UNI_TEXT_MAX])
{
	char name[UNI_GUEST_NAME_MAX] = "";
	struct uni_recorded_guest g;

	if (r->rec != NULL && thread != 0) {
		g = uni_recording_guest(r->rec, guest);
		uni_record_thread_name(g.thread, g.nr_thread, thread, name);
	}
	(void)uni_text_clean(ret, UNI_TEXT_MAX, name, strlen(name));
}

/* Names as speedscope shows them: threads of the same name differ by their number. */
static void name_of_caller(const struct uni_rows *r, uint32_t thread, char ret[UNI_TEXT_MAX])
{
	uint64_t number;
	const char *name = r->tl->thread(r->tl->ctx, thread, &number);

	(void)snprintf(ret, UNI_TEXT_MAX, "%s-%" PRIu64, name, number);
}

void uni_rows_lane(const struct uni_rows *r, uint32_t lane, char ret[UNI_TEXT_MAX])
{
	const struct uni_row_lane *l = &r->lanes.v[lane];

	if (r->tl != NULL)
		name_of_caller(r, l->thread - 1, ret);
	else if (l->thread != 0)
		uni_rows_thread(r, l->guest, l->thread, ret);
	else if (r->rec != NULL)
		(void)snprintf(ret, UNI_TEXT_MAX, "vcpu %" PRIu32, l->vcpu);
	else
		uni_rows_guest(r, 0, ret);
}

uint64_t uni_row_ns(const struct uni_rows *r, const struct uni_row *row)
{
	return (uint64_t)fmin(round(row->value * r->unit_ns), MAX_NS);
}

uint32_t *uni_rows_by_lane(const struct uni_rows *r)
{
	_cleanup_free_ size_t *at = calloc(r->lanes.nr + 1, sizeof(*at));
	uint32_t *ret = calloc(r->rows.nr + 1, sizeof(*ret));

	if (at == NULL || ret == NULL) {
		free(ret);
		return NULL;
	}
	for (size_t i = 1; i < r->lanes.nr; i++)
		at[i] = at[i - 1] + r->lanes.v[i - 1].nr;
	for (size_t i = 0; i < r->rows.nr; i++)
		ret[at[r->rows.v[i].lane]++] = (uint32_t)i;
	return ret;
}

bool uni_row_stack(struct uni_row_stack *s, const struct uni_profile *p, uint32_t node)
{
	s->frames.nr = 0;
	for (; node != UNI_NODE_ROOT; node = uni_profile_node(p, node)->parent) {
		if (!uni_vec_push(&s->frames, uni_profile_node(p, node)->frame))
			return false;
	}
	return true;
}
