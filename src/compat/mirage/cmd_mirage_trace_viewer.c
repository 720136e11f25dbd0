/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/privilege.h"
#include "base/cleanup.h"
#include "base/outdir.h"
#include "base/sink.h"
#include "app/cmd.h"
#include "app/images.h"
#include "app/mprof.h"
#include "app/page.h"
#include "app/promises.h"
#include "app/term.h"
#include "app/symbols.h"
#include "backend/target.h"
#include "promise/text.h"

#define NAME_BYTES 200

static struct {
	struct uni_promises_args a;
	struct uni_opt_list images;
	const char *domain, *write, *html;
	bool gtk;
} o;

static const struct uni_opt *list_mirage_trace_viewer_options(void)
{
	static const struct uni_opt table[] = {
		{ 'd', "dom", UNI_OPT_STR, &o.domain, "NAME|ID",
			"read the trace of this domain or guest, instead of files", NULL, NULL },
		UNI_IMAGE_OPTION(o.images, UNI_IMAGE_RUNNING),
		{ 'w', "write", UNI_OPT_OUTPUT, &o.write, "FILE",
			"write the trace into this file, - is standard output, instead of showing "
			"it; a session is converted",
			"FILE", NULL },
		{ 0, "html", UNI_OPT_OUTPUT, &o.html, "DIR",
			"write a page for each trace into this folder, and its data as JSON",
			"FILE", NULL },
		{ 0, "gtk", UNI_OPT_FLAG, &o.gtk, NULL,
			"refused: there are no windows here; --html has the picture", NULL, NULL },
		UNI_PROMISES_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .a = { 0 } };
	return table;
}

static int check_viewer_options(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	size_t sources = ctx->nr_operands + (o.domain != NULL);

	if (o.gtk)
		return uni_err_set(err, UNI_ENOTSUP,
			"there is no GTK viewer: --html DIR writes the picture as a page");
	if (sources == 0)
		return uni_err_set(err, UNI_EUSAGE, "give a FILE, or a domain with -d");
	if (o.write != NULL && o.html != NULL)
		return uni_err_set(err, UNI_EUSAGE, "give one of --write and --html");
	if (o.domain != NULL && ctx->nr_operands != 0)
		return uni_err_set(err, UNI_EUSAGE, "give files, or a domain");
	if (o.domain == NULL && o.images.items.nr != 0)
		return uni_err_set(err, UNI_EUSAGE, "--image is for a guest: see -d");
	if (o.write != NULL && sources != 1)
		return uni_err_set(err, UNI_EUSAGE, "--write takes one trace");
	return 0;
}

static int write_trace(const char *path, struct uni_err *err)
{
	struct uni_sink *out;
	int rc = uni_sink_open_file(o.write, &out, err);

	if (rc != 0)
		return rc;
	rc = uni_mprof_write(path, &o.a, false, out, err);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

/* For people without a picture: findings, and a list of threads. */
static int show_findings(const char *path, struct uni_err *err)
{
	const struct uni_promise_list_opts all = { 0 };
	struct uni_findings found = { 0 };
	struct uni_promises p;
	int rc = uni_promises_open(&p, path, &o.a, err);

	if (rc != 0)
		return rc;
	rc = uni_promise_findings(p.m, UNI_PROMISE_BUSY_NS, &found);
	if (rc == 0) {
		uni_promise_text_findings(p.out, p.m, &found);
		uni_sink_putc(p.out, '\n');
		rc = uni_promise_text_threads(p.out, p.m, &all);
	}
	uni_findings_deinit(&found);
	return uni_promises_close(&p, rc, err) == UNI_EXIT_OK ? 0 : -UNI_EIO;
}

/* One of the files that were given. */
struct trace {
	const char *name;
	size_t nr;  /* its place, from 1 */
	bool again; /* one before it has the same name, but for folder and end */
};

static const char *base_of(const char *name, size_t *len_ret)
{
	const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name;

	*len_ret = strcspn(base, ".");
	return base;
}

static bool is_again(const struct uni_cmd_ctx *ctx, size_t i)
{
	size_t len, other_len;
	const char *base = base_of(ctx->operands[i], &len);

	for (size_t k = 0; k < i; k++) {
		const char *other = base_of(ctx->operands[k], &other_len);

		if (other_len == len && memcmp(other, base, len) == 0)
			return true;
	}
	return false;
}

/* DIR/NAME.html and .json; NAME is the file's name without its suffix, its place, or both. */
static void out_name(const struct trace *t, const char *ext, struct uni_strbuf *ret)
{
	size_t len;
	const char *base = base_of(t->name, &len);

	uni_strbuf_reset(ret);
	if (len == 0 || base[0] == '-' || len > NAME_BYTES)
		uni_strbuf_addf(ret, "%s/trace-%zu.%s", o.html, t->nr, ext);
	else if (t->again)
		uni_strbuf_addf(ret, "%s/%.*s.%zu.%s", o.html, (int)len, base, t->nr, ext);
	else
		uni_strbuf_addf(ret, "%s/%.*s.%s", o.html, (int)len, base, ext);
}

static int write_json(const char *path, const char *to, struct uni_err *err)
{
	struct uni_findings found = { 0 };
	struct uni_promises p;
	int rc = uni_promises_open_to(&p, path, to, &o.a, err);

	if (rc != 0)
		return rc;
	rc = uni_promise_findings(p.m, UNI_PROMISE_BUSY_NS, &found);
	if (rc == 0)
		uni_promise_json(p.out, p.m, &found);
	uni_findings_deinit(&found);
	return uni_promises_close(&p, rc, err) == UNI_EXIT_OK ? 0 : -UNI_EIO;
}

static int write_page(const struct trace *t, const char *path, struct uni_err *err)
{
	struct uni_source_args args = {
		.path = path, .guest = o.a.guest, .build = UNI_BUILD_DEFAULTS
	};
	_cleanup_strbuf_ struct uni_strbuf to;
	int rc;

	uni_strbuf_init(&to);
	out_name(t, "json", &to);
	if (uni_strbuf_failed(&to))
		return uni_err_nomem(err);
	rc = write_json(path, to.s, err);
	out_name(t, "html", &to);
	if (rc == 0 && uni_strbuf_failed(&to))
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = uni_page_report(&args, &(struct uni_page_args){ .output = to.s }, err);
	if (rc == 0)
		uni_note("wrote %s", to.s);
	return rc;
}

static int view_one(const struct trace *t, struct uni_err *err)
{
	struct uni_input in;
	const char *path;
	int rc = uni_input_path(t->name, &in, &path, err);

	if (rc != 0)
		return rc;
	if (o.write != NULL)
		rc = write_trace(path, err);
	else if (o.html != NULL)
		rc = write_page(t, path, err);
	else
		rc = show_findings(path, err);
	uni_input_close(&in);
	return rc;
}

/* As the older tool, which knew domains alone; elsewhere any guest. */
static int name_target(struct uni_strbuf *ret, struct uni_err *err)
{
	const struct uni_target_ops *xen = uni_target_backend("xen");
	bool is_xen = strchr(o.domain, ':') == NULL && xen != NULL && xen->host_check(NULL) == 0;

	uni_strbuf_addf(ret, "%s%s", is_xen ? "xen:dom=" : "", o.domain);
	return uni_strbuf_failed(ret) ? uni_err_nomem(err) : 0;
}

static int from_domain(struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf target;
	_cleanup_free_ char *path = NULL;
	struct uni_scratch scratch;
	int rc = uni_scratch_make(&scratch, err);

	uni_strbuf_init(&target);
	if (rc != 0)
		return rc;
	rc = name_target(&target, err);
	if (rc == 0)
		rc = uni_mprof_fetch(target.s, &o.images, scratch.path, &path, err);
	if (rc == 0)
		rc = view_one(&(struct trace){ .name = path, .nr = 1 }, err);
	uni_scratch_remove(&scratch);
	return rc;
}

static int run_mirage_trace_viewer(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_close_ int fd = -1;
	int rc = check_viewer_options(ctx, err);

	if (rc == 0 && o.domain == NULL)
		rc = uni_privilege_drop(err);
	if (rc == 0 && o.html != NULL)
		(void)uni_outdir_mkdir(o.html, &fd, NULL); /* the first file reports errors */
	if (rc == 0 && o.domain != NULL)
		rc = from_domain(err);
	for (size_t i = 0; rc == 0 && i < ctx->nr_operands; i++)
		rc = view_one(&(struct trace){ ctx->operands[i], i + 1, is_again(ctx, i) }, err);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_mirage_trace_viewer = {
	.name = "mirage-trace-viewer",
	.operands = "[FILE...]",
	.summary =
		"for scripts of MirageOS' trace viewer: show, convert or fetch traces of threads",
	.details = "Each FILE is a trace ring of MirageOS, or a session of `uniscope "
		   "trace`; - is standard input.\n"
		   "Without --write and --html it prints the errors and the list of threads.",
	.examples = "  uniscope compat mirage-trace-viewer trace.ctf\n"
		    "  uniscope compat mirage-trace-viewer -d web -w web.ctf\n"
		    "  uniscope compat mirage-trace-viewer --html htdocs trace.ctf",
	.min_operands = 0,
	.max_operands = 64,
	.options = list_mirage_trace_viewer_options,
	.run = run_mirage_trace_viewer,
};
