/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/outdir.h"
#include "base/privilege.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "app/call_rules.h"
#include "app/cmd.h"
#include "app/exporting.h"
#include "app/symbols.h"
#include "app/term.h"

#define MAX_OPTIONS 64

static struct {
	struct uni_exporting x;
	const char *format, *output, *all;
	struct uni_opt_list set;
	bool list;
} o;

static const struct uni_opt *list_export_options(void)
{
	static const struct uni_opt table[] = {
		{ 'f', "format", UNI_OPT_STR, &o.format, "FORMAT",
			"what to write: see --list (default: from the end of --output's name)",
			UNI_WORDS_EXPORTERS, NULL },
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default -)", "FILE", NULL },
		{ 0, "all", UNI_OPT_OUTPUT, &o.all, "DIR",
			"write every format that can show FILE's data, as "
			"DIR/profile.EXTENSION; DIR is made",
			"FILE", NULL },
		{ 'O', "option", UNI_OPT_LIST, &o.set, "NAME=VALUE",
			"an option of the format, such as title=... of svg; may be given several "
			"times",
			NULL, NULL },
		UNI_INPUT_FORMAT_OPTION(o.x.src.format),
		{ 0, "diff", UNI_OPT_FLAG, &o.x.src.diff, NULL,
			"folded input has two counts a line: draw the difference", NULL, NULL },
		{ 0, "before", UNI_OPT_STR, &o.x.before, "FILE",
			"compare: show what changed from this file to the other", "FILE", NULL },
		{ 0, "normalize", UNI_OPT_FLAG, &o.x.normalize, NULL,
			"with --before: scale its values to the other file's total, as is done "
			"unless both are exact counts",
			NULL, NULL },
		{ 0, "no-normalize", UNI_OPT_FLAG, &o.x.raw, NULL,
			"with --before: leave its values as they are", NULL, NULL },
		{ 's', "symbols", UNI_OPT_STR, &o.x.src.symbols, "FILE",
			"names for raw addresses: an ELF, a .usym or " UNI_SYMBOL_TABLE, "FILE",
			NULL },
		UNI_DEBUG_DIR_OPTION(o.x.src.debug_dirs),
		UNI_NAMING_OPTIONS(o.x.src.build.naming),
		{ 0, "per-vcpu", UNI_OPT_FLAG, &o.x.src.build.per_vcpu, NULL,
			"one tree below each vCPU", NULL, NULL },
		UNI_SOURCE_OPTIONS(o.x.src),
		UNI_RULE_OPTION(o.x.src.rules),
		{ 0, "exits", UNI_OPT_MAYBE, &o.x.src.exits, "[=count|time]",
			"write VM exits instead of samples: by their number "
			"(default), or by the nanoseconds until the guest went on",
			NULL, NULL },
		{ 0, "calls", UNI_OPT_MAYBE, &o.x.calls, "[=time|count]",
			"write the functions of a trace instead of samples: by "
			"their self time in ns (default), or by the number of "
			"calls. It is not needed if there are no samples",
			NULL, NULL },
		{ 0, "list", UNI_OPT_FLAG, &o.list, NULL, "list the formats and their options",
			NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .x.src.build = UNI_BUILD_DEFAULTS };
	return table;
}

static int list_formats(void)
{
	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		const struct uni_exporter *e = uni_exporters[i];

		(void)printf("%-10s .%-14s %s\n", e->name, e->ext, e->summary);
		if (e->lost != NULL)
			(void)printf("  lost: %s\n", e->lost);
		for (const struct uni_export_optdef *d = e->options; d != NULL && d->name != NULL;
			d++)
			(void)printf("  -O %s%s%s: %s\n", d->name, d->value != NULL ? "=" : "",
				d->value != NULL ? d->value : "", d->help);
	}
	return UNI_EXIT_OK;
}

static bool ends_with(const char *s, const char *ext)
{
	size_t n = strlen(s), t = strlen(ext);

	return n > t && s[n - t - 1] == '.' && strcmp(s + n - t, ext) == 0;
}

/* "x.speedscope.json" is not json's: the longest end counts. */
static const struct uni_exporter *choose_format(struct uni_err *err)
{
	const struct uni_exporter *e = NULL;
	_cleanup_strbuf_ struct uni_strbuf known;

	uni_strbuf_init(&known);
	if (o.format != NULL)
		e = uni_exporter_by_name(o.format);
	for (size_t i = 0; uni_exporters[i] != NULL; i++) {
		const struct uni_exporter *one = uni_exporters[i];

		uni_strbuf_addf(&known, " %s", one->name);
		if (o.format == NULL && o.output != NULL && ends_with(o.output, one->ext) &&
			(e == NULL || strlen(one->ext) > strlen(e->ext)))
			e = one;
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
		return uni_err_nomem(err);
	for (size_t i = 0; i < o.set.items.nr; i++) {
		char *name = *copy_ret + at, *eq = strchr(name, '=');

		at += strlen(name) + 1;
		if (eq != NULL)
			*eq = '\0';
		opt[i] = (struct uni_export_opt){ name, eq != NULL ? eq + 1 : NULL };
	}
	*nr_ret = o.set.items.nr;
	return 0;
}

/* Leaves out formats for which the file has no data, with a message. */
static int write_all(struct uni_exporting *x, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf path;
	_cleanup_close_ int fd = -1;
	size_t nr = 0;
	int rc = uni_privilege_drop(err);

	uni_strbuf_init(&path);
	if (rc == 0)
		rc = uni_exporting_open(x, err);
	if (rc == 0)
		rc = uni_outdir_mkdir(o.all, &fd, err);
	if (rc != 0)
		return rc;
	for (size_t i = 0; rc == 0 && uni_exporters[i] != NULL; i++) {
		const struct uni_exporter *e = uni_exporters[i];
		struct uni_err why = { 0 };

		uni_strbuf_reset(&path);
		uni_strbuf_addf(&path, "%s/profile.%s", o.all, e->ext);
		if (uni_strbuf_failed(&path))
			return uni_err_nomem(err);
		rc = uni_exporting_write(x, e, NULL, 0, path.s, &why);
		if (rc == -UNI_EIO || rc == -UNI_ENOMEM)
			return uni_err_set(err, (enum uni_errcode) - rc, "%s", why.msg);
		if (rc != 0)
			uni_note("%s is left out: %s", e->name, why.msg);
		nr += rc == 0;
		rc = 0;
	}
	if (rc == 0)
		uni_note("wrote %zu format%s into %s", nr, uni_plural(nr), o.all);
	return rc;
}

static int write_one(struct uni_exporting *x, const struct uni_exporter *e, struct uni_err *err)
{
	struct uni_export_opt opt[MAX_OPTIONS];
	_cleanup_free_ char *copy = NULL;
	size_t nr = 0;
	int rc = split_options(opt, &nr, &copy, err);

	/* Flame charts want to know how stacks came. */
	x->keep_log = x->keep_log || uni_export_opts_ordered(e, opt, nr);
	x->walked = (e->needs & UNI_WALKS_TREE) != 0;
	x->piled = (e->needs & UNI_TAKES_PILE) != 0;
	if (rc == 0) {
		uni_confine_output(uni_export_opts_output(e, opt, nr));
		rc = uni_privilege_drop(err);
	}
	if (rc == 0)
		rc = uni_exporting_write(x, e, opt, nr, o.output != NULL ? o.output : "-", err);
	return rc;
}

static int run_export(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_exporting *x = &o.x;
	const struct uni_exporter *e = NULL;
	int rc;

	if (o.list)
		return list_formats();
	if (ctx->nr_operands != 1)
		return uni_exit_of(uni_err_set(
			err, UNI_EUSAGE, "usage: uniscope export [OPTIONS] FILE (see --help)"));
	if (o.all != NULL && (o.format != NULL || o.output != NULL || o.set.items.nr != 0))
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--all writes each format to its own file: no -f, -o or -O"));
	e = o.all == NULL ? choose_format(err) : NULL;
	if (o.all == NULL && e == NULL)
		return UNI_EXIT_USAGE;
	x->src.path = ctx->operands[0];
	rc = o.all != NULL ? write_all(x, err) : write_one(x, e, err);
	uni_exporting_close(x);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_export = {
	.name = "export",
	.group = UNI_CMDS_EXCHANGE,
	.operands = "FILE",
	.summary = "write a session, or folded stacks and the like, in another format",
	.details = "FILE is a session folder, a session in one stream (- is "
		   "standard input), or a file in a format\n"
		   "that `uniscope import` reads. nanos, csv and uftrace show "
		   "single calls: their input is a session\n"
		   "with a trace, or a text of Nanos' or Linux' ftrace. csv of "
		   "samples is a table of functions. chrome,\n"
		   "fxt and perfetto show calls, samples, threads and promises of a "
		   "session; mirage shows threads and\n"
		   "promises. A message and --list name the data that a format "
		   "leaves out.",
	.examples = "  uniscope export web1.uniscope -f folded -o web1.folded\n"
		    "  uniscope export web1.uniscope -o web1.svg -O title='web1 under load'\n"
		    "  uniscope export --exits=time web1.uniscope -o exits.svg\n"
		    "  uniscope export --calls traced.uniscope -o calls.svg\n"
		    "  uniscope export traced.uniscope -o traced.mirage\n"
		    "  uniscope export web1.uniscope -o web1.pb.gz && go tool pprof web1.pb.gz\n"
		    "  uniscope export --all web1.formats web1.uniscope\n"
		    "  uniscope export --before old.uniscope new.uniscope -o changed.svg\n"
		    "  uniscope export ftrace.txt -f uftrace -o ftrace.data\n"
		    "  uniscope export --diff two-columns.folded -f svg -o diff.svg",
	.min_operands = 0,
	.max_operands = 1,
	.options = list_export_options,
	.run = run_export,
};
