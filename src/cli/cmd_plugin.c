/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "app/cmd.h"
#include "app/exact.h"

static struct {
	struct uni_record_args rec;
	const char *print, *read, *mode;
	struct uni_opt_list filter;
	uint64_t depth;
	bool follow;
} o;

static const struct uni_opt *list_plugin_options(void)
{
	static const struct uni_opt table[] = {
		{ 0, "print", UNI_OPT_OUTPUT, &o.print, "FILE",
			"print the option that makes QEMU count into FILE; FILE.functions is "
			"written",
			"FILE", NULL },
		{ 0, "read", UNI_OPT_STR, &o.read, "FILE",
			"make a session of what QEMU has counted, also while it runs", "FILE",
			NULL },
		{ 0, "mode", UNI_OPT_STR, &o.mode, "tree|counts|calls",
			"with --print: calls in the tree of their callers (default), "
			"instructions alone, or also a record of each call",
			"tree counts calls", NULL },
		{ 0, "filter", UNI_OPT_LIST, &o.filter, "GLOB",
			"with --mode calls: record calls of functions whose name "
			"matches; may be given several times (default: all)",
			NULL, NULL },
		{ 0, "depth", UNI_OPT_U64, &o.depth, "N",
			"with --mode calls: record no calls deeper than N (default 0: all)", NULL,
			NULL },
		{ 0, "follow", UNI_OPT_FLAG, &o.follow, NULL,
			"with --read: wait for QEMU, then take calls until it ends, or Ctrl-C; the "
			"guest waits while it is ahead",
			NULL, NULL },
		{ 'o', "output", UNI_OPT_OUTPUT, &o.rec.output, "NAME",
			"with --read: session folder to write", "FILE", NULL },
		{ 0, "overwrite", UNI_OPT_FLAG, &o.rec.overwrite, NULL,
			"replace the session that --output names, if there is one", NULL, NULL },
		{ 'q', "quiet", UNI_OPT_FLAG, &o.rec.quiet, NULL, "only print errors", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .rec = UNI_RECORD_DEFAULTS, .mode = "tree" };
	o.rec.duration = 0;
	return table;
}

static int run_plugin(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_exact_args args = { .qemu = { .image = ctx->operands[0] },
		.filter = o.filter.items.v,
		.nr_filter = o.filter.items.nr,
		.depth = o.depth,
		.follow = o.follow,
		.rec = &o.rec };

	if ((o.print != NULL) == (o.read != NULL) || (o.read != NULL) != (o.rec.output != NULL))
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope plugin --print FILE IMAGE, then uniscope plugin --read "
			"FILE -o NAME.uniscope IMAGE (see --help)"));
	if (uni_exact_mode_of(o.mode, &args.mode) != 0)
		return uni_exit_of(uni_err_set(
			err, UNI_EUSAGE, "--mode is tree, counts or calls, not '%s'", o.mode));
	if (args.mode != UNI_EXACT_TRACE && (o.filter.items.nr != 0 || o.depth != 0))
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"--filter and --depth choose calls to record: they need --mode calls"));
	return uni_exit_of(o.print != NULL ? uni_exact_print(&args, o.print, err)
					   : uni_exact_read(&args, o.read, err));
}

const struct uni_cmd uni_cmd_plugin = {
	.name = "plugin",
	.operands = "IMAGE",
	.summary = "count every instruction of a guest that you start under QEMU yourself",
	.details =
		"IMAGE is the ELF with the symbols. QEMU needs TCG (-accel tcg), and one option\n"
		"more, which --print prints. `uniscope run --exact` does all of it.",
	.examples = "  qemu-system-x86_64 -accel tcg -kernel app.elf $(uniscope plugin --print "
		    "app.counts app.elf)\n"
		    "  uniscope plugin --read app.counts -o app.uniscope app.elf",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_plugin_options,
	.run = run_plugin,
};
