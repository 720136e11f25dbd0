/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sink.h"
#include "base/text.h"
#include "app/cmd.h"
#include "app/mprof.h"
#include "app/term.h"

static struct {
	const char *output;
	bool quiet;
} o;

static const struct uni_opt *list_trace_mirage_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_OUTPUT, &o.output, "FILE",
			"file to write; - is standard output (default trace.ctf)", "FILE", NULL },
		{ 'q', "quiet", UNI_OPT_FLAG, &o.quiet, NULL, "no summary", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "trace.ctf" };
	return table;
}

static int write_file(const uint8_t *ring, size_t size, struct uni_err *err)
{
	struct uni_sink *out = NULL;
	int rc = uni_sink_open_file(o.output, &out, err);

	if (rc != 0)
		return rc;
	uni_sink_write(out, ring, size);
	rc = uni_sink_close(out, err);
	if (rc == 0 && !o.quiet)
		uni_note("wrote %zu byte%s to %s", size, uni_plural(size), o.output);
	return rc;
}

static int run_trace_mirage(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ uint8_t *ring = NULL;
	size_t size = 0;
	int rc = uni_mprof_fetch(ctx->operands[0], &ring, &size, err);

	if (rc == 0)
		rc = write_file(ring, size, err);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_mirage = {
	.name = "mirage",
	.operands = "TARGET",
	.summary = "copy the trace ring of a MirageOS guest on Xen into a file",
	.details = "A guest with mirage-profile grants its ring to dom0 and says so "
		   "in xenstore. The ring is\n"
		   "copied as it is, as packets of CTF in the order of memory. The "
		   "guest may run, or have ended\n"
		   "if the domain is preserved. The record that the guest is "
		   "writing meanwhile may be torn.",
	.examples = "  uniscope trace mirage xen:dom=web -o web.ctf",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_mirage_options,
	.run = run_trace_mirage,
};
