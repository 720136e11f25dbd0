/* SPDX-License-Identifier: BSD-2-Clause */
/* Coverage of source lines in lcov's format, from executions of instructions and the image's debug
 * data. Each line that has code counts as often as its most executed instruction. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "format/opts.h"
#include "obj/debug.h"
#include "obj/usym.h"
#include "recording/exact.h"
#include "recording/recording.h"

static int write_lcov(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err);

const struct uni_exporter uni_exporter_lcov = {
	.name = "lcov",
	.ext = "info",
	.mime = "text/plain",
	.summary = "exact counts: coverage of source lines, for genhtml and editors",
	.needs = UNI_NEEDS_SAMPLES | UNI_NEEDS_EXACT,
	.write = write_lcov,
};

struct line {
	uint32_t file, line;
	uint64_t count;
};

struct function {
	uint32_t file, line;
	const char *name;
	uint64_t count;
};

struct writer {
	struct uni_image *image;
	struct uni_debug *debug;
	struct uni_exact_insn *insn;
	size_t nr_insns;
	struct uni_strtab *files;
	UNI_VEC(struct line) lines;
	UNI_VEC(struct function) functions;
};

/* The first executed instruction at or after addr. */
static size_t insn_from(const struct writer *w, uint64_t addr)
{
	size_t low = 0, high = w->nr_insns;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->insn[mid].addr < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint64_t count_in(const struct writer *w, uint64_t start, uint64_t size)
{
	uint64_t most = 0;

	for (size_t i = insn_from(w, start);
		i < w->nr_insns && uni_range_has(start, size, w->insn[i].addr); i++)
		most = uni_max(most, w->insn[i].count);
	return most;
}

static uint32_t file_of(struct writer *w, const char *file)
{
	return uni_strtab_add(w->files, file, strlen(file));
}

static int add_piece(struct writer *w, uint64_t start, uint64_t size, const struct uni_place *place)
{
	struct line l = { .line = place->line, .count = count_in(w, start, size) };

	if (place->file == NULL || place->line == 0)
		return 0;
	l.file = file_of(w, place->file);
	return l.file != UNI_STR_NONE && uni_vec_push(&w->lines, l) ? 0 : -UNI_ENOMEM;
}

static int add_function(struct writer *w, const struct uni_symbol *sym)
{
	struct function f = { .name = uni_image_sym_name(w->image, sym) };
	uint64_t left = sym->size, at = sym->addr;

	while (left != 0) {
		struct uni_place place[UNI_INLINE_MAX];
		struct uni_span span = { at, left };
		size_t nr = uni_debug_lookup(w->debug, at, place, &span);
		uint64_t size = uni_range_has(span.start, span.size, at)
					? uni_min(span.size - (at - span.start), left)
					: 1;

		if (nr != 0 && add_piece(w, at, size, &place[0]) != 0)
			return -UNI_ENOMEM;
		if (nr != 0 && at == sym->addr && place[nr - 1].file != NULL &&
			place[nr - 1].line != 0) {
			f.file = file_of(w, place[nr - 1].file);
			f.line = place[nr - 1].line;
			f.count = count_in(w, at, 1);
			if (f.file == UNI_STR_NONE || !uni_vec_push(&w->functions, f))
				return -UNI_ENOMEM;
		}
		at += size;
		left -= size;
	}
	return 0;
}

static int line_order(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int function_order(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->line != y->line ? (x->line < y->line ? -1 : 1) : strcmp(x->name, y->name);
}

static size_t put_functions(struct writer *w, struct uni_sink *out, uint32_t file, size_t i)
{
	size_t begin = i, hit = 0;

	for (; i < w->functions.nr && w->functions.v[i].file == file; i++)
		uni_sink_printf(
			out, "FN:%" PRIu32 ",%s\n", w->functions.v[i].line, w->functions.v[i].name);
	for (size_t k = begin; k < i; k++) {
		uni_sink_printf(out, "FNDA:%" PRIu64 ",%s\n", w->functions.v[k].count,
			w->functions.v[k].name);
		hit += w->functions.v[k].count != 0;
	}
	uni_sink_printf(out, "FNF:%zu\nFNH:%zu\n", i - begin, hit);
	return i;
}

static size_t put_lines(struct writer *w, struct uni_sink *out, uint32_t file, size_t i)
{
	size_t found = 0, hit = 0;

	while (i < w->lines.nr && w->lines.v[i].file == file) {
		uint32_t line = w->lines.v[i].line;
		uint64_t most = 0;

		for (; i < w->lines.nr && w->lines.v[i].file == file && w->lines.v[i].line == line;
			i++)
			most = uni_max(most, w->lines.v[i].count);
		uni_sink_printf(out, "DA:%" PRIu32 ",%" PRIu64 "\n", line, most);
		found++;
		hit += most != 0;
	}
	uni_sink_printf(out, "LF:%zu\nLH:%zu\n", found, hit);
	return i;
}

static void put_all(struct writer *w, struct uni_sink *out)
{
	size_t f = 0, l = 0;

	if (w->functions.nr != 0)
		qsort(w->functions.v, w->functions.nr, sizeof(w->functions.v[0]), function_order);
	if (w->lines.nr != 0)
		qsort(w->lines.v, w->lines.nr, sizeof(w->lines.v[0]), line_order);
	while (l < w->lines.nr) {
		uint32_t file = w->lines.v[l].file;

		uni_sink_printf(out, "TN:\nSF:%s\n", uni_strtab_get(w->files, file));
		while (f < w->functions.nr && w->functions.v[f].file < file)
			f++;
		f = put_functions(w, out, file, f);
		l = put_lines(w, out, file, l);
		uni_sink_puts(out, "end_of_record\n");
	}
}

/* The image that was booted, or what --symbols names: the same one. */
static int open_image(struct writer *w, const struct uni_view *v, struct uni_err *err)
{
	const struct uni_record_meta *m = uni_recording_meta(v->samples);
	const char *path = v->symtab != NULL ? uni_symtab_path(v->symtab) : m->image_path;
	struct uni_err why = { 0 };

	if (uni_image_load(path, &w->image, &why) != 0)
		return uni_err_set(err, UNI_ENOENT,
			"lines need the image: %s (-s names it, if it was moved)", why.msg);
	if (strcmp(uni_image_id(w->image), m->image_id) != 0)
		return uni_err_set(err, UNI_EMISMATCH,
			"%s is not the image that was counted: give that by -s", path);
	return uni_debug_of_image(w->image, NULL, &w->debug, err);
}

static int collect_functions(struct writer *w, const struct uni_exact *e)
{
	size_t nr = uni_image_nr_symbols(w->image);
	int rc = uni_exact_count_insns(e, &w->insn, &w->nr_insns);

	w->files = uni_strtab_create();
	if (w->files == NULL)
		return -UNI_ENOMEM;
	for (size_t i = 0; rc == 0 && i < nr; i++)
		rc = add_function(w, uni_image_symbol(w->image, i));
	return rc;
}

static int write_lcov(const struct uni_view *v, const struct uni_export_opt *opts, size_t nr_opts,
	struct uni_sink *out, struct uni_err *err)
{
	int rc = uni_export_opts_parse(&uni_exporter_lcov, opts, nr_opts, NULL, err);
	struct uni_exact *e = NULL;
	struct writer w = { 0 };

	if (rc == 0)
		rc = uni_export_check_view(&uni_exporter_lcov, v, err);
	if (rc == 0)
		rc = uni_exact_load(uni_recording_path(v->samples), 0, &e, err);
	if (rc == 0)
		rc = open_image(&w, v, err);
	if (rc == 0 && collect_functions(&w, e) != 0)
		rc = uni_err_nomem(err);
	if (rc == 0)
		put_all(&w, out);
	uni_exact_destroy(e);
	uni_debug_destroy(w.debug);
	uni_image_destroy(w.image);
	uni_strtab_destroy(w.files);
	free(w.insn);
	uni_vec_free(&w.lines);
	uni_vec_free(&w.functions);
	return rc;
}
