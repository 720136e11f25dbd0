/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/json.h"
#include "top/say.h"
#include "profile/text.h"

static void put_parts(struct uni_sink *out, const struct uni_say_parts *p, const char *between)
{
	for (size_t i = 0; i < p->nr; i++)
		uni_sink_printf(out, "%s%s", i != 0 ? between : "", p->v[i]);
	uni_sink_putc(out, '\n');
}

static void put_head(const struct uni_top *top, const struct uni_batch_opts *opts, uint64_t number,
	struct uni_sink *out)
{
	char window[UNI_SAY_MAX], settings[UNI_SAY_MAX], end[UNI_SAY_MAX];
	char doubt[UNI_QUALITY_METHOD];
	struct uni_say_parts parts;

	uni_say_window(window, sizeof(window), top);
	uni_say_settings(settings, sizeof(settings), top);
	uni_sink_printf(out, "%s: snapshot %" PRIu64 ", %s, %s, %s\n", opts->guest, number, window,
		settings, uni_say_whole(top));
	uni_say_quality(&parts, top);
	put_parts(out, &parts, ", ");
	for (uint32_t i = 0; i < uni_top_nr_vcpus(top); i++) {
		struct uni_top_place at = uni_top_place(top, i);

		uni_say_vcpu(&parts, &top->vcpus[i]);
		if (top->setup.guests.nr > 1)
			uni_sink_printf(out, "%s ", opts->names[at.guest].name);
		uni_sink_printf(out, "vCPU %-3" PRIu32 " ", at.vcpu);
		put_parts(out, &parts, "  ");
	}
	if (uni_say_doubt(doubt, top))
		uni_sink_printf(out, "NO PROFILE: %s\n", doubt);
	if (top->last.held[0] != '\0')
		uni_sink_printf(out, "%s\n", top->last.held);
	uni_say_end(end, sizeof(end), top);
	if (end[0] != '\0')
		uni_sink_printf(out, "%s\n", end);
}

static void put_rows(
	const struct uni_top *top, const struct uni_batch_opts *opts, struct uni_sink *out)
{
	size_t nr = opts->max_rows != 0 ? uni_min(opts->max_rows, top->nr_rows) : top->nr_rows;

	bool unsure = false;

	uni_sink_puts(out, "   SELF%  TOTAL%     SAMPLES  FUNCTION\n");
	for (size_t i = 0; i < nr; i++) {
		const struct uni_func_row *r = &top->rows[i];
		char number[UNI_NUMBER_MAX];

		uni_text_number(number, r->self);
		uni_sink_printf(out, "%8.2f%8.2f%12s  %s%s\n", uni_top_percent(top, r->self),
			uni_top_percent(top, r->total), number, uni_top_row_name(top, i),
			uni_profile_mark(top->profile, r->frame));
		unsure = unsure || uni_profile_mark(top->profile, r->frame)[0] != '\0';
	}
	if (nr < top->nr_rows)
		uni_sink_printf(out, "%8s %zu more\n", "and", top->nr_rows - nr);
	if (unsure)
		uni_sink_puts(out, UNI_UNSURE_LEGEND);
}

static void put_tree(const struct uni_top *top, struct uni_sink *out)
{
	uni_sink_printf(
		out, "%s %s\n", top->callers ? "who calls" : "calls of", top->selected_name);
	if (top->focus == NULL) {
		uni_sink_puts(out, "   no samples\n");
		return;
	}
	/* In the inverted tree, a caller's "self" would be the function's. */
	uni_sink_printf(out, "%s  TOTAL%%  FUNCTION\n", top->callers ? "        " : "   SELF%");
	for (size_t i = 0; i < top->outline.lines.nr; i++) {
		const struct uni_outline_line *l = &top->outline.lines.v[i];
		const struct uni_node *n = uni_profile_node(top->focus, l->node);

		if (l->node == UNI_NODE_ROOT)
			continue;
		if (top->callers)
			uni_sink_printf(out, "%8s", "");
		else
			uni_sink_printf(out, "%8.2f", uni_top_percent(top, n->self));
		uni_sink_printf(out, "%8.2f  ", uni_top_percent(top, n->total));
		for (uint32_t k = 0; k < l->indent; k++)
			uni_sink_puts(out, l->forked && k + 1 == l->indent ? "|- " : "|  ");
		uni_sink_printf(out, "%s%s\n", uni_profile_node_name(top->focus, l->node),
			uni_profile_mark(top->focus, n->frame));
	}
}

void uni_batch_text(const struct uni_top *top, const struct uni_batch_opts *opts, uint64_t number,
	struct uni_sink *out)
{
	put_head(top, opts, number, out);
	put_rows(top, opts, out);
	if (opts->tree)
		put_tree(top, out);
	uni_sink_putc(out, '\n');
}

static void json_known(struct uni_json *j, const char *key, double v)
{
	uni_json_key(j, key);
	if (v >= 0.0)
		uni_json_double(j, v);
	else
		uni_json_null(j);
}

static void json_quality(const struct uni_top *top, struct uni_json *j)
{
	const struct uni_top_quality *q = &top->quality;
	char doubt[UNI_QUALITY_METHOD];

	uni_json_key(j, "quality");
	uni_json_object(j);
	uni_json_kv(u64, j, "samples", q->samples);
	uni_json_kv(double, j, "rate", q->rate);
	uni_json_kv(double, j, "complete", q->complete);
	uni_json_kv(u64, j, "lost", q->lost);
	uni_json_kv(u64, j, "dropped", q->dropped);
	uni_json_kv(u64, j, "failed", q->failed);
	uni_json_kv(double, j, "skipped", q->skipped);
	uni_json_key(j, "pause");
	if (q->paused) {
		uni_json_object(j);
		uni_json_kv(u64, j, "p50_ns", q->p50_ns);
		uni_json_kv(u64, j, "p99_ns", q->p99_ns);
		uni_json_kv(u64, j, "max_ns", q->max_ns);
		uni_json_kv(double, j, "share", q->duty);
		uni_json_object_end(j);
	} else {
		uni_json_null(j);
	}
	json_known(j, "host_ns_per_sample", q->host_ns);
	json_known(j, "guest_ns_per_sample", q->guest_ns);
	uni_json_kv(double, j, "host_cpus", q->host_cpu);
	uni_json_key(j, "no_profile");
	if (uni_say_doubt(doubt, top))
		uni_json_str(j, doubt);
	else
		uni_json_null(j);
	uni_json_key(j, "held");
	if (top->last.held[0] != '\0')
		uni_json_str(j, top->last.held);
	else
		uni_json_null(j);
	uni_json_object_end(j);
}

static void json_vcpus(
	const struct uni_top *top, const struct uni_batch_opts *opts, struct uni_json *j)
{
	uni_json_key(j, "vcpus");
	uni_json_array(j);
	for (uint32_t i = 0; i < uni_top_nr_vcpus(top); i++) {
		const struct uni_top_vcpu *v = &top->vcpus[i];
		struct uni_top_place at = uni_top_place(top, i);

		uni_json_object(j);
		if (top->setup.guests.nr > 1)
			uni_json_kv(str, j, "guest_name", opts->names[at.guest].name);
		uni_json_kv(u64, j, "vcpu", at.vcpu);
		json_known(j, "guest", v->guest);
		json_known(j, "kvm", v->split || v->sampled ? v->kvm : -1.0);
		json_known(j, "vmm", v->vmm);
		if (v->unsampled > 0.0)
			json_known(j, "unsampled", v->unsampled);
		json_known(j, "idle", v->idle);
		json_known(j, "stolen", v->stolen);
		json_known(j, "exits_per_s", v->exits);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static void json_rows(
	const struct uni_top *top, const struct uni_batch_opts *opts, struct uni_json *j)
{
	size_t nr = opts->max_rows != 0 ? uni_min(opts->max_rows, top->nr_rows) : top->nr_rows;

	uni_json_key(j, "functions");
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++) {
		const struct uni_frame *f = uni_profile_get_frame(top->profile, top->rows[i].frame);

		uni_json_object(j);
		uni_json_kv(str, j, "name", uni_top_row_name(top, i));
		uni_json_kv(double, j, "self", top->rows[i].self);
		uni_json_kv(double, j, "total", top->rows[i].total);
		if (f->unsure != 0.0)
			uni_json_kv(double, j, "unsure", f->unsure / f->own);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
	uni_json_kv(u64, j, "functions_left_out", top->nr_rows - nr);
}

static void json_tree(const struct uni_top *top, struct uni_json *j)
{
	uni_json_key(j, "calls");
	uni_json_object(j);
	uni_json_kv(str, j, "of", top->selected_name);
	uni_json_kv(bool, j, "callers", top->callers);
	uni_json_key(j, "lines");
	uni_json_array(j);
	for (size_t i = 0; i < top->outline.lines.nr; i++) {
		const struct uni_outline_line *l = &top->outline.lines.v[i];
		const struct uni_node *n = uni_profile_node(top->focus, l->node);

		if (l->node == UNI_NODE_ROOT)
			continue;
		uni_json_object(j);
		uni_json_kv(u64, j, "depth", l->depth - 1);
		uni_json_kv(str, j, "name", uni_profile_node_name(top->focus, l->node));
		if (!top->callers)
			uni_json_kv(double, j, "self", n->self);
		uni_json_kv(double, j, "total", n->total);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
	uni_json_object_end(j);
}

void uni_batch_json(const struct uni_top *top, const struct uni_batch_opts *opts, uint64_t number,
	struct uni_sink *out)
{
	struct uni_json j;

	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(str, &j, "format", "uniscope-top");
	uni_json_kv(u64, &j, "version", 1);
	uni_json_kv(u64, &j, "snapshot", number);
	uni_json_kv(str, &j, "guest", opts->guest);
	uni_json_kv(double, &j, "from_s", (double)(top->from_ns - top->setup.start_ns) / 1e9);
	uni_json_kv(double, &j, "to_s", (double)(top->shown_ns - top->setup.start_ns) / 1e9);
	uni_json_kv(bool, &j, "ended", top->ended);
	uni_json_kv(
		double, &j, "total", top->profile != NULL ? uni_profile_total(top->profile) : 0.0);
	json_quality(top, &j);
	json_vcpus(top, opts, &j);
	json_rows(top, opts, &j);
	if (opts->tree)
		json_tree(top, &j);
	uni_json_object_end(&j);
	uni_sink_putc(out, '\n');
}
