/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sink.h"
#include "base/text.h"
#include "app/cmd.h"
#include "app/images.h"
#include "app/mprof.h"
#include "app/term.h"
#include "app/symbols.h"

static struct {
	struct uni_opt_list images;
	const char *output;
	bool quiet;
} o;

static const struct uni_opt *list_trace_mirage_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default trace.ctf)", "FILE", NULL },
		UNI_IMAGE_OPTION(o.images, UNI_IMAGE_RUNNING),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.quiet, NULL, "no summary", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "trace.ctf" };
	return table;
}

static int write_file(const char *path, struct uni_err *err)
{
	const struct uni_promises_args all = { 0 };
	struct uni_sink *out = NULL;
	uint64_t size = 0;
	int rc = uni_sink_open_file(o.output, &out, err);

	if (rc != 0)
		return rc;
	rc = uni_mprof_write(path, &all, true, out, err);
	size = uni_sink_bytes(out);
	if (rc == 0)
		rc = uni_sink_close(out, err);
	else
		uni_sink_abort(out);
	if (rc == 0 && !o.quiet)
		uni_note("wrote %" PRIu64 " byte%s to %s", size, uni_plural(size), o.output);
	return rc;
}

static int run_trace_mirage(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ char *path = NULL;
	struct uni_scratch scratch;
	int rc = uni_scratch_make(&scratch, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = uni_mprof_fetch(ctx->operands[0], &o.images, scratch.path, &path, err);
	if (rc == 0)
		rc = write_file(path, err);
	uni_scratch_remove(&scratch);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_mirage = {
	.name = "mirage",
	.operands = "TARGET",
	.summary = "copy the trace of a MirageOS guest's threads into a file",
	.details =
		"On Xen a guest with mirage-profile may grant its ring to dom0. For other guests, "
		"uniscope's own\n"
		"ring is converted. If there is none, memory is searched for a ring of "
		"mirage-profile. A ring is\n"
		"copied as it is, as packets of CTF in the order of memory. The record that the "
		"guest is writing\n"
		"meanwhile may be torn.",
	.examples = "  uniscope trace mirage xen:dom=web -o web.ctf\n"
		    "  uniscope trace mirage web1 -o web1.ctf\n"
		    "  uniscope trace mirage core:file=vm.core -e app.spt -o dead.ctf",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_mirage_options,
	.run = run_trace_mirage,
};
