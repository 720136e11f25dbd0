/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/strbuf.h"
#include "app/cmd.h"
#include "app/diff_exact.h"
#include "app/diff_renamed.h"
#include "app/diffing.h"
#include "app/page.h"
#include "app/symbols.h"
#include "format/export.h"
#include "obj/disasm.h"
#include "profile/text.h"

/* Exit status: besides those of all commands. */
enum {
	EXIT_UNSURE = 3,
	EXIT_SLOWER = 4,
};

#define CONDITIONS_MAX 64
#define TREE_LINES     5   /* for a function in the table */
#define TREE_MIN       0.5 /* percent */

static struct {
	struct uni_diffing_args args;
	double threshold, tolerance;
	uint64_t max_rows;
	bool json, all;
	bool print_tree;
	const char *output;
	struct uni_opt_list fail_if;
	struct uni_condition condition[CONDITIONS_MAX];
	size_t nr_conditions;
} o;

static const struct uni_opt *list_diff_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "of", UNI_OPT_STR, &o.args.of, "WHAT",
			"compare time on a CPU (the default), wall (also idle, the host's and "
			"stolen time), waiting (threads on no vCPU), exits or calls (their number)",
			UNI_DIFFING_OF, NULL },
		{ 0, "per", UNI_OPT_STR, &o.args.per, "WORK",
			"the work that is known, so that the total can grow. run: each recording "
			"did the same (the default for `record TARGET -- COMMAND`). call: each "
			"function of a trace by its own calls. 'call GLOB': calls of a function. "
			"'exit GLOB': VM exits of a kind",
			"run call exit", NULL },
		{ 0, "threshold", UNI_OPT_DOUBLE, &o.threshold, "POINTS",
			"smaller changes of a share, in percentage points, are no changes "
			"(default 1)",
			NULL, NULL },
		{ 0, "tolerance", UNI_OPT_DOUBLE, &o.tolerance, "POINTS",
			"\"the same\" is said if no share can have moved by more (default 5)", NULL,
			NULL },
		{ 0, "fail-if", UNI_OPT_LIST, &o.fail_if, "CONDITION",
			"such as 'function GLOB +2pp', or 'total +5%' of known work. The status "
			"is 4 only if such a share, or the total, grew by so much; may be given "
			"several times",
			NULL, NULL },
		{ 'n', "max", UNI_OPT_U64, &o.max_rows, "N",
			"functions to list at most; 0 lists all (default 20)", NULL, NULL },
		{ 0, "all", UNI_OPT_FLAG, &o.all, NULL, "list functions that did not change, too",
			NULL, NULL },
		{ 't', "tree", UNI_OPT_FLAG, &o.print_tree, NULL,
			"also print the call tree of both sides; * marks functions that changed",
			NULL, NULL },
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE.html",
			"also write a page, or with FILE.svg draw a flame graph, in which only "
			"functions that changed are coloured",
			"FILE", NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON (docs/diff.md)", NULL, NULL },
		{ 0, "guest", UNI_OPT_STR, &o.args.src.guest, "N|NAME",
			"only this guest, of a session with several", NULL, NULL },
		UNI_PART_OPTIONS(o.args.src.part),
		{ 0, "thread", UNI_OPT_STR, &o.args.src.thread, "NAME",
			"only threads whose name matches; * and ? stand for any text", NULL, NULL },
		{ 's', "symbols", UNI_OPT_STR, &o.args.src.symbols, "FILE",
			"names for raw addresses: an ELF, a .usym or " UNI_SYMBOL_TABLE, "FILE",
			NULL },
		UNI_DEBUG_DIR_OPTION(o.args.src.debug_dirs),
		UNI_NAMING_OPTIONS(o.args.src.build.naming),
		UNI_INPUT_FORMAT_OPTION(o.args.src.format),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){
		.args.src.build = UNI_BUILD_DEFAULTS, .threshold = 1, .tolerance = 5, .max_rows = 20
	};
	return table;
}

/* OLD NEW, or OLD... -- NEW... */
static int choose_sides(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_diffing_side *before = &o.args.side[UNI_BEFORE],
				*after = &o.args.side[UNI_AFTER];

	*before = (struct uni_diffing_side){ .path = ctx->operands, .nr = ctx->nr_operands };
	if (ctx->rest != NULL) {
		after->path = (const char *const *)ctx->rest;
		for (after->nr = 0; ctx->rest[after->nr] != NULL;)
			after->nr++;
	} else if (ctx->nr_operands == 2) {
		before->nr = 1;
		*after = (struct uni_diffing_side){ .path = ctx->operands + 1, .nr = 1 };
	}
	if (before->nr == 0 || after->nr == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"give OLD NEW, or several of each side as OLD... -- NEW... (see --help)");
	if (before->nr > UNI_DIFF_RUNS_MAX || after->nr > UNI_DIFF_RUNS_MAX)
		return uni_err_set(
			err, UNI_EUSAGE, "a side has at most %d recordings", UNI_DIFF_RUNS_MAX);
	return 0;
}

static int check_limits(struct uni_err *err)
{
	if (!(o.threshold > 0) || o.threshold > 100)
		return uni_err_set(
			err, UNI_EUSAGE, "--threshold is above 0 and at most 100 points");
	if (!(o.tolerance >= o.threshold) || o.tolerance > 100)
		return uni_err_set(err, UNI_EUSAGE,
			"--tolerance is at least --threshold (%g) and at most 100 points",
			o.threshold);
	return 0;
}

static bool ends_in(const char *name, const char *end)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && strcmp(dot, end) == 0;
}

static int check_outputs(struct uni_err *err)
{
	o.args.tree = o.print_tree || o.output != NULL;
	if (o.print_tree && o.json)
		return uni_err_set(err, UNI_EUSAGE, "--json has no tree: leave out --tree");
	if (o.output != NULL && !ends_in(o.output, ".svg") && !ends_in(o.output, ".html"))
		return uni_err_set(err, UNI_EUSAGE,
			"--output %s: give FILE.html for a page, FILE.svg for a flame graph",
			o.output);
	return 0;
}

static int parse_conditions(const struct uni_diff_limits *limits, struct uni_err *err)
{
	if (o.fail_if.items.nr > CONDITIONS_MAX)
		return uni_err_set(err, UNI_EUSAGE, "give at most %d conditions", CONDITIONS_MAX);
	for (size_t i = 0; i < o.fail_if.items.nr; i++) {
		int rc = uni_condition_parse(o.fail_if.items.v[i], limits, &o.condition[i], err);

		if (rc != 0)
			return rc;
		o.nr_conditions++;
	}
	return 0;
}

/* The conditions decide, if there are any. */
static int status_of_conditions(const struct uni_diffing *x, const struct uni_diff_result *r)
{
	enum uni_condition_result worst = UNI_CONDITION_PASSED;

	for (size_t i = 0; i < o.nr_conditions; i++) {
		uni_condition_judge(&o.condition[i], x->d, r);
		worst = uni_max(worst, o.condition[i].result);
	}
	return worst == UNI_CONDITION_FAILED   ? EXIT_SLOWER
	       : worst == UNI_CONDITION_UNSURE ? EXIT_UNSURE
					       : UNI_EXIT_OK;
}

/* The work is known once the recordings were read. */
static int check_conditions(const struct uni_diff_result *r, struct uni_err *err)
{
	for (size_t i = 0; i < o.nr_conditions; i++) {
		if (o.condition[i].glob == NULL && !r->has_work)
			return uni_err_set(err, UNI_EUSAGE,
				"--fail-if '%s': the recordings do not tell how much work was "
				"done, "
				"so only shares can grow. Give --per, or 3 recordings of each "
				"side, "
				"made by `record TARGET -- COMMAND`",
				o.condition[i].text);
		if (o.condition[i].glob != NULL && o.condition[i].relative != r->each)
			return uni_err_set(err, UNI_EUSAGE, "--fail-if '%s': %s",
				o.condition[i].text,
				r->each ? "a call's time grows by +NUMBER%, not by points"
					: "shares grow by +NUMBERpp; times per call need --per "
					  "call");
	}
	return 0;
}

static int print_diff(const struct uni_diffing *x, const int8_t *sure, struct uni_err *err)
{
	const struct uni_text_opts tree = {
		.max_rows = o.max_rows * TREE_LINES, .min_percent = TREE_MIN, .sure = sure
	};
	struct uni_sink *out;
	int rc = uni_sink_open_file("-", &out, err);

	if (rc != 0)
		return rc;
	if (o.json)
		uni_diff_json(&x->show, out);
	else
		uni_diff_text(&x->show, out);
	if (!o.json && o.print_tree) {
		uni_sink_putc(out, '\n');
		rc = uni_text_tree(x->tree, &tree, out);
	}
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return uni_err_nomem(err);
}

/* "old.uniscope and 2 more". */
static void add_side_name(const struct uni_diff_side_info *side, struct uni_strbuf *ret)
{
	uni_strbuf_adds(ret, side->path[0]);
	if (side->nr > 1)
		uni_strbuf_addf(ret, " and %zu more", side->nr - 1);
}

/* Widths are those of after. */
static int draw_svg(const struct uni_diffing *x, const struct uni_page_diff *d, struct uni_err *err)
{
	static const struct uni_export_opt colours = { "diffcolors", "orangeblue" };
	const struct uni_exporter *e = uni_exporter_by_name("svg");
	_cleanup_free_ char *title = NULL;
	struct uni_view view = { .profile = x->tree, .sure = d->sure, .subtitle = d->verdict };
	struct uni_sink *out;
	int rc;

	if (asprintf(&title, "%s, compared with %s: orange takes more, blue less", d->after,
		    d->before) < 0)
		return uni_err_nomem(err);
	view.title = title;
	rc = uni_sink_open_file(o.output, &out, err);
	if (rc != 0)
		return rc;
	rc = e->write(&view, &colours, 1, out, err);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

static int draw_diff(const struct uni_diffing *x, const int8_t *sure, struct uni_err *err)
{
	_cleanup_strbuf_ struct uni_strbuf before, after, verdict, title;
	struct uni_page_diff d;

	uni_strbuf_init(&before);
	uni_strbuf_init(&after);
	uni_strbuf_init(&verdict);
	uni_strbuf_init(&title);
	add_side_name(&x->show.side[UNI_BEFORE], &before);
	add_side_name(&x->show.side[UNI_AFTER], &after);
	uni_diff_verdict(&x->show, &verdict);
	uni_strbuf_addf(&title, "%s, compared with %s", after.s, before.s);
	if (uni_strbuf_failed(&before) || uni_strbuf_failed(&after) ||
		uni_strbuf_failed(&verdict) || uni_strbuf_failed(&title))
		return uni_err_nomem(err);
	d = (struct uni_page_diff){ .before = before.s,
		.after = after.s,
		.before_file = x->show.side[UNI_BEFORE].path,
		.after_file = x->show.side[UNI_AFTER].path,
		.nr_before = x->show.side[UNI_BEFORE].nr,
		.nr_after = x->show.side[UNI_AFTER].nr,
		.verdict = verdict.s,
		.sure = sure };
	return ends_in(o.output, ".html") ? uni_page_compared(x->tree, &d, title.s, o.output, err)
					  : draw_svg(x, &d, err);
}

static int show_diff(const struct uni_diffing *x, struct uni_err *err)
{
	_cleanup_free_ int8_t *sure = NULL;
	int rc;

	if (x->tree != NULL) {
		sure = uni_diff_sure_frames(x->d, x->show.r, x->tree);
		if (sure == NULL)
			return uni_err_nomem(err);
	}
	rc = print_diff(x, sure, err);
	return rc == 0 && o.output != NULL ? draw_diff(x, sure, err) : rc;
}

static int status_of(enum uni_verdict v)
{
	return v == UNI_VERDICT_SLOWER || v == UNI_VERDICT_LARGER ? EXIT_SLOWER
	       : v == UNI_VERDICT_UNSURE			  ? EXIT_UNSURE
								  : UNI_EXIT_OK;
}

static bool join_tree(struct uni_diffing *x)
{
	struct uni_profile *joined;

	if (x->tree == NULL)
		return true;
	if (uni_diff_join_renamed(x->d, x->tree, &joined) != 0)
		return false;
	if (joined != NULL) {
		uni_profile_destroy(x->tree);
		x->tree = joined;
	}
	return true;
}

static int compare_sides(
	struct uni_diffing *x, struct uni_diff_limits *limits, int *status_ret, struct uni_err *err)
{
	struct uni_diff_result r = { 0 };
	int rc;

	for (int s = 0; s < UNI_SIDES && x->show.traced; s++) {
		double stolen = uni_diff_stolen(&x->show.side[s]);

		limits->stolen[s] = isnan(stolen) ? 0 : stolen;
	}
	if (uni_diff_renamed(x->d, &o.args) != 0 || !join_tree(x) ||
		uni_diff_compare(x->d, limits, &r) != 0)
		return uni_err_nomem(err);
	rc = check_conditions(&r, err);
	if (rc != 0) {
		uni_diff_result_deinit(&r);
		return rc;
	}
	x->show.r = &r;
	x->show.limits = limits;
	x->show.max_rows = o.max_rows;
	x->show.all = o.all;
	x->show.condition = o.condition;
	x->show.nr_conditions = o.nr_conditions;
	*status_ret = o.nr_conditions != 0 ? status_of_conditions(x, &r) : status_of(r.verdict);
	rc = show_diff(x, err);
	x->show.r = NULL;
	uni_diff_result_deinit(&r);
	return rc;
}

/* One session with exact counts on each side: its numbers are compared, unless something else is
 * asked for. */
static bool are_exact(void)
{
	const struct uni_diffing_side *side = o.args.side;

	return o.args.of == NULL && o.args.per == NULL && side[UNI_BEFORE].nr == 1 &&
	       side[UNI_AFTER].nr == 1 && uni_exact_diff_has(side[UNI_BEFORE].path[0]) &&
	       uni_exact_diff_has(side[UNI_AFTER].path[0]);
}

static int judge_exact(const struct uni_exact_diff *d, struct uni_exact_judged *judged,
	int *status_ret, struct uni_err *err)
{
	bool failed = o.fail_if.items.nr == 0 && d->insns[1] > d->insns[0];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < o.fail_if.items.nr; i++) {
		rc = uni_exact_diff_judge(d, o.fail_if.items.v[i], &judged[i], err);
		failed = failed || (rc == 0 && judged[i].failed);
	}
	*status_ret = failed ? EXIT_SLOWER : UNI_EXIT_OK;
	return rc;
}

/* Counts are of the whole run and all of its CPUs. */
static int check_whole(struct uni_err *err)
{
	const struct uni_source_args *src = &o.args.src;
	const char *name = uni_part_has_time(&src->part) ? "--from and --to"
			   : src->part.vcpu_given	 ? "--vcpu"
			   : src->thread != NULL	 ? "--thread"
			   : src->guest != NULL		 ? "--guest"
							 : NULL;

	if (name == NULL)
		return 0;
	return uni_err_set(err, UNI_EUSAGE,
		"exact counts are of a whole run: %s cannot choose among them (--of time compares "
		"shares)",
		name);
}

static int compare_exact(int *status_ret, struct uni_err *err)
{
	struct uni_exact_judged judged[CONDITIONS_MAX];
	struct uni_exact_diff d = { 0 };
	struct uni_sink *out;
	int rc = check_whole(err);

	if (rc != 0)
		return rc;
	if (o.fail_if.items.nr > CONDITIONS_MAX)
		return uni_err_set(err, UNI_EUSAGE, "give at most %d conditions", CONDITIONS_MAX);
	if (o.print_tree || o.output != NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"exact counts are compared by function: for a picture, `uniscope export "
			"--before OLD -f svg NEW`");
	rc = uni_exact_diff_open(o.args.side[UNI_BEFORE].path[0], o.args.side[UNI_AFTER].path[0],
		o.args.src.build.naming.mangled, &d, err);
	if (rc == 0)
		rc = judge_exact(&d, judged, status_ret, err);
	if (rc == 0)
		rc = uni_sink_open_file("-", &out, err);
	if (rc == 0) {
		if (o.json)
			uni_exact_diff_json(&d, o.all, out);
		else
			uni_exact_diff_text(&d, judged, o.fail_if.items.nr, o.max_rows, o.all, out);
		rc = uni_sink_close(out, err);
	}
	uni_exact_diff_deinit(&d);
	return rc;
}

static int run_diff(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_diff_limits limits;
	struct uni_diffing x = { 0 };
	int status = UNI_EXIT_OK, rc = choose_sides(ctx, err);

	if (rc == 0)
		rc = check_limits(err);
	if (rc == 0)
		rc = check_outputs(err);
	if (rc == 0 && are_exact()) {
		rc = compare_exact(&status, err);
		return rc == 0 ? status : uni_exit_of(rc);
	}
	limits = (struct uni_diff_limits){ .threshold = o.threshold / 100,
		.tolerance = o.tolerance / 100 };
	if (rc == 0)
		rc = parse_conditions(&limits, err);
	if (rc == 0)
		rc = uni_diffing_open(&o.args, &x, err);
	if (rc == 0)
		rc = compare_sides(&x, &limits, &status, err);
	uni_diffing_close(&x);
	for (size_t i = 0; i < o.nr_conditions; i++)
		uni_condition_deinit(&o.condition[i]);
	return rc == 0 ? status : uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_diff = {
	.name = "diff",
	.operands = "OLD NEW | OLD... -- NEW...",
	.reads_only = true,
	.takes_rest = true,
	.prepare = uni_disasm_load,
	.summary = "compare two recordings: what changed, and how sure that is",
	.details = "OLD and NEW are session folders, or files in a format that `uniscope import` "
		   "reads. Exit status: 0 the same, faster, or only smaller shares; 3 cannot tell; "
		   "4 slower, or a function takes a larger share.",
	.examples = "  uniscope diff old.uniscope new.uniscope\n"
		    "  uniscope diff --all --of exits old.uniscope new.uniscope\n"
		    "  uniscope diff --fail-if 'function tcp_* +2pp' old.uniscope new.uniscope\n"
		    "  uniscope diff --fail-if 'total +5%' old-*.uniscope -- new-*.uniscope\n"
		    "  uniscope diff --per 'call handle_request' old.uniscope new.uniscope\n"
		    "  uniscope diff --tree -o changed.html old.uniscope new.uniscope\n"
		    "  uniscope diff --json old.folded new.folded",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.options = list_diff_options,
	.run = run_diff,
};
