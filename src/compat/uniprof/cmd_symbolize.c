/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "app/cmd.h"
#include "compat/names.h"
#include "app/symbols.h"
#include "app/term.h"
#include "format/uniprof/symbolize.h"

#define TRACE_MAX ((size_t)4 << 30)

static struct {
	struct uni_opt_list debug_dirs;
	const char *output;
	bool as_is;
} o;

static const struct uni_opt *list_symbolize_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default -)", "FILE", NULL },
		{ 0, "as-is", UNI_OPT_FLAG, &o.as_is, NULL,
			"look callers up at the return address itself, as the old tool did, not at "
			"the call before it",
			NULL, NULL },
		UNI_DEBUG_DIR_OPTION(o.debug_dirs),
		UNI_OPT_FORCE,
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "-" };
	return table;
}

static int translate_file(const struct uni_symtab *symtab, const char *path, struct uni_err *err)
{
	struct uni_symbolize_stats stats = { 0 };
	_cleanup_free_ char *data = NULL;
	struct uni_sink *out;
	size_t size;
	int rc = uni_read_input(path, TRACE_MAX, &data, &size, err);

	if (rc == 0)
		rc = uni_sink_open_file(o.output, &out, err);
	if (rc != 0)
		return rc;
	uni_symbolize(symtab, o.as_is, data, size, out, &stats);
	rc = uni_sink_close(out, err);
	if (rc == 0)
		uni_compat_note_trace(path, &stats);
	return rc;
}

static int run_symbolize(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.debug_dirs);
	struct uni_symtab *symtab = NULL;
	int rc = uni_compat_symbols(ctx->operands[0], &search, &symtab, err);

	if (rc == 0)
		rc = translate_file(symtab, ctx->operands[1], err);
	uni_symtab_destroy(symtab);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_symbolize = {
	.name = "symbolize",
	.operands = "SYMS TRACE",
	.reads_only = true,
	.summary = "put names into uniprof's stack traces, as its symbolize did",
	.details = "SYMS is a table as `nm -n` prints it, an ELF image or a .usym; TRACE is "
		   "the output\n"
		   "of uniprof; - is standard input. A trace that was broken off keeps its "
		   "place and counts:\n"
		   "its outermost frame is [truncated]. Lines that are no part of a trace "
		   "go to standard error.",
	.examples =
		"  uniscope compat symbolize app.syms app-stacktrace > app-stacktrace.syms\n"
		"  uniscope compat uniprof -F 100 -T 60 - 3 | uniscope compat symbolize app.dbg -",
	.min_operands = 2,
	.max_operands = 2,
	.options = list_symbolize_options,
	.run = run_symbolize,
};
