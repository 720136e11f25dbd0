/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cli/cmd.h"
#include "cli/source.h"
#include "cli/symbols.h"
#include "cli/term.h"
#include "cli/timeline.h"
#include "export/export.h"
#include "profile/calls.h"

#define MAX_OPTIONS 64

static struct {
	struct uni_source_args src;
	const char *format, *output, *calls;
	struct uni_opt_list set;
	uint64_t vcpu;
	bool vcpu_given, list;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 'f', "format", UNI_OPT_STR, &o.format, "FORMAT",
			"what to write: see --list (default: from the end of --output's name)",
			"folded svg uniprof json nanos csv uftrace chrome fxt mirage", NULL },
		{ 'o', "output", UNI_OPT_STR, &o.output, "FILE",
			"where to; - is standard output (default -)", "FILE", NULL },
		{ 'O', "option", UNI_OPT_LIST, &o.set, "NAME=VALUE",
			"an option of the format, such as title=... of svg; may be given several "
			"times",
			NULL, NULL },
		{ 0, "from", UNI_OPT_STR, &o.src.format, "FORMAT",
			"what FILE is, when it is no session (default: look at it)",
			"folded uniprof ftrace", NULL },
		{ 0, "diff", UNI_OPT_FLAG, &o.src.diff, NULL,
			"folded input has two counts a line: draw the difference", NULL, NULL },
		{ 's', "symbols", UNI_OPT_STR, &o.src.symbols, "FILE",
			"names for raw addresses: an ELF, a .usym or " UNI_SYMBOL_TABLE, "FILE",
			NULL },
		UNI_DEBUG_DIR_OPTION(o.src.debug_dirs),
		UNI_NAMING_OPTIONS(o.src.build.naming),
		{ 0, "per-vcpu", UNI_OPT_FLAG, &o.src.build.per_vcpu, NULL,
			"one tree below each vCPU", NULL, NULL },
		{ 0, "vcpu", UNI_OPT_U64, &o.vcpu, "N", "only this vCPU", NULL, &o.vcpu_given },
		UNI_SOURCE_OPTIONS(o.src),
		{ 0, "exits", UNI_OPT_MAYBE, &o.src.exits, "[=count|time]",
			"what made the guest leave, instead of samples: exits by their number "
			"(default), or by the nanoseconds until the guest went on",
			NULL, NULL },
		{ 0, "calls", UNI_OPT_MAYBE, &o.calls, "[=time|count]",
			"the functions of a trace, instead of samples: by the nanoseconds that "
			"each took itself (default), or by the number of calls",
			NULL, NULL },
		{ 0, "list", UNI_OPT_FLAG, &o.list, NULL, "list the formats and their options",
			NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .src.build = UNI_BUILD_DEFAULTS };
	return table;
}

static int list_formats(void)
{
	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		const struct uni_exporter *e = uni_exporters[i];

		(void)printf("%-10s .%-8s %s\n", e->name, e->ext, e->summary);
		for (const struct uni_export_optdef *d = e->options; d != NULL && d->name != NULL;
			d++)
			(void)printf("  -O %s%s%s: %s\n", d->name, d->value != NULL ? "=" : "",
				d->value != NULL ? d->value : "", d->help);
	}
	return UNI_EXIT_OK;
}

static const struct uni_exporter *choose(struct uni_err *err)
{
	const struct uni_exporter *e = NULL;
	const char *dot = o.output != NULL ? strrchr(o.output, '.') : NULL;
	_cleanup_strbuf_ struct uni_strbuf known;

	uni_strbuf_init(&known);
	if (o.format != NULL)
		e = uni_exporter_by_name(o.format);
	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		uni_strbuf_addf(&known, " %s", uni_exporters[i]->name);
		if (o.format == NULL && dot != NULL && strcmp(dot + 1, uni_exporters[i]->ext) == 0)
			e = uni_exporters[i];
	}
	if (e == NULL && o.format != NULL)
		(void)uni_err_set(
			err, UNI_EUSAGE, "no format '%s'; there are:%s", o.format, known.s);
	else if (e == NULL)
		(void)uni_err_set(
			err, UNI_EUSAGE, "give the format with -f; there are:%s", known.s);
	return e;
}

/* NAME=VALUE words to the exporter's form; the strings are cut in copies that *copy_ret owns. */
static int split_options(
	struct uni_export_opt *opt, size_t *nr_ret, char **copy_ret, struct uni_err *err)
{
	struct uni_strbuf b;
	size_t at = 0;

	uni_strbuf_init(&b);
	if (o.set.items.nr > MAX_OPTIONS)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --option", MAX_OPTIONS);
	for (size_t i = 0; i < o.set.items.nr; i++)
		uni_strbuf_add(&b, o.set.items.v[i], strlen(o.set.items.v[i]) + 1);
	*copy_ret = uni_strbuf_detach(&b);
	if (*copy_ret == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	for (size_t i = 0; i < o.set.items.nr; i++) {
		char *name = *copy_ret + at, *eq = strchr(name, '=');

		at += strlen(name) + 1;
		if (eq != NULL)
			*eq = '\0';
		opt[i] = (struct uni_export_opt){ name, eq != NULL ? eq + 1 : "1" };
	}
	*nr_ret = o.set.items.nr;
	return 0;
}

static int write_to(const struct uni_exporter *e, const struct uni_view *view,
	const struct uni_export_opt *opt, size_t nr, struct uni_err *err)
{
	struct uni_sink *out;
	int rc;

	if (e->write_folder != NULL && (o.output == NULL || strcmp(o.output, "-") == 0))
		return uni_err_set(err, UNI_EUSAGE, "%s is a folder: name it with -o", e->name);
	if (e->write_folder != NULL)
		return e->write_folder(view, opt, nr, o.output, err);
	rc = uni_sink_open_file(o.output != NULL ? o.output : "-", &out, err);
	if (rc != 0)
		return rc;
	rc = e->write(view, opt, nr, out, err);
	if (rc != 0) {
		uni_sink_abort(out);
		return rc;
	}
	return uni_sink_close(out, err);
}

static int write_it(const struct uni_exporter *e, struct uni_view *view, struct uni_err *err)
{
	struct uni_export_opt opt[MAX_OPTIONS];
	_cleanup_free_ char *copy = NULL;
	size_t nr = 0;
	int rc = split_options(opt, &nr, &copy, err);

	return rc != 0 ? rc : write_to(e, view, opt, nr, err);
}

static int write_source(const struct uni_exporter *e, struct uni_err *err)
{
	struct uni_source s;
	struct uni_view view = { 0 };
	int rc = uni_source_open(&o.src, &s, err);

	if (rc != 0)
		return rc;
	if ((e->needs & UNI_NEEDS_SAMPLES) != 0 && s.rec == NULL) {
		rc = uni_err_set(err, UNI_ENOTSUP,
			"%s needs single samples, and %s is an aggregate: import it first", e->name,
			o.src.path);
	} else if ((e->needs & UNI_NEEDS_SAMPLES) != 0 && o.src.exits != NULL) {
		rc = uni_err_set(
			err, UNI_ENOTSUP, "%s holds single samples: it cannot show exits", e->name);
	} else {
		view.profile = s.profile;
		view.samples = s.rec;
		view.symtab = s.symtab;
		view.filter = &o.src.build.filter;
		view.mangled = o.src.build.naming.mangled;
		rc = write_it(e, &view, err);
	}
	uni_source_close(&s);
	return rc;
}

/* The calls themselves, or a tree of them. */
static int write_calls(const struct uni_exporter *e, struct uni_err *err)
{
	struct uni_profile_calls added;
	struct uni_call_source *s;
	struct uni_view view = { 0 };
	struct uni_profile *p = NULL;
	int rc = uni_call_source_open(&o.src, &s, err);

	if (rc != 0)
		return rc;
	view.timeline = uni_call_source_get(s);
	if ((e->needs & UNI_NEEDS_PROFILE) != 0) {
		p = uni_profile_create();
		if (p == NULL ||
			uni_profile_add_calls(p, view.timeline,
				o.calls != NULL && strcmp(o.calls, "count") == 0, &added) != 0 ||
			uni_profile_finish(p) != 0)
			rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
		view.profile = p;
	}
	if (rc == 0)
		rc = write_it(e, &view, err);
	if (rc == 0)
		uni_call_source_note(s);
	uni_profile_destroy(p);
	uni_call_source_close(s);
	return rc;
}

static int check_calls(const struct uni_exporter *e, struct uni_err *err)
{
	if (o.calls != NULL && o.calls[0] != '\0' && strcmp(o.calls, "count") != 0 &&
		strcmp(o.calls, "time") != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"--calls=%s: calls are added up by time or by count", o.calls);
	if (o.calls != NULL && (e->needs & UNI_NEEDS_SAMPLES) != 0)
		return uni_err_set(
			err, UNI_ENOTSUP, "%s holds single samples: it cannot show calls", e->name);
	return 0;
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_exporter *e;
	int rc;

	if (o.list)
		return list_formats();
	if (ctx->nr_operands != 1)
		return uni_exit_of(uni_err_set(
			err, UNI_EUSAGE, "usage: uniscope export [OPTIONS] FILE (see --help)"));
	e = choose(err);
	if (e == NULL)
		return UNI_EXIT_USAGE;
	o.src.path = ctx->operands[0];
	if (o.vcpu_given)
		o.src.build.filter.vcpu = (int64_t)uni_min(o.vcpu, (uint64_t)INT64_MAX);
	rc = check_calls(e, err);
	if (rc == 0 && (o.calls != NULL || (e->needs & UNI_NEEDS_TIMELINE) != 0))
		rc = write_calls(e, err);
	else if (rc == 0)
		rc = write_source(e, err);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_export = {
	.name = "export",
	.operands = "FILE",
	.summary = "write a session, or folded stacks and the like, in another format",
	.details = "FILE is a session folder, a session in one stream (- is standard input), or a "
		   "file in a "
		   "format that\n"
		   "`uniscope import` reads. The formats nanos, csv, uftrace, chrome and fxt show "
		   "single "
		   "calls, of a\n"
		   "session with a trace or of a text that Nanos' or Linux' ftrace printed; mirage "
		   "shows "
		   "threads and\n"
		   "promises of a session.",
	.examples = "  uniscope export web1.uniscope -f folded -o web1.folded\n"
		    "  uniscope export web1.uniscope -o web1.svg -O title='web1 under load'\n"
		    "  uniscope export --exits=time web1.uniscope -o exits.svg\n"
		    "  uniscope export --calls traced.uniscope -o calls.svg\n"
		    "  uniscope export traced.uniscope -o traced.mirage\n"
		    "  uniscope export ftrace.txt -f uftrace -o ftrace.data\n"
		    "  uniscope export --diff two-columns.folded -f svg -o diff.svg",
	.min_operands = 0,
	.max_operands = 1,
	.options = options,
	.run = run,
};
