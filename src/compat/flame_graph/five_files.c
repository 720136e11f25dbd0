/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/flame_graph/five_files.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/sink.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "compat/names.h"
#include "format/export.h"
#include "format/import.h"
#include "format/uniprof/symbolize.h"
#include "obj/nm.h"
#include "obj/symtext.h"

#define TRACE_MAX ((size_t)4 << 30)

static char *path_of(const struct uni_five *five, const char *end)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, five->name);
	uni_strbuf_adds(&b, end);
	return uni_strbuf_detach(&b);
}

char *uni_five_stacktrace(const struct uni_five *five)
{
	return path_of(five, "-stacktrace");
}

int uni_five_check(const struct uni_five *five, struct uni_err *err)
{
	if (five->name[0] != '\0' && five->name[0] != '-' && strchr(five->name, '/') == NULL)
		return 0;
	return uni_err_set(err, UNI_EUSAGE, "'%s' cannot begin the names of the files", five->name);
}

static void tell_step(const struct uni_five *five, const char *step)
{
	if (five->say != NULL)
		five->say(step);
}

static int no_memory(struct uni_err *err)
{
	return uni_err_nomem(err);
}

/* The whole of text as file NAME + end. */
static int save_text(const struct uni_five *five, const char *end, const struct uni_strbuf *text,
	struct uni_err *err)
{
	_cleanup_free_ char *path = path_of(five, end);
	struct uni_sink *out;
	int rc;

	if (path == NULL || uni_strbuf_failed(text))
		return no_memory(err);
	rc = uni_sink_open_file(path, &out, err);
	if (rc != 0)
		return rc;
	uni_sink_write(out, text->s, text->len);
	return uni_sink_close(out, err);
}

/* The file that has the symbols: the image, or a sibling of it. */
static int write_syms(const struct uni_five *five, struct uni_strbuf *text, struct uni_err *err)
{
	struct uni_image *img = NULL;
	struct uni_sink *out = NULL;
	int rc = uni_image_load_from(five->image, &five->search, &img, err), rc2;

	if (rc == 0 && uni_sink_open_strbuf(text, &out) != 0)
		rc = no_memory(err);
	if (rc == 0)
		rc = uni_nm_write(uni_image_symbol_path(img), out, err);
	rc2 = out != NULL ? uni_sink_close(out, rc == 0 ? err : NULL) : 0;
	uni_image_destroy(img);
	if (rc == 0)
		rc = rc2;
	return rc == 0 ? save_text(five, ".syms", text, err) : rc;
}

static int symbolize_traces(const struct uni_five *five, const struct uni_strbuf *syms,
	struct uni_strbuf *text, struct uni_err *err)
{
	_cleanup_free_ char *path = uni_five_stacktrace(five), *data = NULL;
	struct uni_symbolize_stats stats = { 0 };
	struct uni_symtab *symtab = NULL;
	struct uni_sink *out = NULL;
	size_t size = 0;
	int rc = path == NULL ? no_memory(err) : uni_read_file(path, TRACE_MAX, &data, &size, err);

	if (rc == 0)
		rc = uni_symtab_of_nm(five->image, syms->s, syms->len, &symtab, err);
	if (rc == 0 && uni_sink_open_strbuf(text, &out) != 0)
		rc = no_memory(err);
	if (rc == 0) {
		uni_symbolize(symtab, false, data, size, out, &stats);
		rc = uni_sink_close(out, err);
	}
	uni_symtab_destroy(symtab);
	if (rc == 0)
		rc = save_text(five, "-stacktrace.syms", text, err);
	if (rc == 0)
		uni_compat_note_trace(path, &stats);
	return rc;
}

static int cmp_lines(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* By bytes, as whole lines, which is how other makers of folded stacks order them. */
static int sort_lines(struct uni_strbuf *text, struct uni_strbuf *ret, struct uni_err *err)
{
	UNI_VEC(char *) lines = { 0 };
	bool ok = !uni_strbuf_failed(text);
	char *end;

	for (char *l = text->s; ok && (end = strchr(l, '\n')) != NULL; l = end + 1) {
		*end = '\0';
		ok = uni_vec_push(&lines, l);
	}
	if (ok && lines.nr != 0)
		qsort(lines.v, lines.nr, sizeof(*lines.v), cmp_lines);
	for (size_t i = 0; ok && i < lines.nr; i++) {
		uni_strbuf_adds(ret, lines.v[i]);
		uni_strbuf_addc(ret, '\n');
	}
	uni_vec_free(&lines);
	return ok ? 0 : no_memory(err);
}

static int export_as(const char *format, const struct uni_profile *p, struct uni_strbuf *text,
	struct uni_err *err)
{
	const struct uni_exporter *e = uni_exporter_by_name(format);
	const struct uni_view view = { .profile = p };
	struct uni_sink *out;
	int rc;

	if (uni_sink_open_strbuf(text, &out) != 0)
		return no_memory(err);
	rc = e->write(&view, NULL, 0, out, err);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

static int write_collapsed(
	const struct uni_five *five, const struct uni_profile *p, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf text, sorted;
	int rc;

	uni_strbuf_init(&text);
	uni_strbuf_init(&sorted);
	rc = export_as("folded", p, &text, err);
	if (rc == 0)
		rc = sort_lines(&text, &sorted, err);
	return rc == 0 ? save_text(five, "-stackcollapse", &sorted, err) : rc;
}

static int write_flame_graph(
	const struct uni_five *five, const struct uni_profile *p, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf text;
	int rc;

	uni_strbuf_init(&text);
	rc = export_as("svg", p, &text, err);
	return rc == 0 ? save_text(five, "-flamegraph.svg", &text, err) : rc;
}

/* Makes a profile of the traces with names. */
static int add_up(const struct uni_strbuf *text, struct uni_profile *p, struct uni_err *err)
{
	const struct uni_import_opts opts = { .mangled = true };
	struct uni_import_stats stats = { 0 };
	int rc = uni_importer_by_name("uniprof")->read(text->s, text->len, &opts, p, &stats, err);

	return rc == 0 && uni_profile_finish(p) != 0 ? no_memory(err) : rc;
}

int uni_five_write(const struct uni_five *five, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf syms, named;
	struct uni_profile *p = uni_profile_create();
	int rc = p == NULL ? no_memory(err) : 0;

	uni_strbuf_init(&syms);
	uni_strbuf_init(&named);
	tell_step(five, "Running nm to find symbols...");
	if (rc == 0)
		rc = write_syms(five, &syms, err);
	if (rc == 0) {
		tell_step(five, "Running symbolize to map addresses...");
		rc = symbolize_traces(five, &syms, &named, err);
	}
	if (rc == 0) {
		tell_step(five, "Running stack collapse to format stack trace for Flame Graph...");
		rc = add_up(&named, p, err);
	}
	if (rc == 0)
		rc = write_collapsed(five, p, err);
	if (rc == 0) {
		tell_step(five, "Running Flame Graph...");
		rc = write_flame_graph(five, p, err);
	}
	uni_profile_destroy(p);
	return rc;
}
