/* SPDX-License-Identifier: BSD-2-Clause */
/* Our own JSON: the function table and the stacks that refer to it. docs/formats/json.md. */
#include "base/json.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/vec.h"
#include "format/json/frame.h"
#include "format/json/recording.h"
#include "format/opts.h"

struct json_opts {
	bool pretty, stacks;
};

static const struct uni_export_optdef options[] = {
	{ "pretty", NULL, "one member a line (default off)", UNI_OPT_BOOL,
		offsetof(struct json_opts, pretty) },
	{ "stacks", NULL, "the stacks, not only the function table (default on)", UNI_OPT_BOOL,
		offsetof(struct json_opts, stacks) },
	{ 0 },
};

static int write_json(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_json = {
	.name = "json",
	.ext = "json",
	.mime = "application/json",
	.summary = "functions with self and total values, and the stacks (docs/formats/json.md)",
	.needs = UNI_NEEDS_PROFILE,
	.options = options,
	.write = write_json,
};

struct writer {
	const struct uni_profile *p;
	struct uni_json json;
	const struct uni_func_row *rows;
	size_t nr_rows;
	uint32_t *row_of; /* by frame */
	UNI_VEC(uint32_t) path;
};

void uni_json_value(struct uni_json *j, const char *key, double v)
{
	uni_json_key(j, key);
	if (v >= 0.0 && v == floor(v) && v < 9007199254740992.0)
		uni_json_u64(j, (uint64_t)v);
	else
		uni_json_double(j, v);
}

static const char *kind_name(unsigned kind)
{
	switch (kind) {
	case UNI_FK_GUEST:
		return "guest";
	case UNI_FK_UNKNOWN:
		return "unknown";
	case UNI_FK_INLINED:
		return "inlined";
	case UNI_FK_KERNEL:
		return "kernel";
	default:
		return "synthetic";
	}
}

void uni_json_function(
	struct uni_json *j, const struct uni_profile *p, const struct uni_func_row *row)
{
	const struct uni_frame *f = uni_profile_get_frame(p, row->frame);

	uni_json_object(j);
	uni_json_kv(str, j, "name", uni_profile_str(p, f->plain != 0 ? f->plain : f->name));
	uni_json_kv(str, j, "kind", kind_name(f->kind));
	if (f->guess)
		uni_json_kv(bool, j, "guess", true);
	if (f->image != 0)
		uni_json_kv(str, j, "image", uni_profile_str(p, f->image));
	if (f->file != 0)
		uni_json_kv(str, j, "file", uni_profile_str(p, f->file));
	if (f->line != 0)
		uni_json_kv(u64, j, "line", f->line);
	if (f->addr != 0)
		uni_json_kv(hex, j, "address", f->addr);
	uni_json_value(j, "self", row->self);
	uni_json_value(j, "total", row->total);
	if (f->unsure != 0.0)
		uni_json_kv(double, j, "unsure", f->unsure / f->own);
	if (uni_profile_has_second(p)) {
		uni_json_value(j, "self2", row->self2);
		uni_json_value(j, "total2", row->total2);
	}
	uni_json_object_end(j);
}

static int put_stack(struct writer *w, uint32_t node)
{
	double self = uni_profile_node(w->p, node)->self, self2 = uni_profile_self2(w->p, node);
	struct uni_json *j = &w->json;

	if (self == 0.0 && self2 == 0.0)
		return 0;
	w->path.nr = 0;
	for (uint32_t at = node; at != UNI_NODE_ROOT; at = uni_profile_node(w->p, at)->parent) {
		if (!uni_vec_push(&w->path, w->row_of[uni_profile_node(w->p, at)->frame]))
			return -UNI_ENOMEM;
	}
	uni_json_object(j);
	uni_json_key(j, "frames");
	uni_json_array(j);
	for (size_t i = w->path.nr; i-- != 0;)
		uni_json_u64(j, w->path.v[i]);
	uni_json_array_end(j);
	uni_json_value(j, "value", self);
	if (uni_profile_has_second(w->p))
		uni_json_value(j, "value2", self2);
	uni_json_object_end(j);
	return 0;
}

/* By the host's clock, if that was kept (docs/exact.md). Or why there are no numbers. */
static void put_duration(struct uni_json *j, const struct uni_recording *rec)
{
	const struct uni_record_stats *st = uni_recording_guest(rec, 0).stats;

	if (!uni_recording_was_closed(rec))
		uni_json_kv(bool, j, "closed", false);
	if (uni_recording_meta(rec)->failed[0] != '\0')
		uni_json_kv(str, j, "failed", uni_recording_meta(rec)->failed);
	if (st->lost != 0)
		uni_json_kv(u64, j, "lost", st->lost);
	if (uni_recording_meta(rec)->unit[0] != '\0' && st->end_ns > st->begin_ns)
		uni_json_kv(u64, j, "duration_ns", st->end_ns - st->begin_ns);
}

static int put_document(struct writer *w, const struct uni_view *v, const struct json_opts *o)
{
	struct uni_json *j = &w->json;
	int rc = 0;

	uni_json_object(j);
	uni_json_kv(str, j, "format", "uniscope-profile");
	uni_json_kv(u64, j, "version", 1);
	if (v->title != NULL)
		uni_json_kv(str, j, "title", v->title);
	uni_json_kv(str, j, "unit", uni_profile_unit(w->p));
	uni_json_value(j, "total", uni_profile_total(w->p));
	if (uni_profile_has_second(w->p))
		uni_json_value(j, "total2", uni_profile_total2(w->p, UNI_NODE_ROOT));
	if (uni_profile_hidden(w->p) != 0.0)
		uni_json_value(j, "hidden", uni_profile_hidden(w->p));
	if (v->samples != NULL && !uni_recording_meta(v->samples)->aggregate)
		uni_json_recording(j, v->samples, v->filter);
	else if (v->samples != NULL)
		put_duration(j, v->samples);
	uni_json_key(j, "functions");
	uni_json_array(j);
	for (size_t i = 0; i < w->nr_rows; i++)
		uni_json_function(j, w->p, &w->rows[i]);
	uni_json_array_end(j);
	if (o->stacks) {
		uni_json_key(j, "stacks");
		uni_json_array(j);
		for (size_t i = 0; i < uni_profile_nr_nodes(w->p) && rc == 0; i++)
			rc = put_stack(w, (uint32_t)i);
		uni_json_array_end(j);
	}
	uni_json_object_end(j);
	if (!o->pretty)
		uni_sink_putc(j->out, '\n');
	return rc;
}

static int write_json(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	struct json_opts o = { .stacks = true };
	_cleanup_free_ struct uni_func_row *rows = NULL;
	_cleanup_free_ uint32_t *row_of = NULL;
	struct writer w = { .p = v->profile };
	int rc = uni_export_opts_parse(&uni_exporter_json, opts, nr_opts, &o, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_json, v, err);
	if (rc != 0)
		return rc;
	row_of = calloc(uni_profile_nr_frames(w.p) + 1, sizeof(*row_of));
	if (row_of == NULL || uni_profile_functions(w.p, &rows, &w.nr_rows) != 0)
		return uni_err_set(err, UNI_ENOMEM, "out of memory writing JSON");
	for (size_t i = 0; i < w.nr_rows; i++)
		row_of[rows[i].frame] = (uint32_t)i;
	w.rows = rows;
	w.row_of = row_of;
	uni_json_init(&w.json, out, o.pretty);
	rc = put_document(&w, v, &o);
	uni_vec_free(&w.path);
	return rc == 0 ? 0 : uni_err_set(err, UNI_ENOMEM, "out of memory writing JSON");
}
