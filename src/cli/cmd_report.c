/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/confine.h"
#include "base/strbuf.h"
#include "app/browser.h"
#include "app/cmd.h"
#include "app/newest.h"
#include "app/page.h"
#include "app/quality.h"
#include "app/source.h"
#include "app/symbols.h"
#include "app/term.h"
#include "app/unknown.h"
#include "format/export.h"
#include "obj/disasm.h"
#include "format/json/view.h"
#include "profile/copy.h"
#include "profile/exits.h"
#include "profile/text.h"

static struct {
	struct uni_source_args src;
	uint64_t functions, depth;
	double min_percent;
	bool tree, per_vcpu, json, open, top_given;
	struct uni_json_view view;
	struct uni_page_args page;
} o;

/* Reports on stderr how much --hide leaves out. */
static int hide_functions(struct uni_source *s, struct uni_err *err)
{
	double all = uni_profile_total(s->profile);
	struct uni_profile *rest;

	if (uni_profile_hide(s->profile, o.page.hide.items.v, o.page.hide.items.nr, &rest) != 0)
		return uni_err_nomem(err);
	uni_profile_destroy(s->profile);
	s->profile = rest;
	if (uni_profile_hidden(rest) == 0)
		uni_note("no function with time of its own matches --hide: nothing is left out");
	else
		uni_note("%.2f %% of the %s is left out, the self time of the hidden functions: "
			 "shares are of the rest",
			all > 0 ? 100 * uni_profile_hidden(rest) / all : 0.0,
			strcmp(uni_profile_unit(rest), "ns") == 0 ? "time"
								  : uni_profile_unit(rest));
	return 0;
}

static const struct uni_opt *list_report_options(void)
{
	static const struct uni_opt table[] = {
		{ 'n', "max", UNI_OPT_U64, &o.functions, "N",
			"functions to list at most; 0 lists all (default 20)", NULL, NULL,
			.old_name = "functions" },
		{ 't', "tree", UNI_OPT_FLAG, &o.tree, NULL, "also print the call tree", NULL,
			NULL },
		{ 0, "depth", UNI_OPT_U64, &o.depth, "N",
			"levels of the tree; 0 is all (default 0)", NULL, NULL },
		{ 0, "min", UNI_OPT_DOUBLE, &o.min_percent, "PERCENT",
			"leave out lines with a smaller share of the total "
			"(default 0.5)",
			NULL, NULL },
		{ 0, "per-vcpu", UNI_OPT_FLAG, &o.per_vcpu, NULL,
			"a line for each vCPU, and one tree below each", NULL, NULL },
		UNI_SOURCE_OPTIONS(o.src),
		{ 's', "symbols", UNI_OPT_STR, &o.src.symbols, "FILE",
			"names from this ELF, .usym or table in text instead of "
			"the session's own. A table is the output of nm, objdump "
			"-t or -x, System.map, kallsyms, or three columns "
			"(address, flag, name)",
			"FILE", NULL },
		UNI_DEBUG_DIR_OPTION(o.src.debug_dirs),
		UNI_NAMING_OPTIONS(o.src.build.naming),
		UNI_INPUT_FORMAT_OPTION(o.src.format),
		{ 0, "diff", UNI_OPT_FLAG, &o.src.diff, NULL,
			"folded input has two counts a line: show the difference", NULL, NULL },
		{ 0, "exits", UNI_OPT_MAYBE, &o.src.exits, "[=count|time]",
			"print the VM exits and their cost: a table by exit and "
			"function, in the order of number or time (default time). With --tree "
			"also the chains, by number (default) or by nanoseconds. --json prints "
			"the table",
			NULL, NULL },
		{ 0, "html", UNI_OPT_OUTPUT, &o.page.output, "FILE",
			"write one page with everything that was recorded: it opens in a browser, "
			"from disk, without a network (- is standard output)",
			"FILE", NULL },
		{ 0, "open", UNI_OPT_FLAG, &o.open, NULL,
			"open the page of --html in a browser (default: NAME.html in this folder)",
			NULL, NULL },
		{ 0, "code", UNI_OPT_FLAG, &o.page.code, NULL,
			"with --html: also source lines and instructions of the hottest functions, "
			"with samples at each (docs/annotate.md)",
			NULL, NULL },
		{ 0, "source", UNI_OPT_LIST, &o.page.source, "DIR",
			"with --code: look for source files here; may be given several times",
			"FILE", NULL },
		{ 0, "before", UNI_OPT_STR, &o.page.before, "FILE",
			"with --html: show the difference from this older "
			"session or import",
			"FILE", NULL },
		{ 0, "beside", UNI_OPT_STR, &o.page.beside, "FILE",
			"with --html: also show the timeline of this trace, to "
			"compare a good run with a bad one",
			"FILE", NULL },
		{ 0, "hide", UNI_OPT_LIST, &o.page.hide, "GLOB",
			"leave out the self time of functions with such names: "
			"shares and totals are of the rest. * and ? stand for "
			"any text; may be given several times (with --html: "
			"hidden at first)",
			NULL, NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON (the json export format)",
			NULL, NULL },
		{ 0, "top", UNI_OPT_U64, &o.view.top, "N",
			"with --json: a bounded answer, of the N largest functions and callees, "
			"from 1 on (docs/formats/json.md; default 20 with one of the next two)",
			NULL, &o.top_given },
		{ 0, "focus", UNI_OPT_STR, &o.view.focus, "FUNCTION",
			"with --json: the callees of this function, wherever it is called, and its "
			"callers",
			NULL, NULL },
		{ 0, "under", UNI_OPT_STR, &o.view.under, "HANDLE",
			"with --json: only below the call chain with this handle, of an earlier "
			"answer",
			NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .src.build = UNI_BUILD_DEFAULTS, .functions = 20, .min_percent = 0.5 };
	return table;
}

/* Only a small part of the view is in the image (`none`: no part). */
static bool is_elsewhere(const struct uni_source *s, bool none)
{
	uint32_t nr = s->rec != NULL ? uni_recording_nr_guests(s->rec) : 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct uni_record_stats *st = uni_recording_guest(s->rec, i).shown;

		if (!uni_only_passes(o.src.build.filter.guest, i))
			continue;
		if (!uni_record_is_elsewhere(st) || (none && st->inside != 0))
			return false;
	}
	return nr != 0;
}

static int print_report(const struct uni_source *s, struct uni_err *err)
{
	struct uni_text_opts text = { .colour = uni_term_colour(stdout),
		.width = uni_term_colour(stdout) ? uni_term_width(stdout) : 0,
		.max_rows = o.functions,
		.min_percent = o.min_percent };
	struct uni_sink *out;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	if (s->rec != NULL)
		uni_quality_print(s->rec, &o.src.build.filter, out);
	if (o.functions != 0)
		text.min_percent = 0;
	/* A table of nothing but such addresses would look like its profile. */
	if (!is_elsewhere(s, true))
		rc = uni_text_functions(s->profile, &text, out);
	text.min_percent = o.min_percent;
	text.max_rows = 0;
	text.max_depth = (unsigned)uni_min(o.depth, (uint64_t)UINT32_MAX);
	if (rc == 0 && o.per_vcpu) {
		uni_sink_putc(out, '\n');
		rc = uni_text_vcpus(s->profile, &text, out);
	}
	if (rc == 0 && o.tree) {
		uni_sink_putc(out, '\n');
		rc = uni_text_tree(s->profile, &text, out);
	}
	if (rc != 0) {
		uni_sink_abort(out);
		return uni_err_set(err, (enum uni_errcode) - rc, "cannot print the report: %s",
			uni_strerror(rc));
	}
	rc = uni_sink_close(out, err);
	if (rc == 0 && s->rec != NULL && !uni_recording_meta(s->rec)->aggregate &&
		uni_recording_meta(s->rec)->stale[0] == '\0' && !is_elsewhere(s, false))
		uni_unknown_say_profile(s->profile);
	return rc;
}

static void put_exit_quality(
	struct uni_sink *out, const struct uni_recording *rec, const struct uni_exit_table *t)
{
	const struct uni_record_part *part = uni_recording_part(rec);
	const struct uni_record_stats *st = uni_recording_shown(rec);
	const struct uni_exit_row *sum = uni_exit_table_sum(t);
	char text[UNI_PART_TEXT];
	double wall = (double)(st->end_ns - st->begin_ns);
	uint32_t every = uni_recording_meta(rec)->exits_every;

	if (part != NULL) {
		uni_part_text(text, part);
		uni_sink_printf(out, "part       %s\n", text);
	}
	uni_sink_printf(out,
		part != NULL ? "exits      %.0f in %.4g s" : "exits      %.0f in %.1f s",
		sum->exits, wall / 1e9);
	if (every > 1)
		uni_sink_printf(out, ", one in %" PRIu32 " looked at", every);
	if (part == NULL)
		uni_sink_printf(out, ", %" PRIu64 " lost", st->exits_lost);
	uni_sink_printf(out, "; %.0f went to the VMM\n", sum->userspace);
	uni_sink_printf(out,
		"host time  %.1f ms, %.2f %% of one CPU, and %.1f ms asleep, %.1f ms stolen\n\n",
		sum->host_ns / 1e6, wall > 0 ? sum->host_ns / wall * 100 : 0, sum->asleep_ns / 1e6,
		sum->stolen_ns / 1e6);
}

static int put_exits(const struct uni_source *s, const struct uni_exit_table *t,
	const struct uni_text_opts *text, struct uni_sink *out)
{
	struct uni_text_opts tree = *text;

	put_exit_quality(out, s->rec, t);
	uni_text_exits(t, text, out);
	if (s->profile == NULL)
		return 0;
	tree.max_rows = 0;
	tree.max_depth = (unsigned)uni_min(o.depth, (uint64_t)UINT32_MAX);
	uni_sink_putc(out, '\n');
	return uni_text_tree(s->profile, &tree, out);
}

static int print_exits(const struct uni_source *s, struct uni_err *err)
{
	struct uni_text_opts text = { .colour = uni_term_colour(stdout),
		.max_rows = o.functions,
		.min_percent = o.functions != 0 ? 0 : o.min_percent };
	struct uni_build_opts opts = o.src.build;
	struct uni_exit_table *t = NULL;
	struct uni_build_read read;
	struct uni_sink *out;
	int rc;

	opts.symtab = s->symtab;
	if (o.src.exits[0] == '\0')
		opts.what = UNI_BUILD_EXIT_TIMES;
	rc = uni_exit_table_build(s->rec, &opts, &t, &read, err);
	if (rc != 0)
		return rc;
	uni_source_note_damage(&o.src, s, &read);
	rc = uni_sink_open_file("-", &out, err);
	if (rc == 0 && o.json)
		uni_json_exits(t, uni_recording_part(s->rec), out);
	else if (rc == 0 && put_exits(s, t, &text, out) != 0)
		uni_sink_puts(out, "(out of memory)\n");
	uni_exit_table_destroy(t);
	return rc == 0 ? uni_sink_close(out, err) : rc;
}

static int print_json(const struct uni_source *s, struct uni_err *err)
{
	const struct uni_exporter *e = uni_exporter_by_name("json");
	struct uni_view view = {
		.profile = s->profile, .samples = s->rec, .filter = &o.src.build.filter
	};
	struct uni_sink *out;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	o.view.part = s->rec != NULL ? uni_recording_part(s->rec) : NULL;
	rc = o.view.top != 0 ? uni_json_view(s->profile, &o.view, out, err)
			     : e->write(&view, NULL, 0, out, err);
	if (rc != 0) {
		uni_sink_abort(out);
		return rc;
	}
	return uni_sink_close(out, err);
}

/* Another program can be started, and a library loaded, only before the rights go. */
static void prepare_report(void)
{
	if (o.page.code)
		uni_disasm_load();
	if (!o.open)
		return;
	uni_browser_prepare(o.page.output);
	if (o.page.output == NULL)
		uni_confine_output("./report.html"); /* or another name in this folder */
}

static int write_report_page(struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf name;
	const char *slash = strrchr(o.src.path, '/'),
		   *base = slash != NULL ? slash + 1 : o.src.path;
	size_t len = strlen(base), end = strlen(".uniscope");
	int rc;

	if (len > end && strcmp(base + len - end, ".uniscope") == 0)
		len -= end;

	uni_strbuf_init(&name);
	uni_strbuf_add(&name, base, len);
	uni_strbuf_adds(&name, ".html");
	if (uni_strbuf_failed(&name))
		return uni_err_nomem(err);
	if (uni_part_has_time(&o.src.part))
		return uni_err_set(err, UNI_EUSAGE,
			"--from and --to are not for --html: a time is chosen in the page");
	if (o.open && o.page.output != NULL && strcmp(o.page.output, "-") == 0)
		return uni_err_set(
			err, UNI_EUSAGE, "--open needs a file: give --html FILE, or leave it out");
	if (o.page.output == NULL)
		o.page.output = name.s;
	rc = uni_page_report(&o.src, &o.page, err);
	if (rc != 0 || !o.open)
		return rc;
	uni_note("opening %s", o.page.output);
	return uni_browser_open(o.page.output, err);
}

static int run_report(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ char *newest = NULL;
	struct uni_source s;
	int rc = 0;

	if (ctx->nr_operands == 0) {
		rc = uni_newest_session(&newest, err);
		if (rc != 0)
			return uni_exit_of(rc);
		uni_note("the newest session here is %s", newest);
	}
	o.src.path = newest != NULL ? newest : ctx->operands[0];
	o.src.build.per_vcpu = o.per_vcpu;
	o.src.no_profile = o.src.exits != NULL && (o.json || !o.tree);
	if (o.top_given && o.view.top == 0)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--top takes a number from 1 on; --json without it has everything"));
	if ((o.view.focus != NULL || o.view.under != NULL) && o.view.top == 0)
		o.view.top = 20;
	if (o.view.top != 0 && (!o.json || o.src.exits != NULL))
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--top, --focus and --under choose a part of --json, without --exits"));
	if (o.page.output != NULL || o.open)
		return uni_exit_of(write_report_page(err));
	if (o.src.exits != NULL && o.page.hide.items.nr != 0)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--hide leaves out time of functions, and --exits prints "
			"VM exits: give one of them"));
	if (o.page.code || o.page.source.items.nr != 0)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--code and --source are for --html: `uniscope annotate`"));
	if (o.page.beside != NULL)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE, "--beside needs --html"));
	if (o.page.before != NULL)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--before needs --html (`uniscope diff OLD NEW` compares in words, "
			"`uniscope export --before` has other formats)"));
	rc = uni_source_open(&o.src, &s, err);
	if (rc != 0)
		return uni_exit_of(rc);
	if (o.page.hide.items.nr != 0)
		rc = hide_functions(&s, err);
	if (rc == 0 && o.src.exits != NULL)
		rc = print_exits(&s, err);
	else if (rc == 0)
		rc = o.json ? print_json(&s, err) : print_report(&s, err);
	if (rc == 0 && o.src.exits == NULL && uni_source_is_trace(&s))
		uni_note("%s holds a function trace, and no samples: see `uniscope trace report`",
			o.src.path);
	uni_source_close(&s);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_report = {
	.name = "report",
	.operands = "[FILE]",
	.reads_only = true,
	.summary = "print the results of a session: quality, functions, call tree",
	.details = "FILE is a session folder, or a file in a format that `uniscope import` reads. "
		   "Without it, the newest session of this folder is taken.",
	.examples = "  uniscope report\n"
		    "  uniscope report web1.uniscope\n"
		    "  uniscope report --tree --per-vcpu web1.uniscope\n"
		    "  uniscope report --exits web1.uniscope\n"
		    "  uniscope report --html web1.html web1.uniscope\n"
		    "  uniscope report --open web1.uniscope\n"
		    "  uniscope report --hide 'kernel_sleep*' --html trace.html trace.csv\n"
		    "  uniscope report --html both.html --beside good.uniscope bad.uniscope",
	.max_operands = 1,
	.prepare = prepare_report,
	.options = list_report_options,
	.run = run_report,
};
