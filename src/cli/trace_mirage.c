/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sink.h"
#include "cli/attach.h"
#include "cli/cmd.h"
#include "cli/term.h"

static struct {
	const char *output;
	bool quiet;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_STR, &o.output, "FILE",
			"where to write it, - for standard output (default: trace.ctf)", "FILE",
			NULL },
		{ 'q', "quiet", UNI_OPT_FLAG, &o.quiet, NULL, "no summary", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .output = "trace.ctf" };
	return table;
}

/* Nothing of the guest is stopped for this, nor need it run. */
static int attach(const char *operand, struct uni_target **ret, struct uni_err *err)
{
	struct uni_attach_opts opts = { 0 };
	char text[sizeof(((struct uni_spec *)NULL)->text)];
	struct uni_spec spec;
	int rc = uni_guest_resolve(operand, &spec, err), n;

	if (rc == 0 && strcmp(spec.scheme, "xen") != 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: MirageOS offers its trace ring by Xen's grants: give a domain "
			"(xen:dom=ID)",
			spec.text);
	if (rc == 0 && uni_spec_get(&spec, "pause") == NULL) {
		n = snprintf(text, sizeof(text), "%s,pause=no", spec.text);
		rc = n > 0 && (size_t)n < sizeof(text)
			     ? uni_spec_parse(text, &spec, err)
			     : uni_err_set(err, UNI_EUSAGE, "the target is too long");
	}
	return rc == 0 ? uni_target_attach(&spec, &opts, ret, err) : rc;
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
		uni_note("wrote %zu bytes to %s", size, o.output);
	return rc;
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	_cleanup_free_ uint8_t *ring = NULL;
	struct uni_target *t = NULL;
	size_t size = 0;
	int rc = attach(ctx->operands[0], &t, err);

	if (rc != 0)
		return uni_exit_of(rc);
	rc = t->ops->granted(t, "mprof", &ring, &size, err);
	uni_target_detach(t);
	if (rc == 0)
		rc = write_file(ring, size, err);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_mirage = {
	.name = "mirage",
	.operands = "TARGET",
	.summary = "copy the trace ring of a MirageOS guest on Xen into a file",
	.details =
		"A guest with mirage-profile grants its ring to dom0 and says so in xenstore. The "
		"ring is\n"
		"copied as it is, packets of CTF in the order of memory, while the guest runs, or "
		"after its\n"
		"end where the domain is preserved. What is being written in that moment may be "
		"torn.",
	.examples = "  uniscope trace mirage xen:dom=web -o web.ctf",
	.min_operands = 1,
	.max_operands = 1,
	.options = options,
	.run = run,
};
