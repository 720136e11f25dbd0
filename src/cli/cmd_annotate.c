/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/checked.h"
#include "app/annotating.h"
#include "app/cmd.h"
#include "app/symbols.h"
#include "app/term.h"

static struct {
	struct uni_annotating_args args;
	struct uni_opt_list source;
	bool json;
} o;

static const struct uni_opt *list_annotate_options(void)
{
	static const struct uni_opt table[] = {
		{ 'e', "image", UNI_OPT_ONCE, &o.args.image, "ELF",
			"the image that was recorded, if it was moved", "FILE", NULL },
		{ 0, "source", UNI_OPT_LIST, &o.source, "DIR",
			"look for source files here, before the place where the compiler saw them; "
			"may be given several times",
			"FILE", NULL },
		UNI_DEBUG_DIR_OPTION(o.args.src.debug_dirs),
		UNI_PART_OPTIONS(o.args.src.part),
		{ 0, "guest", UNI_OPT_STR, &o.args.src.guest, "N|NAME",
			"only this guest, of a session with several", NULL, NULL },
		{ 0, "thread", UNI_OPT_STR, &o.args.src.thread, "NAME",
			"only threads whose name matches; * and ? stand for any text", NULL, NULL },
		{ 0, "all-time", UNI_OPT_FLAG, &o.args.src.all_time, NULL,
			"also other time than the guest's on a CPU, which counts as below", NULL,
			NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "print JSON", NULL, NULL },
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .args.src.build = UNI_BUILD_DEFAULTS };
	return table;
}

static int print_annotation(const struct uni_annotating *x, struct uni_err *err)
{
	const struct uni_annotation_text text = { .colour = uni_term_colour(stdout) };
	struct uni_lines *lines = uni_lines_create(o.source.items.v, o.source.items.nr);
	struct uni_sink *out;
	bool ok = lines != NULL && (x->debug == NULL || uni_lines_add_debug(lines, x->debug));
	int rc = ok ? uni_sink_open_file("-", &out, err) : uni_err_nomem(err);

	if (rc != 0) {
		uni_lines_destroy(lines);
		return rc;
	}
	if (o.json)
		uni_annotation_json(&x->a, lines, out);
	else
		rc = uni_annotation_print(&x->a, lines, &text, out);
	uni_lines_destroy(lines);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return uni_err_nomem(err);
}

static int run_annotate(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_annotating x;
	int rc;

	o.args.src.path = ctx->operands[0];
	o.args.function = ctx->operands[1];
	rc = uni_annotating_open(&o.args, &x, err);
	if (rc == 0) {
		if (!(x.a.total > 0) && x.a.calls == 0)
			uni_note("%s has no %s of %s", o.args.src.path,
				x.a.of == UNI_ANNOTATE_CALLS ? "calls" : uni_annotation_unit(&x.a),
				x.a.code.name);
		rc = print_annotation(&x, err);
		uni_annotating_close(&x);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_annotate = {
	.name = "annotate",
	.operands = "SESSION FUNCTION",
	.reads_only = true,
	.summary = "show a function's source lines and instructions, with samples at each",
	.details = "FUNCTION is a name, or an address (0x...) in it, of the running guest or as "
		   "objdump shows it. The instructions come from "
		   "the image, the lines from its debug data. Exact counts (`run --exact`) give "
		   "the executions of each instruction, a trace the calls and time of each call.",
	.examples = "  uniscope annotate web1.uniscope tcp_input\n"
		    "  uniscope annotate --source ~/src/app web1.uniscope tcp_input\n"
		    "  uniscope annotate --json --from 2 --to 3.5 web1.uniscope 0x101000",
	.min_operands = 2,
	.max_operands = 2,
	.prepare = uni_disasm_load,
	.options = list_annotate_options,
	.run = run_annotate,
};
