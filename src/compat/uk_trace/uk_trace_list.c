/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/cmd.h"
#include "app/uktrace.h"

static struct {
	struct uni_uktrace_args a;
	bool no_table, json, definitions;
} o;

static const struct uni_opt *list_uk_trace_list_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "no-tabulate", UNI_OPT_FLAG, &o.no_table, NULL,
			"a line \"TIME NAME: MESSAGE\" for each record, no table", NULL, NULL },
		{ 0, "json", UNI_OPT_FLAG, &o.json, NULL, "as JSON", NULL, NULL },
		{ 0, "definitions", UNI_OPT_FLAG, &o.definitions, NULL,
			"list the tracepoints, not their records", NULL, NULL },
		{ 'e', "image", UNI_OPT_ONCE, &o.a.image, "ELF",
			"the guest's image with debug data (.dbg): needed for a "
			"TARGET; for a FILE, its definitions replace the file's",
			"FILE", NULL },
		UNI_UKTRACE_OPTIONS(o.a),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .json = false };
	return table;
}

static void put_trace(const struct uni_ukt_trace *t, struct uni_sink *out)
{
	if (o.definitions)
		uni_uktrace_definitions(t, o.json, out);
	else if (o.json)
		uni_uktrace_json(t, out);
	else
		uni_uktrace_print(t, !o.no_table, out);
}

static int print_trace(const char *what, const struct uni_ukt_file *f, struct uni_err *err)
{
	struct uni_ukt_trace t;
	struct uni_sink *out;
	int rc;

	/* For an image only the definitions can be listed. */
	o.definitions |= f->buffer == NULL;
	rc = uni_ukt_trace_open(f, &t, err);
	if (rc != 0)
		return rc;
	rc = uni_sink_open_file("-", &out, err);
	if (rc == 0) {
		put_trace(&t, out);
		rc = uni_sink_close(out, err);
		uni_uktrace_note(what, &t);
	}
	uni_ukt_trace_close(&t);
	return rc;
}

static int run_uk_trace_list(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *what = ctx->nr_operands != 0 ? ctx->operands[0] : "tracefile";
	struct uni_ukt_file f;
	int rc = uni_uktrace_open(what, &o.a, &f, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = print_trace(what, &f, err);
	uni_ukt_file_free(&f);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_uk_trace_list = {
	.name = "list",
	.operands = "[FILE|TARGET|IMAGE]",
	.summary = "print the records of tracepoints, from a trace file or a guest",
	.details = "FILE comes from `fetch`, from Unikraft's own uk-trace, or from "
		   "`uk trace save` in gdb (default\n"
		   "tracefile, - is standard input). A TARGET may be running, "
		   "paused, or a core file. For an\n"
		   "IMAGE, the command lists its tracepoints.",
	.examples = "  uniscope compat uk-trace list tracefile\n"
		    "  uniscope compat uk-trace list kvm:pid=4121 -e app_qemu-x86_64.dbg\n"
		    "  uniscope compat uk-trace list core:file=vm.core -e app_qemu-x86_64.dbg "
		    "--no-tabulate",
	.min_operands = 0,
	.max_operands = 1,
	.options = list_uk_trace_list_options,
	.run = run_uk_trace_list,
};
