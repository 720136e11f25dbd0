/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The "processed" profile of the Firefox Profiler (profiler.firefox.com), in version 60 of the
 * format, which newer versions upgrade. All threads share tables in columns; samples are by thread.
 * The call tree's nodes are the stack table: in both, parents come before their children.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "format/firefox/exits.h"
#include "format/opts.h"
#include "format/rows.h"
#include "recording/recording.h"

#define GECKO_VERSION	  24
#define PROCESSED_VERSION 60
#define RESOURCE_LIBRARY  1

enum category { GUEST, INLINED, IDLE, HOST, NR_CATEGORIES };

struct writer {
	struct uni_rows rows;
	struct uni_json json;
	struct uni_strtab *strings;
	struct uni_firefox_exits exits;
	UNI_VEC(uint32_t) images; /* strings of the profile, as many as there are libraries */
	uint32_t *image_of;	  /* by string: its place in there + 1 */
	UNI_VEC(uint32_t) files;
	uint32_t *file_of;
	uint64_t begin_ns;
	bool oom;
};

static int write_firefox(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_firefox = {
	.name = "firefox",
	.ext = "firefox.json",
	.mime = "application/json",
	.summary = "processed profile for profiler.firefox.com: samples or calls of each thread by "
		   "time, VM exits",
	.lost = "on which vCPU a thread ran, addresses",
	.needs = UNI_NEEDS_PROFILE | UNI_TAKES_SAMPLES | UNI_TAKES_EXITS | UNI_TAKES_CALLS,
	.write = write_firefox,
};

static uint32_t string_id(struct writer *w, const char *s)
{
	uint32_t id = uni_strtab_add(w->strings, s, strlen(s));

	w->oom = w->oom || id == UNI_STR_NONE;
	return w->oom ? 0 : id;
}

static enum category category_of(const struct writer *w, const struct uni_frame *f)
{
	static const char *const host[] = { "[kvm]", "[vmm]", "[stolen]" };
	const char *name = uni_profile_str(w->rows.p, f->name);

	if (f->kind == UNI_FK_INLINED)
		return INLINED;
	if (f->kind == UNI_FK_KERNEL)
		return HOST;
	if (f->kind != UNI_FK_SYNTHETIC)
		return GUEST;
	for (size_t i = 0; i < uni_array_len(host); i++) {
		if (strcmp(host[i], name) == 0)
			return HOST;
	}
	return strcmp(name, "[idle]") == 0 || strcmp(name, "[blocked]") == 0 ||
			       strcmp(name, "[sleeping]") == 0 || strcmp(name, "[waiting]") == 0
		       ? IDLE
		       : GUEST;
}

/* Places of images and files, in the order in which frames name them. */
static int index_names(struct writer *w)
{
	const struct uni_profile *p = w->rows.p;
	size_t nr = uni_profile_nr_strings(p);

	w->image_of = calloc(nr + 1, sizeof(*w->image_of));
	w->file_of = calloc(nr + 1, sizeof(*w->file_of));
	if (w->image_of == NULL || w->file_of == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; i < uni_profile_nr_frames(p); i++) {
		const struct uni_frame *f = uni_profile_get_frame(p, (uint32_t)i);

		if (f->image != 0 && w->image_of[f->image] == 0) {
			if (!uni_vec_push(&w->images, f->image))
				return -UNI_ENOMEM;
			w->image_of[f->image] = (uint32_t)w->images.nr;
		}
		if (f->file != 0 && w->file_of[f->file] == 0) {
			if (!uni_vec_push(&w->files, f->file))
				return -UNI_ENOMEM;
			w->file_of[f->file] = (uint32_t)w->files.nr;
		}
	}
	return 0;
}

static void put_empty(struct uni_json *j, const char *const *names, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		uni_json_key(j, names[i]);
		uni_json_array(j);
		uni_json_array_end(j);
	}
}

static void put_categories(struct uni_json *j)
{
	static const char *const categories[NR_CATEGORIES][2] = { { "Guest", "yellow" },
		{ "Inlined", "blue" }, { "Idle", "transparent" }, { "Host", "orange" } };

	uni_json_key(j, "categories");
	uni_json_array(j);
	for (size_t i = 0; i < NR_CATEGORIES; i++) {
		uni_json_object(j);
		uni_json_kv(str, j, "name", categories[i][0]);
		uni_json_kv(str, j, "color", categories[i][1]);
		uni_json_key(j, "subcategories");
		uni_json_array(j);
		uni_json_str(j, "Other");
		uni_json_array_end(j);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

/* Duration of a sample that no next sample ends. */
static double interval_ns(const struct writer *w)
{
	const struct uni_row *rows = w->rows.rows.v;
	size_t nr = w->rows.rows.nr;

	if (!w->rows.timed || !w->rows.is_time || nr < 2)
		return w->rows.unit_ns;
	return (double)(rows[nr - 1].t_ns - rows[0].t_ns) / (double)nr;
}

static void put_meta(struct writer *w, const struct uni_view *v)
{
	static const char *const extensions[] = { "baseURL", "id", "name" };
	struct uni_json *j = &w->json;
	double start = 0.0;

	if (w->rows.timed && v->samples != NULL)
		start = (double)(uni_recording_meta(v->samples)->realtime_offset_ns + w->begin_ns);
	uni_json_key(j, "meta");
	uni_json_object(j);
	uni_json_kv(double, j, "interval", interval_ns(w) / 1e6);
	uni_json_kv(double, j, "startTime", floor(start / 1e6));
	uni_json_kv(u64, j, "processType", 0);
	uni_json_kv(u64, j, "stackwalk", 1);
	uni_json_kv(u64, j, "version", GECKO_VERSION);
	uni_json_kv(u64, j, "preprocessedProfileVersion", PROCESSED_VERSION);
	uni_json_kv(str, j, "product", v->title != NULL ? v->title : "uniscope");
	uni_json_kv(bool, j, "symbolicated", true);
	uni_json_kv(bool, j, "debug", false);
	uni_json_kv(bool, j, "usesOnlyOneStackType", true);
	uni_json_kv(bool, j, "sourceCodeIsNotOnSearchfox", true);
	uni_json_key(j, "sampleUnits");
	uni_json_object(j);
	uni_json_kv(str, j, "time", "ms");
	uni_json_kv(str, j, "eventDelay", "ms");
	uni_json_kv(str, j, "threadCPUDelta", "ns");
	uni_json_object_end(j);
	put_categories(j);
	uni_firefox_exits_schema(j);
	uni_json_key(j, "extensions");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", 0);
	put_empty(j, extensions, uni_array_len(extensions));
	uni_json_object_end(j);
	uni_json_object_end(j);
}

static void put_libs(struct writer *w)
{
	struct uni_json *j = &w->json;

	uni_json_key(j, "libs");
	uni_json_array(j);
	for (size_t i = 0; i < w->images.nr; i++) {
		const char *name = uni_profile_str(w->rows.p, w->images.v[i]);

		uni_json_object(j);
		uni_json_kv(str, j, "name", name);
		uni_json_kv(str, j, "path", name);
		uni_json_kv(str, j, "debugName", name);
		uni_json_kv(str, j, "debugPath", name);
		uni_json_kv(str, j, "breakpadId", "");
		uni_json_kv(str, j, "codeId", NULL);
		uni_json_kv(str, j, "arch", NULL);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}

/* A column of nr values: value is an expression of i. */
#define COLUMN(j, name, nr, value)                  \
	do {                                        \
		uni_json_key((j), (name));          \
		uni_json_array(j);                  \
		for (size_t i = 0; i < (nr); i++) { \
			value;                      \
		}                                   \
		uni_json_array_end(j);              \
	} while (0)

static void u64_or_null(struct uni_json *j, bool is, uint64_t v)
{
	if (is)
		uni_json_u64(j, v);
	else
		uni_json_null(j);
}

static const struct uni_node *node_at(const struct writer *w, size_t i)
{
	return uni_profile_node(w->rows.p, (uint32_t)i + 1);
}

static const struct uni_frame *frame_at(const struct writer *w, size_t i)
{
	return uni_profile_get_frame(w->rows.p, (uint32_t)i);
}

static void put_stack_table(struct writer *w)
{
	size_t nr = uni_profile_nr_nodes(w->rows.p) - 1;
	struct uni_json *j = &w->json;

	uni_json_key(j, "stackTable");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", nr);
	COLUMN(j, "frame", nr, uni_json_u64(j, node_at(w, i)->frame));
	COLUMN(j, "prefix", nr,
		u64_or_null(j, node_at(w, i)->parent != UNI_NODE_ROOT,
			(uint64_t)node_at(w, i)->parent - 1));
	uni_json_object_end(j);
}

static void put_frame_table(struct writer *w)
{
	size_t nr = uni_profile_nr_frames(w->rows.p);
	struct uni_json *j = &w->json;

	uni_json_key(j, "frameTable");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", nr);
	COLUMN(j, "address", nr, uni_json_i64(j, -1));
	COLUMN(j, "inlineDepth", nr, uni_json_u64(j, 0));
	COLUMN(j, "category", nr, uni_json_u64(j, category_of(w, frame_at(w, i))));
	COLUMN(j, "subcategory", nr, uni_json_u64(j, 0));
	COLUMN(j, "func", nr, uni_json_u64(j, i));
	COLUMN(j, "nativeSymbol", nr, uni_json_null(j));
	COLUMN(j, "innerWindowID", nr, uni_json_u64(j, 0));
	COLUMN(j, "line", nr, u64_or_null(j, frame_at(w, i)->line != 0, frame_at(w, i)->line));
	COLUMN(j, "column", nr, uni_json_null(j));
	uni_json_object_end(j);
}

static const char *func_name(const struct writer *w, size_t i)
{
	const struct uni_frame *f = frame_at(w, i);

	return uni_profile_str(w->rows.p, uni_frame_said(f));
}

static void put_func_table(struct writer *w)
{
	size_t nr = uni_profile_nr_frames(w->rows.p);
	struct uni_json *j = &w->json;

	uni_json_key(j, "funcTable");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", nr);
	COLUMN(j, "name", nr, uni_json_u64(j, string_id(w, func_name(w, i))));
	COLUMN(j, "isJS", nr, uni_json_bool(j, false));
	COLUMN(j, "relevantForJS", nr, uni_json_bool(j, false));
	COLUMN(j, "resource", nr,
		uni_json_i64(j, frame_at(w, i)->image != 0
					? w->image_of[frame_at(w, i)->image] - INT64_C(1)
					: -1));
	COLUMN(j, "source", nr,
		u64_or_null(j, frame_at(w, i)->file != 0,
			(uint64_t)w->file_of[frame_at(w, i)->file] - 1));
	COLUMN(j, "lineNumber", nr, uni_json_null(j));
	COLUMN(j, "columnNumber", nr, uni_json_null(j));
	uni_json_object_end(j);
}

static void put_small_tables(struct writer *w)
{
	static const char *const none[] = { "libIndex", "address", "name", "functionSize" };
	const struct uni_profile *p = w->rows.p;
	struct uni_json *j = &w->json;

	uni_json_key(j, "resourceTable");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", w->images.nr);
	COLUMN(j, "lib", w->images.nr, uni_json_u64(j, i));
	COLUMN(j, "name", w->images.nr,
		uni_json_u64(j, string_id(w, uni_profile_str(p, w->images.v[i]))));
	COLUMN(j, "host", w->images.nr, uni_json_null(j));
	COLUMN(j, "type", w->images.nr, uni_json_u64(j, RESOURCE_LIBRARY));
	uni_json_object_end(j);

	uni_json_key(j, "nativeSymbols");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", 0);
	put_empty(j, none, uni_array_len(none));
	uni_json_object_end(j);

	uni_json_key(j, "sources");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", w->files.nr);
	COLUMN(j, "uuid", w->files.nr, uni_json_null(j));
	COLUMN(j, "filename", w->files.nr,
		uni_json_u64(j, string_id(w, uni_profile_str(p, w->files.v[i]))));
	uni_json_object_end(j);
}

static void put_shared(struct writer *w)
{
	struct uni_json *j = &w->json;

	uni_json_key(j, "shared");
	uni_json_object(j);
	put_stack_table(w);
	put_frame_table(w);
	put_func_table(w);
	put_small_tables(w);
	COLUMN(j, "stringArray", uni_strtab_nr(w->strings),
		uni_json_str(j, uni_strtab_get(w->strings, (uint32_t)i)));
	uni_json_object_end(j);
}

static void put_samples(struct writer *w, const uint32_t *order, size_t nr)
{
	const struct uni_row *rows = w->rows.rows.v;
	double weight = w->rows.is_time ? w->rows.unit_ns / 1e6 : 1.0;
	struct uni_json *j = &w->json;

	uni_json_key(j, "samples");
	uni_json_object(j);
	uni_json_kv(u64, j, "length", nr);
	COLUMN(j, "stack", nr,
		u64_or_null(j, rows[order[i]].node != UNI_NODE_ROOT,
			(uint64_t)rows[order[i]].node - 1));
	COLUMN(j, "time", nr,
		uni_json_double(j, (double)(rows[order[i]].t_ns - w->begin_ns) / 1e6));
	COLUMN(j, "weight", nr, uni_json_double(j, rows[order[i]].value * weight));
	uni_json_kv(str, j, "weightType", w->rows.is_time ? "tracing-ms" : "samples");
	uni_json_object_end(j);
}

struct thread {
	const char *name;
	uint32_t guest;
	uint64_t tid;
	const uint32_t *order; /* of its samples */
	size_t nr;
	uint32_t exits; /* their lane; UINT32_MAX: none */
};

static void put_thread(struct writer *w, const struct thread *t)
{
	char name[UNI_TEXT_MAX], number[32];
	struct uni_json *j = &w->json;

	uni_json_object(j);
	uni_json_kv(str, j, "processType", "default");
	uni_json_kv(u64, j, "processStartupTime", 0);
	uni_json_kv(str, j, "processShutdownTime", NULL);
	uni_json_kv(u64, j, "registerTime", 0);
	uni_json_kv(str, j, "unregisterTime", NULL);
	uni_json_key(j, "pausedRanges");
	uni_json_array(j);
	uni_json_array_end(j);
	uni_json_kv(str, j, "name", t->name);
	uni_json_kv(bool, j, "isMainThread", false);
	uni_rows_guest(&w->rows, t->guest, name);
	uni_json_kv(str, j, "processName", name);
	(void)snprintf(number, sizeof(number), "%" PRIu32, t->guest + 1);
	uni_json_kv(str, j, "pid", number);
	uni_json_kv(u64, j, "tid", t->tid);
	put_samples(w, t->order, t->nr);
	uni_firefox_exits_markers(&w->exits, j, t->exits, w->begin_ns, HOST);
	uni_json_object_end(j);
}

static void put_threads(struct writer *w, const uint32_t *order)
{
	char name[UNI_TEXT_MAX];
	struct thread t = { .name = name, .order = order };

	for (size_t i = 0; i < w->rows.lanes.nr; i++) {
		const struct uni_row_lane *l = &w->rows.lanes.v[i];

		t.guest = l->guest;
		t.tid++;
		t.order += t.nr;
		t.nr = l->nr;
		t.exits = UINT32_MAX;
		uni_rows_lane(&w->rows, (uint32_t)i, name);
		put_thread(w, &t);
	}
	t.nr = 0;
	for (size_t i = 0; i < w->exits.rows.lanes.nr; i++) {
		const struct uni_exit_lane *l = &w->exits.rows.lanes.v[i];

		t.guest = l->guest;
		t.tid++;
		t.exits = (uint32_t)i;
		(void)snprintf(name, sizeof(name), "VM exits of vcpu %" PRIu32, l->vcpu);
		put_thread(w, &t);
	}
}

static void put_document(struct writer *w, const struct uni_view *v)
{
	_cleanup_free_ uint32_t *order = uni_rows_by_lane(&w->rows);
	struct uni_json *j = &w->json;

	w->oom = w->oom || order == NULL;
	w->begin_ns = w->rows.rows.nr != 0 ? w->rows.rows.v[0].t_ns : 0;
	for (size_t i = 0; i < w->exits.rows.rows.nr; i++)
		w->begin_ns = i == 0 && w->rows.rows.nr == 0
				      ? w->exits.rows.rows.v[0].t_ns
				      : uni_min(w->begin_ns, w->exits.rows.rows.v[i].t_ns);
	uni_json_object(j);
	put_meta(w, v);
	put_libs(w);
	uni_json_key(j, "pages");
	uni_json_array(j);
	uni_json_array_end(j);
	put_shared(w);
	uni_json_key(j, "threads");
	uni_json_array(j);
	if (!w->oom && order != NULL)
		put_threads(w, order);
	uni_json_array_end(j);
	uni_json_object_end(j);
	uni_sink_putc(j->out, '\n');
}

static int write_firefox(const struct uni_view *v, const struct uni_export_opt *opts,
	size_t nr_opts, struct uni_sink *out, struct uni_err *err)
{
	struct writer w = { 0 };
	int rc = uni_export_opts_parse(&uni_exporter_firefox, opts, nr_opts, NULL, err);

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_firefox, v, err);
	if (rc != 0)
		return rc;
	rc = v->timeline != NULL ? uni_rows_init_calls(&w.rows, v, err)
				 : uni_rows_init(&w.rows, v, err);
	w.strings = uni_strtab_create();
	if (rc == 0 && (w.strings == NULL || index_names(&w) != 0))
		w.oom = true;
	if (rc == 0 && !w.oom)
		rc = uni_firefox_exits_init(&w.exits, v, w.strings, err);
	if (rc == 0 && !w.oom) {
		uni_json_init(&w.json, out, false);
		put_document(&w, v);
		uni_rows_say(&w.rows, v);
	}
	if (rc == 0 && w.oom)
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory writing for Firefox");
	uni_firefox_exits_deinit(&w.exits);
	uni_strtab_destroy(w.strings);
	uni_vec_free(&w.images);
	uni_vec_free(&w.files);
	free(w.image_of);
	free(w.file_of);
	uni_rows_deinit(&w.rows);
	return rc;
}
