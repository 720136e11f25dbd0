/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "top/rates.h"
#include "profile/focus.h"

#define TREE_LINES   2000u
#define TREE_PERCENT 0.1

int uni_top_init(struct uni_top *top, const struct uni_top_setup *setup)
{
	memset(top, 0, sizeof(*top));
	top->setup = *setup;
	memcpy(top->first_vcpu, setup->guests.first_vcpu,
		(setup->guests.nr + 1) * sizeof(top->first_vcpu[0]));
	top->setup.guests.first_vcpu = top->first_vcpu;
	top->start_ns = setup->start_ns;
	top->guest = top->vcpu = -1;
	top->quality.host_ns = top->quality.guest_ns = -1.0;
	top->selected = SIZE_MAX;
	top->history = uni_history_create(setup->memory_bytes);
	return top->history != NULL ? 0 : -UNI_ENOMEM;
}

static void drop_focus(struct uni_top *top)
{
	uni_outline_deinit(&top->outline);
	uni_profile_destroy(top->focus);
	top->focus = NULL;
}

void uni_top_deinit(struct uni_top *top)
{
	drop_focus(top);
	free(top->rows);
	uni_profile_destroy(top->profile);
	uni_history_destroy(top->history);
	top->rows = NULL;
	top->profile = NULL;
	top->history = NULL;
}

void uni_top_add(struct uni_top *top, const struct uni_sample *s)
{
	if (uni_history_add(top->history, s) != 0)
		top->quality.dropped += s->weight;
}

uint32_t uni_top_nr_vcpus(const struct uni_top *top)
{
	return top->setup.guests.first_vcpu[top->setup.guests.nr];
}

struct uni_top_place uni_top_place(const struct uni_top *top, uint32_t i)
{
	const uint32_t *first = top->setup.guests.first_vcpu;
	uint32_t guest = 0;

	while (guest + 1 < top->setup.guests.nr && i >= first[guest + 1])
		guest++;
	return (struct uni_top_place){ .guest = guest, .vcpu = i - first[guest] };
}

const char *uni_top_row_name(const struct uni_top *top, size_t row)
{
	uint32_t frame = row < top->nr_rows ? top->rows[row].frame : UNI_NODE_NONE;

	if (frame == UNI_NODE_NONE)
		return "";
	return uni_profile_str(top->profile, uni_profile_get_frame(top->profile, frame)->name);
}

double uni_top_percent(const struct uni_top *top, double value)
{
	double all = top->profile != NULL ? uni_profile_total(top->profile) : 0.0;

	return all > 0.0 ? 100.0 * value / all : 0.0;
}

/* Frames have new numbers in each profile: the function is found by name and address. */
static bool is_selected(const struct uni_top *top, uint32_t frame)
{
	const struct uni_frame *f = uni_profile_get_frame(top->profile, frame);
	char name[UNI_TOP_NAME_MAX];

	if (top->selected_at != 0 && f->addr != top->selected_at)
		return false;
	(void)uni_text_clean(name, sizeof(name), uni_profile_str(top->profile, f->name),
		strlen(uni_profile_str(top->profile, f->name)));
	return strcmp(name, top->selected_name) == 0;
}

uint32_t uni_top_selected_frame(const struct uni_top *top)
{
	uint32_t nr = top->profile != NULL ? (uint32_t)uni_profile_nr_frames(top->profile) : 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (is_selected(top, i))
			return i;
	}
	return UNI_NODE_NONE;
}

static void remember_selected(struct uni_top *top, uint32_t frame)
{
	const struct uni_frame *f = uni_profile_get_frame(top->profile, frame);
	const char *name = uni_profile_str(top->profile, f->name);

	top->selected_at = f->addr;
	(void)uni_text_clean(top->selected_name, sizeof(top->selected_name), name, strlen(name));
}

static void find_row(struct uni_top *top)
{
	top->selected = SIZE_MAX;
	if (!top->held && top->nr_rows != 0) {
		top->selected = 0;
		remember_selected(top, top->rows[0].frame);
	}
	for (size_t i = 0; top->held && i < top->nr_rows; i++) {
		if (is_selected(top, top->rows[i].frame)) {
			top->selected = i;
			break;
		}
	}
}

static int focus_selected(struct uni_top *top)
{
	struct uni_outline_opts how = { .max_lines = TREE_LINES, .min_percent = TREE_PERCENT };
	uint32_t frame;
	int rc;

	drop_focus(top);
	if (!top->held && top->nr_rows == 0)
		return 0;
	frame = uni_top_selected_frame(top);
	if (frame == UNI_NODE_NONE)
		return 0;
	rc = uni_profile_focus(top->profile, frame, top->callers, &top->focus);
	return rc != 0 ? rc : uni_outline_init(&top->outline, top->focus, &how);
}

/* Rows and calls of the profile that there is. */
static int arrange_rows(struct uni_top *top)
{
	struct uni_func_row *rows = NULL;
	size_t nr = 0;
	int rc = uni_live_rows(top->profile, top->sort, top->filter, &rows, &nr);

	if (rc != 0)
		return rc;
	free(top->rows);
	top->rows = rows;
	top->nr_rows = nr;
	find_row(top);
	return focus_selected(top);
}

static struct uni_only only_of(int64_t choice)
{
	return (struct uni_only){ .chosen = choice >= 0, .nr = (uint64_t)choice };
}

/* The samples that are shown. */
static struct uni_live_opts shown_samples(const struct uni_top *top)
{
	struct uni_live_opts opts = { .until_ns = top->shown_ns,
		.filter = { .guest = only_of(top->guest),
			.vcpu = only_of(top->vcpu),
			.on_cpu = !top->idle },
		.naming = top->naming };

	/* Before the window is full, it is all that there is. */
	if (top->window_ns != 0 && top->shown_ns - top->start_ns > top->window_ns)
		opts.since_ns = top->shown_ns - top->window_ns;
	return opts;
}

int uni_top_each(
	const struct uni_top *top, int (*fn)(void *ctx, const struct uni_sample *s), void *ctx)
{
	const struct uni_live_opts opts = shown_samples(top);
	_cleanup_free_ struct uni_live_sums *sums = calloc(1, sizeof(*sums));

	if (sums == NULL)
		return -UNI_ENOMEM;
	return uni_live_each(top->history, &top->setup.guests, &opts, fn, ctx, sums);
}

static int rebuild_profile(struct uni_top *top)
{
	const struct uni_live_opts opts = shown_samples(top);
	struct uni_profile *p = NULL;
	int rc = uni_live_profile(top->history, &top->setup.guests, &opts, &p, &top->sums);

	if (rc != 0)
		return rc;
	drop_focus(top);
	uni_profile_destroy(top->profile);
	top->profile = p;
	top->from_ns = opts.since_ns != 0 ? opts.since_ns : top->start_ns;
	/* Its frames were the old profile's. */
	top->nr_rows = 0;
	return arrange_rows(top);
}

/* vCPUs were plugged in: moves the data of the others, so that each has its line. */
static void make_room(struct uni_top *top, const uint32_t *first)
{
	struct uni_feed_status *last = &top->last;

	for (uint32_t g = top->setup.guests.nr; g-- != 0;) {
		uint32_t from = top->first_vcpu[g], all = first[g + 1] - first[g];
		uint32_t nr = uni_min(top->first_vcpu[g + 1] - from, all), more = all - nr;

		memmove(&top->vcpus[first[g]], &top->vcpus[from], nr * sizeof(top->vcpus[0]));
		memmove(&last->vcpu[first[g]], &last->vcpu[from], nr * sizeof(last->vcpu[0]));
		memset(&top->vcpus[first[g] + nr], 0, more * sizeof(top->vcpus[0]));
		memset(&last->vcpu[first[g] + nr], 0, more * sizeof(last->vcpu[0]));
	}
	memcpy(top->first_vcpu, first, (top->setup.guests.nr + 1) * sizeof(*first));
}

static void follow_vcpus(struct uni_top *top, const uint32_t *first)
{
	for (uint32_t g = 0; g < top->setup.guests.nr; g++) {
		if (first[g + 1] - first[g] > top->first_vcpu[g + 1] - top->first_vcpu[g]) {
			make_room(top, first);
			return;
		}
	}
}

int uni_top_refresh(struct uni_top *top, uint64_t now_ns, const struct uni_feed_status *status)
{
	int rc;

	top->ended = status->ended;
	if (status->first_vcpu[top->setup.guests.nr] != 0)
		follow_vcpus(top, status->first_vcpu);
	if (top->frozen_ns == 0)
		top->shown_ns = now_ns;
	rc = rebuild_profile(top);
	if (rc == 0 && top->frozen_ns == 0)
		uni_top_rates(top, status);
	return rc;
}

int uni_top_again(struct uni_top *top)
{
	return top->profile != NULL ? rebuild_profile(top) : 0;
}

void uni_top_clear(struct uni_top *top, uint64_t now_ns)
{
	uni_history_clear(top->history);
	top->start_ns = now_ns;
	top->shown_ns = now_ns;
	if (top->frozen_ns != 0)
		top->frozen_ns = now_ns;
}

int uni_top_select(struct uni_top *top, size_t row)
{
	if (top->profile == NULL)
		return 0;
	top->held = row < top->nr_rows;
	if (top->held)
		remember_selected(top, top->rows[row].frame);
	find_row(top);
	return focus_selected(top);
}

int uni_top_select_frame(struct uni_top *top, uint32_t frame)
{
	if (top->profile == NULL || frame >= uni_profile_nr_frames(top->profile))
		return 0;
	top->held = true;
	remember_selected(top, frame);
	find_row(top);
	return focus_selected(top);
}

int uni_top_select_name(struct uni_top *top, const char *name)
{
	top->held = true;
	top->selected_at = 0;
	(void)uni_text_clean(top->selected_name, sizeof(top->selected_name), name, strlen(name));
	if (top->profile == NULL)
		return 0;
	find_row(top);
	return focus_selected(top);
}
