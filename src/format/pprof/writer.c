/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pprof's profile.proto, gzipped. Samples with the same stack and the same labels (vm, vcpu,
 * thread, state) are one. A location of a recording is an instruction, with all functions that are
 * inlined there. Without single samples it is a function's beginning. docs/formats/exchange.md.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pb.h"
#include "format/gz.h"
#include "format/opts.h"
#include "format/rows.h"
#include "profile/build.h"
#include "recording/recording.h"

enum { /* of Profile */
	P_SAMPLE_TYPE = 1,
	P_SAMPLE = 2,
	P_MAPPING = 3,
	P_LOCATION = 4,
	P_FUNCTION = 5,
	P_STRING = 6,
	P_TIME_NANOS = 9,
	P_DURATION_NANOS = 10,
	P_PERIOD_TYPE = 11,
	P_PERIOD = 12,
	P_COMMENT = 13,
};
#define FLUSH_BYTES ((size_t)1 << 20)

struct writer {
	struct uni_rows rows;
	struct uni_strtab *strings; /* number 0 is "", as the format wants it */
	struct uni_gz *gz;
	struct uni_strbuf b, part, sub;
	struct uni_row_stack stack;
	uint32_t *mapping_of; /* by the image's string: its mapping; 0: none yet */
	uint32_t *outer; /* by an inlined frame: the frame around it + 1, at the same address */
	const struct uni_view *v;
	uint64_t nr_mappings;
	bool oom, two; /* two: each sample has a second value */
	uint64_t rounded;
};

static int write_pprof(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_pprof = {
	.name = "pprof",
	.ext = "pb.gz",
	.mime = "application/octet-stream",
	.summary = "profile.proto, gzipped: for `go tool pprof`, Pyroscope, Parca and others",
	.lost = "the time of each sample",
	.needs = UNI_NEEDS_PROFILE | UNI_TAKES_SAMPLES,
	.write = write_pprof,
};

static void flush_bytes(struct writer *w, bool all)
{
	if (!all && w->b.len < FLUSH_BYTES)
		return;
	uni_gz_write(w->gz, w->b.s, w->b.len);
	w->oom = w->oom || uni_strbuf_failed(&w->b);
	uni_strbuf_reset(&w->b);
}

static uint64_t add_string(struct writer *w, const char *s)
{
	uint32_t id = uni_strtab_add(w->strings, s, strlen(s));

	w->oom = w->oom || id == UNI_STR_NONE;
	return id == UNI_STR_NONE ? 0 : id;
}

static void put_type(struct writer *w, uint32_t field, const char *type, const char *unit)
{
	uni_pb_put_u64(&w->part, 1, add_string(w, type));
	uni_pb_put_u64(&w->part, 2, add_string(w, unit));
	uni_pb_put_part(&w->b, field, &w->part);
}

static const char *pprof_unit(const char *unit)
{
	static const char *const known[][2] = { { "ns", "nanoseconds" }, { "us", "microseconds" },
		{ "ms", "milliseconds" }, { "s", "seconds" }, { "samples", "count" } };

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (strcmp(known[i][0], unit) == 0)
			return known[i][1];
	}
	return unit;
}

/* Profiles of all time are no CPU time. */
static void put_types(struct writer *w, const struct uni_view *v)
{
	const char *unit = uni_profile_unit(w->rows.p);
	const char *time = v->filter == NULL || v->filter->on_cpu ? "cpu" : "wall";

	if (w->rows.timed) {
		put_type(w, P_SAMPLE_TYPE, "samples", "count");
		put_type(w, P_SAMPLE_TYPE, time, "nanoseconds");
		put_type(w, P_PERIOD_TYPE, time, "nanoseconds");
		if (v->filter != NULL)
			uni_pb_put_u64(
				&w->b, P_COMMENT, add_string(w, uni_filter_whole(v->filter)));
		uni_pb_put_u64(&w->b, P_PERIOD, (uint64_t)round(w->rows.unit_ns));
	} else {
		put_type(w, P_SAMPLE_TYPE, w->two ? "before" : unit, pprof_unit(unit));
		if (w->two)
			put_type(w, P_SAMPLE_TYPE, "after", pprof_unit(unit));
	}
}

static uint64_t whole_number(struct writer *w, double v)
{
	w->rounded += v != floor(v);
	return (uint64_t)(int64_t)round(fmin(v, 9e18));
}

static void put_label(struct writer *w, const char *key, const char *text, uint64_t number)
{
	uni_pb_put_u64(&w->sub, 1, add_string(w, key));
	if (text != NULL)
		uni_pb_put_u64(&w->sub, 2, add_string(w, text));
	else
		uni_pb_put_u64(&w->sub, 3, number);
	uni_pb_put_part(&w->part, 3, &w->sub);
}

static void put_labels(struct writer *w, const struct uni_row *row)
{
	const struct uni_row_track *t = &w->rows.tracks.v[row->track];
	char text[UNI_TEXT_MAX];

	if (!w->rows.timed)
		return;
	uni_rows_guest(&w->rows, t->guest, text);
	put_label(w, "vm", text, 0);
	if (!t->off_cpu)
		put_label(w, "vcpu", NULL, t->vcpu);
	if (t->thread != 0) {
		uni_rows_thread(&w->rows, t->guest, t->thread, text);
		put_label(w, "thread", text, 0);
	}
	if (t->off_cpu)
		put_label(w, "state", "off-cpu", 0);
}

static bool is_inlined_into(const struct writer *w, uint32_t frame, uint32_t caller)
{
	const struct uni_frame *f = uni_profile_get_frame(w->rows.p, frame),
			       *c = uni_profile_get_frame(w->rows.p, caller);

	return f->kind == UNI_FK_INLINED && f->addr != 0 && f->addr == c->addr;
}

/* The locations of w->stack: functions that are inlined at an address share one. */
static void put_locations(struct writer *w)
{
	for (size_t i = 0; i < w->stack.frames.nr; i++) {
		uint32_t frame = w->stack.frames.v[i];

		uni_pb_put_varint(&w->sub, (uint64_t)frame + 1);
		for (; i + 1 < w->stack.frames.nr &&
			is_inlined_into(w, w->stack.frames.v[i], w->stack.frames.v[i + 1]);
			i++)
			w->outer[w->stack.frames.v[i]] = w->stack.frames.v[i + 1] + 1;
	}
}

/* One sample; values[] are as many as there are types. */
static void put_sample(
	struct writer *w, uint32_t node, const struct uni_row *row, double one, double two)
{
	bool both = w->two || w->rows.timed;

	w->oom = w->oom || !uni_row_stack(&w->stack, w->rows.p, node);
	if (!w->oom)
		put_locations(w);
	uni_pb_put_part(&w->part, 1, &w->sub);
	uni_pb_put_varint(&w->sub, whole_number(w, one));
	if (both)
		uni_pb_put_varint(&w->sub, w->two ? whole_number(w, two) : (uint64_t)round(two));
	uni_pb_put_part(&w->part, 2, &w->sub);
	if (row != NULL)
		put_labels(w, row);
	uni_pb_put_part(&w->b, P_SAMPLE, &w->part);
	flush_bytes(w, false);
}

static int row_order(const void *a, const void *b, void *arg)
{
	const struct uni_row *x = &((const struct uni_row *)arg)[*(const uint32_t *)a];
	const struct uni_row *y = &((const struct uni_row *)arg)[*(const uint32_t *)b];

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->track < y->track ? -1 : x->track > y->track;
}

static void put_rows(struct writer *w)
{
	const struct uni_row *rows = w->rows.rows.v;
	size_t nr = w->rows.rows.nr;
	_cleanup_free_ uint32_t *order = calloc(nr + 1, sizeof(*order));

	w->oom = w->oom || order == NULL;
	for (size_t i = 0; !w->oom && i < nr; i++)
		order[i] = (uint32_t)i;
	if (!w->oom)
		qsort_r(order, nr, sizeof(*order), row_order, w->rows.rows.v);
	for (size_t i = 0; !w->oom && i < nr;) {
		const struct uni_row *first = &rows[order[i]];
		double sum = 0.0;

		for (; i < nr && rows[order[i]].node == first->node &&
			rows[order[i]].track == first->track;
			i++)
			sum += rows[order[i]].value;
		put_sample(w, first->node, first, sum, sum * w->rows.unit_ns);
	}
}

static void put_nodes(struct writer *w)
{
	const struct uni_profile *p = w->rows.p;

	for (size_t i = 0; !w->oom && i < uni_profile_nr_nodes(p); i++) {
		double self = uni_profile_node(p, (uint32_t)i)->self;
		double self2 = uni_profile_self2(p, (uint32_t)i);

		if (self != 0.0 || self2 != 0.0)
			put_sample(w, (uint32_t)i, NULL, self, self2);
	}
}

static bool has_base(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash != NULL ? slash + 1 : path, name) == 0;
}

/* The build-id and bias of the image with that name; false: of none that was recorded. */
static bool find_image(struct writer *w, const char *name, const char **id_ret, uint64_t *bias_ret)
{
	for (uint32_t g = 0; w->rows.timed && g < uni_recording_nr_guests(w->v->samples); g++) {
		const struct uni_record_meta *m = uni_recording_guest(w->v->samples, g).meta;

		if (has_base(m->image_path, name)) {
			*id_ret = m->image_id;
			*bias_ret = m->bias;
			return true;
		}
		for (uint32_t i = 0; i < m->nr_more; i++) {
			if (has_base(m->more[i].path, name)) {
				*id_ret = m->more[i].id;
				*bias_ret = m->more[i].bias;
				return true;
			}
		}
	}
	return false;
}

/* The image's mapping, which is written when it is first met. */
static uint64_t mapping_id(struct writer *w, uint32_t image)
{
	const char *id = "";
	uint64_t bias = 0;

	if (image == 0)
		return 0;
	if (w->mapping_of[image] == 0) {
		w->mapping_of[image] = (uint32_t)++w->nr_mappings;
		uni_pb_put_u64(&w->part, 1, w->nr_mappings);
		if (find_image(w, uni_profile_str(w->rows.p, image), &id, &bias)) {
			/* Readers take addresses as linked if there is no beginning. */
			uni_pb_put_u64(&w->part, 2, bias);
			uni_pb_put_u64(&w->part, 6, add_string(w, id));
		}
		uni_pb_put_u64(&w->part, 5, add_string(w, uni_profile_str(w->rows.p, image)));
		uni_pb_put_u64(&w->part, 7, 1); /* has_functions: readers need not symbolize */
		uni_pb_put_part(&w->b, P_MAPPING, &w->part);
	}
	return w->mapping_of[image];
}

static void put_line(struct writer *w, uint32_t number)
{
	const struct uni_frame *f = uni_profile_get_frame(w->rows.p, number);

	uni_pb_put_u64(&w->sub, 1, (uint64_t)number + 1);
	if (f->line != 0)
		uni_pb_put_u64(&w->sub, 2, f->line);
	uni_pb_put_part(&w->part, 4, &w->sub);
}

/* A location and a function for each frame. */
static void put_frame(struct writer *w, uint32_t number)
{
	const struct uni_frame *f = uni_profile_get_frame(w->rows.p, number);
	const char *name = uni_profile_str(w->rows.p, uni_frame_said(f));
	uint64_t map = mapping_id(w, f->image), id = (uint64_t)number + 1;

	uni_pb_put_u64(&w->part, 1, id);
	if (map != 0)
		uni_pb_put_u64(&w->part, 2, map);
	if (f->addr != 0)
		uni_pb_put_u64(&w->part, 3, f->addr);
	put_line(w, number);
	for (uint32_t next = w->outer[number]; next != 0; next = w->outer[next - 1])
		put_line(w, next - 1);
	uni_pb_put_part(&w->b, P_LOCATION, &w->part);

	uni_pb_put_u64(&w->part, 1, id);
	uni_pb_put_u64(&w->part, 2, add_string(w, name));
	uni_pb_put_u64(&w->part, 3, add_string(w, name));
	if (f->file != 0)
		uni_pb_put_u64(&w->part, 4, add_string(w, uni_profile_str(w->rows.p, f->file)));
	uni_pb_put_part(&w->b, P_FUNCTION, &w->part);
	flush_bytes(w, false);
}

static void put_times(struct writer *w, const struct uni_view *v)
{
	const struct uni_record_meta *meta;
	uint64_t first, last;

	if (!w->rows.timed || w->rows.rows.nr == 0)
		return;
	meta = uni_recording_meta(v->samples);
	first = w->rows.rows.v[0].t_ns;
	last = w->rows.rows.v[w->rows.rows.nr - 1].t_ns;
	uni_pb_put_u64(&w->b, P_TIME_NANOS, meta->realtime_offset_ns + first);
	uni_pb_put_u64(&w->b, P_DURATION_NANOS, last - first + (uint64_t)w->rows.unit_ns);
}

static void put_document(struct writer *w, const struct uni_view *v)
{
	put_types(w, v);
	put_times(w, v);
	if (w->rows.timed)
		put_rows(w);
	else
		put_nodes(w);
	for (size_t i = 0; !w->oom && i < uni_profile_nr_frames(w->rows.p); i++)
		put_frame(w, (uint32_t)i);
	for (uint32_t i = 0; !w->oom && i < uni_strtab_nr(w->strings); i++) {
		uni_pb_put_bytes(&w->b, P_STRING, uni_strtab_get(w->strings, i),
			uni_strtab_len(w->strings, i));
		flush_bytes(w, false);
	}
	flush_bytes(w, true);
}

static int write_profile(
	struct writer *w, const struct uni_view *v, struct uni_sink *out, struct uni_err *err)
{
	struct uni_build_opts sites = UNI_BUILD_DEFAULTS;
	struct uni_view by_address = *v;
	int rc;

	if (v->build != NULL)
		sites = *v->build;
	sites.naming.sites = true;
	by_address.build = &sites;
	w->v = v;
	rc = uni_rows_init(&w->rows, &by_address, err);
	if (rc != 0)
		return rc;
	w->outer = calloc(uni_profile_nr_frames(w->rows.p) + 1, sizeof(*w->outer));
	w->two = uni_profile_has_second(w->rows.p);
	w->strings = uni_strtab_create();
	w->mapping_of =
		calloc(uni_profile_nr_strings(w->rows.p) + (size_t)1, sizeof(*w->mapping_of));
	if (w->strings == NULL || w->mapping_of == NULL || w->outer == NULL ||
		uni_gz_open(out, &w->gz) != 0)
		return uni_err_nomem(err);
	put_document(w, v);
	if (w->rounded != 0 && v->lost != NULL)
		uni_strbuf_addf(v->lost, "%" PRIu64 " value%s rounded to whole numbers\n",
			w->rounded, w->rounded == 1 ? " was" : "s were");
	return w->oom ? uni_err_set(err, UNI_ENOMEM, "out of memory writing a pprof profile") : 0;
}

static int write_pprof(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { 0 };
	int rc = uni_export_opts_parse(&uni_exporter_pprof, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_pprof, v, err);
	if (rc != 0)
		return rc;
	uni_strbuf_init(&w.b);
	uni_strbuf_init(&w.part);
	uni_strbuf_init(&w.sub);
	rc = write_profile(&w, v, out, err);
	if (uni_gz_close(w.gz) != 0 && rc == 0)
		rc = uni_err_set(err, UNI_EIO, "gzip failed");
	uni_strbuf_deinit(&w.b);
	uni_strbuf_deinit(&w.part);
	uni_strbuf_deinit(&w.sub);
	uni_vec_free(&w.stack.frames);
	uni_strtab_destroy(w.strings);
	free(w.mapping_of);
	free(w.outer);
	uni_rows_deinit(&w.rows);
	return rc;
}
