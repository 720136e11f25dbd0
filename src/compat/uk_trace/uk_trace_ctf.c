/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/uktrace.h"
#include "format/uktrace/ctf.h"

static struct {
	struct uni_uktrace_args a;
	const char *output;
} o;

static const struct uni_opt *list_uk_trace_ctf_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FOLDER",
			"folder to make (default tracefile.ctf)", "FILE", NULL },
		{ 'e', "image", UNI_OPT_ONCE, &o.a.image, "ELF",
			"the guest's image with debug data (.dbg): needed for a "
			"TARGET; for a FILE, its definitions replace the file's",
			"FILE", NULL },
		UNI_UKTRACE_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "tracefile.ctf" };
	return table;
}

static int run_uk_trace_ctf(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *what = ctx->nr_operands != 0 ? ctx->operands[0] : "tracefile";
	struct uni_ukt_trace t;
	struct uni_ukt_file f;
	int rc = uni_uktrace_open(what, &o.a, &f, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = uni_ukt_trace_open(&f, &t, err);
	if (rc == 0) {
		rc = uni_ukt_ctf_write(&t, o.output, err);
		uni_uktrace_note(what, &t);
		uni_ukt_trace_close(&t);
	}
	uni_ukt_file_free(&f);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_uk_trace_ctf = {
	.name = "ctf",
	.operands = "[FILE|TARGET]",
	.summary = "write tracepoints as a trace of the Common Trace Format, for babeltrace2",
	.details = "Each tracepoint is an event of its own, with its arguments as fields. Other "
		   "formats, which know\n"
		   "calls: `uniscope export FILE -f chrome` and the like.",
	.examples = "  uniscope compat uk-trace ctf tracefile -o web.ctf && babeltrace2 web.ctf",
	.min_operands = 0,
	.max_operands = 1,
	.options = list_uk_trace_ctf_options,
	.run = run_uk_trace_ctf,
};
