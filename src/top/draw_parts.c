/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "top/screen.h"
#include "top/ui.h"
#include "profile/profile.h"

#define LABEL_WIDTH    8 /* "vCPU 63 " */
#define LABEL_NAME_MAX 20
#define LABEL_REST     10 /* "+512 more " */
#define METER_MIN      8  /* without its brackets */
#define METER_MAX      40
#define COLUMN_MIN     72 /* of the screen for one vCPU */
#define GAP	       3

/* A share of the meter, from `from` on; returns where it ends. */
static int draw_stretch(
	int row, int column, int width, double *sum, double share, enum uni_ink ink, char c)
{
	int from = (int)(*sum * width + 0.5), to;

	*sum += share > 0.0 ? share : 0.0;
	to = uni_min((int)(*sum * width + 0.5), width);
	uni_screen_fill(row, column + from, to - from, ink, c);
	return to;
}

/* [|||||||++**!!.....]: guest, KVM, VMM, stolen; the empty part was idle. */
static void draw_meter(int row, int column, int width, const struct uni_top_vcpu *v)
{
	double sum = 0.0;

	(void)uni_screen_put(row, column, 1, UNI_INK_KEY, "[");
	(void)draw_stretch(row, column + 1, width, &sum, v->guest, UNI_INK_GUEST, '|');
	if (v->split || v->sampled)
		(void)draw_stretch(row, column + 1, width, &sum, v->kvm, UNI_INK_KVM, '+');
	(void)draw_stretch(row, column + 1, width, &sum, v->vmm, UNI_INK_VMM, '*');
	(void)draw_stretch(row, column + 1, width, &sum, v->stolen, UNI_INK_STOLEN, '!');
	(void)uni_screen_put(row, column + width + 1, 1, UNI_INK_KEY, "]");
}

/* Layout of the vCPUs' lines, so that their columns align. */
struct layout {
	int label, meter;
	size_t nr; /* parts that have room while the meter keeps its least width */
	int part[UNI_SAY_PARTS_MAX]; /* the widest of each */
};

static void widen_layout(struct layout *l, const struct uni_top_vcpu *v)
{
	struct uni_say_parts parts;

	uni_say_vcpu(&parts, v);
	l->nr = uni_max(l->nr, parts.nr);
	for (size_t i = 0; i < parts.nr; i++)
		l->part[i] = uni_max(l->part[i], (int)strlen(parts.v[i]));
}

static void fit_layout(struct layout *l, int width)
{
	int room = width - l->label - 2, used = 0;
	size_t nr = 0;

	while (nr < l->nr && used + 2 + l->part[nr] <= room - METER_MIN)
		used += 2 + l->part[nr++];
	l->nr = nr;
	l->meter = uni_max(uni_min(room - used, METER_MAX), 0);
}

static void draw_vcpu(int row, int column, const char *label, const struct layout *l,
	const struct uni_top_vcpu *v)
{
	struct uni_say_parts parts;

	uni_say_vcpu(&parts, v);
	(void)uni_screen_put(row, column, l->label, UNI_INK_KEY, label);
	if (l->meter > 0)
		draw_meter(row, column + l->label, l->meter, v);
	column += l->label + l->meter + 2;
	for (size_t i = 0; i < uni_min(l->nr, parts.nr); i++) {
		(void)uni_screen_put(row, column + 2, l->part[i], UNI_INK_PLAIN, parts.v[i]);
		column += 2 + l->part[i];
	}
}

static double add_known(double sum, double v)
{
	return v < 0.0 ? sum : (sum < 0.0 ? 0.0 : sum) + v;
}

/* Many vCPUs in one line: the mean of those from `first` on of which something is known. */
static void draw_rest(const struct uni_top *top, int row, uint32_t first, uint32_t nr, int labels)
{
	struct uni_top_vcpu mean = {
		.guest = -1, .kvm = -1, .vmm = -1, .idle = -1, .stolen = -1, .exits = -1
	};
	struct layout l = { 0 };
	unsigned known = 0;
	char label[32];

	for (uint32_t i = first; i < nr; i++) {
		const struct uni_top_vcpu *v = &top->vcpus[i];

		known += v->guest >= 0.0;
		mean.guest = add_known(mean.guest, v->guest);
		mean.kvm = add_known(mean.kvm, v->kvm);
		mean.vmm = add_known(mean.vmm, v->vmm);
		mean.unsampled = add_known(mean.unsampled, v->unsampled);
		mean.idle = add_known(mean.idle, v->idle);
		mean.stolen = add_known(mean.stolen, v->stolen);
		mean.exits = add_known(mean.exits, v->exits);
		mean.split |= v->split;
		mean.sampled |= v->sampled;
	}
	if (known != 0) {
		mean.guest /= known;
		mean.kvm /= known;
		mean.vmm /= known;
		mean.unsampled /= known;
		mean.idle /= known;
		mean.stolen /= known;
	}
	(void)snprintf(label, sizeof(label), first == 0 ? "%" PRIu32 " vCPUs" : "+%" PRIu32 " more",
		nr - first);
	l.label = uni_max(labels, LABEL_REST);
	widen_layout(&l, &mean);
	fit_layout(&l, uni_screen_columns());
	draw_vcpu(row, 0, label, &l, &mean);
}

static int label_width(const struct uni_top_run *r)
{
	size_t longest = 0;

	for (uint32_t i = 0; r->nr_guests > 1 && i < r->nr_guests; i++)
		longest = uni_max(longest, strlen(r->guest[i].name));
	/* "name 12 " */
	return (int)uni_min(longest, (size_t)LABEL_NAME_MAX) + (longest != 0 ? 4 : LABEL_WIDTH);
}

static void make_label(char *out, size_t cap, const struct uni_top_run *r, uint32_t i)
{
	struct uni_top_place at = uni_top_place(&r->top, i);

	if (r->nr_guests > 1)
		(void)snprintf(out, cap, "%.*s %" PRIu32, LABEL_NAME_MAX, r->guest[at.guest].name,
			at.vcpu);
	else
		(void)snprintf(out, cap, "vCPU %" PRIu32, at.vcpu);
}

int uni_ui_draw_vcpus(const struct uni_top_run *r, int row, int height)
{
	uint32_t nr = uni_top_nr_vcpus(&r->top), shown;
	int columns = nr == 1 ? 1 : uni_max(uni_screen_columns() / COLUMN_MIN, 1);
	int width = (uni_screen_columns() - GAP * (columns - 1)) / columns, lines;
	struct layout l = { .label = label_width(r) };

	if (height <= 0 || nr == 0)
		return 0;
	lines = ((int)nr + columns - 1) / columns;
	if (lines <= height) {
		shown = nr;
	} else {
		lines = height;
		shown = (uint32_t)((height - 1) * columns);
		draw_rest(&r->top, row + height - 1, shown, nr, l.label);
	}
	for (uint32_t i = 0; i < shown; i++)
		widen_layout(&l, &r->top.vcpus[i]);
	fit_layout(&l, width);
	for (uint32_t i = 0; i < shown; i++) {
		char label[64];

		make_label(label, sizeof(label), r, i);
		draw_vcpu(row + (int)i / columns, (int)i % columns * (width + GAP), label, &l,
			&r->top.vcpus[i]);
	}
	return lines;
}

void uni_ui_draw_help(int row, int height)
{
	static const char *const lines[][2] = {
		{ "arrows, j k", "another function; it stays selected wherever it moves to" },
		{ "PgUp PgDn", "a page; Home: back to the hottest function, End: the last" },
		{ "Enter", "the function's code with samples at each instruction, and back" },
		{ "Tab", "to the calls below, and back; there Enter selects that function" },
		{ "c", "who calls the selected function, instead of what it calls" },
		{ "t", "hide or show the calls" },
		{ "/", "filter functions by name; Esc: show all again" },
		{ "o, 1 2 3", "order: by self time, by total time, by name" },
		{ "w W", "a longer, a shorter window of time; the last one is since the start" },
		{ "i", "count idle (halted or without a host CPU), too" },
		{ "v V", "only one vCPU, the next, the one before; all" },
		{ "m M", "only one guest, if there are several" },
		{ "Space, p", "pause: the picture stands still, sampling goes on" },
		{ "z", "forget what was sampled and start anew" },
		{ "s", "save what was seen as a session, for report and export" },
		{ "Ctrl-L", "draw the screen anew" },
		{ "q, Ctrl-C", "quit" },
		{ "", "" },
		{ "[|||+++**!!  ]",
			"busy (guest), KVM, VMM, stolen by the host; the rest was idle" },
		{ "~", UNI_UNSURE_MEANS },
	};

	for (int i = 0; i < height && (size_t)i < uni_array_len(lines); i++) {
		(void)uni_screen_put(row + i, 1, 15, UNI_INK_KEY, lines[i][0]);
		(void)uni_screen_put(
			row + i, 17, uni_screen_columns() - 17, UNI_INK_PLAIN, lines[i][1]);
	}
}
