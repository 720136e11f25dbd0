/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * speedscope's file format: the frames, and a "sampled" profile for each thread or vCPU, with its
 * samples in the order of time. The two columns of a differential are two profiles. Traced calls
 * are "evented" profiles (speedscope/calls.c).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "format/opts.h"
#include "format/rows.h"
#include "format/speedscope/calls.h"

struct writer {
	struct uni_rows rows;
	struct uni_json json;
	struct uni_row_stack stack;
	bool oom;
};

static int write_speedscope(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_speedscope = {
	.name = "speedscope",
	.ext = "speedscope.json",
	.mime = "application/json",
	.summary = "for speedscope.app: samples of each thread or vCPU in their order, or calls",
	.lost = "gaps between samples, on which vCPU a thread ran",
	.needs = UNI_NEEDS_PROFILE | UNI_TAKES_SAMPLES | UNI_TAKES_CALLS,
	.write = write_speedscope,
};

static void put_frames(struct writer *w)
{
	const struct uni_profile *p = w->rows.p;
	struct uni_json *j = &w->json;

	uni_json_key(j, "frames");
	uni_json_array(j);
	for (size_t i = 0; i < uni_profile_nr_frames(p); i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, (uint32_t)i);
		uint32_t file = f->file != 0 ? f->file : f->image;

		uni_json_object(j);
		uni_json_kv(str, j, "name", uni_profile_str(p, uni_frame_said(f)));
		if (file != 0)
			uni_json_kv(str, j, "file", uni_profile_str(p, file));
		if (f->line != 0)
			uni_json_kv(u64, j, "line", f->line);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

static const char *unit_of(const struct uni_rows *r)
{
	static const char *const known[][2] = { { "ns", "nanoseconds" }, { "us", "microseconds" },
		{ "ms", "milliseconds" }, { "s", "seconds" }, { "bytes", "bytes" } };

	if (r->timed)
		return "nanoseconds";
	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (strcmp(known[i][0], uni_profile_unit(r->p)) == 0)
			return known[i][1];
	}
	return "none";
}

static void put_value(struct uni_json *j, double v)
{
	if (v >= 0.0 && v == floor(v) && v < 9007199254740992.0)
		uni_json_u64(j, (uint64_t)v);
	else
		uni_json_double(j, v);
}

static void put_sample(struct writer *w, uint32_t node)
{
	w->oom = w->oom || !uni_row_stack(&w->stack, w->rows.p, node);
	uni_json_array(&w->json);
	for (size_t i = w->oom ? 0 : w->stack.frames.nr; i-- != 0;)
		uni_json_u64(&w->json, w->stack.frames.v[i]);
	uni_json_array_end(&w->json);
}

/* row[nr]: indices of rows; NULL: the first column of a differential's nodes. */
static void put_profile(struct writer *w, const char *name, const uint32_t *row, size_t nr)
{
	const struct uni_profile *p = w->rows.p;
	const struct uni_row *rows = w->rows.rows.v;
	struct uni_json *j = &w->json;
	double sum = 0.0;

	uni_json_object(j);
	uni_json_kv(str, j, "type", "sampled");
	uni_json_kv(str, j, "name", name);
	uni_json_kv(str, j, "unit", unit_of(&w->rows));
	uni_json_key(j, "samples");
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++) {
		if (row != NULL)
			put_sample(w, rows[row[i]].node);
		else if (uni_profile_node(p, (uint32_t)i)->self != 0.0)
			put_sample(w, (uint32_t)i);
	}
	uni_json_array_end(j);
	uni_json_key(j, "weights");
	uni_json_array(j);
	for (size_t i = 0; i < nr; i++) {
		double v = row == NULL	   ? uni_profile_node(p, (uint32_t)i)->self
			   : w->rows.timed ? (double)uni_row_ns(&w->rows, &rows[row[i]])
					   : rows[row[i]].value;

		if (row == NULL && v == 0.0)
			continue;
		put_value(j, v);
		sum += v;
	}
	uni_json_array_end(j);
	uni_json_kv(u64, j, "startValue", 0);
	uni_json_key(j, "endValue");
	put_value(j, sum);
	uni_json_object_end(j);
}

static void put_lanes(struct writer *w)
{
	_cleanup_free_ uint32_t *order = uni_rows_by_lane(&w->rows);
	char guest[UNI_TEXT_MAX], lane[UNI_TEXT_MAX];
	size_t at = 0;

	w->oom = w->oom || order == NULL;
	for (size_t i = 0; !w->oom && i < w->rows.lanes.nr; i++) {
		_cleanup_strbuf_ struct uni_strbuf name;

		uni_strbuf_init(&name);
		uni_rows_guest(&w->rows, w->rows.lanes.v[i].guest, guest);
		uni_rows_lane(&w->rows, (uint32_t)i, lane);
		if (w->rows.timed)
			uni_strbuf_addf(&name, "%s, %s", guest, lane);
		else
			uni_strbuf_adds(
				&name, uni_profile_has_second(w->rows.p) ? "after" : "profile");
		put_profile(w, name.s, order + at, w->rows.lanes.v[i].nr);
		at += w->rows.lanes.v[i].nr;
	}
}

static void put_document(struct writer *w, const struct uni_view *v)
{
	struct uni_json *j = &w->json;

	uni_json_object(j);
	uni_json_kv(str, j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	if (v->title != NULL)
		uni_json_kv(str, j, "name", v->title);
	uni_json_kv(str, j, "exporter", "uniscope");
	uni_json_key(j, "shared");
	uni_json_object(j);
	put_frames(w);
	uni_json_object_end(j);
	uni_json_key(j, "profiles");
	uni_json_array(j);
	put_lanes(w);
	if (uni_profile_has_second(w->rows.p))
		put_profile(w, "before", NULL, uni_profile_nr_nodes(w->rows.p));
	uni_json_array_end(j);
	uni_json_object_end(j);
	uni_sink_putc(j->out, '\n');
}

static int write_speedscope(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { 0 };
	int rc = uni_export_opts_parse(&uni_exporter_speedscope, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_speedscope, v, err);
	if (rc != 0)
		return rc;
	if (v->timeline != NULL)
		return uni_speedscope_calls(v, out, err);
	rc = uni_rows_init(&w.rows, v, err);
	if (rc == 0) {
		uni_json_init(&w.json, out, false);
		put_document(&w, v);
		if (w.oom)
			rc = uni_err_set(err, UNI_ENOMEM, "out of memory writing for speedscope");
	}
	uni_vec_free(&w.stack.frames);
	uni_rows_deinit(&w.rows);
	return rc;
}
