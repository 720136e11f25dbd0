/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/record.h"

static struct {
	struct uni_record_args rec;
	const char *image, *qmp;
	double wait;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 'e', "image", UNI_OPT_STR, &o.image, "ELF",
			"the image that the guest runs, with symbols, or only these as nm prints "
			"them (default: from the VMM's command line, and its .dbg sibling)",
			"FILE", NULL },
		UNI_RECORD_OPTIONS(o.rec),
		{ 0, "wait", UNI_OPT_DOUBLE, &o.wait, "SECONDS",
			"keep trying for so long while the guest still boots (default 0)", NULL,
			NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .rec = UNI_RECORD_DEFAULTS };
	return table;
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	struct uni_attach_args args = { .target = ctx->operands[0],
		.image = o.image,
		.qmp = o.qmp,
		.search = uni_search_of(&o.rec.debug_dirs),
		.wait_ns = (uint64_t)(o.wait * 1e9) };
	struct uni_guest g;
	int rc = uni_record_check_args(&o.rec, err);

	if (rc == 0)
		rc = uni_guest_open(&g, &args, err);
	if (rc == 0) {
		rc = uni_record_guest(&g, &o.rec, NULL, err);
		uni_guest_close(&g);
	}
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_record = {
	.name = "record",
	.operands = "TARGET",
	.summary = "sample the call chains of a running guest into a session",
	.details = "Attaches to the guest, takes the call chain of each vCPU so many times a "
		   "second, and\n"
		   "writes a session folder. The guest runs on whatever happens to uniscope. "
		   "Ctrl-C ends\n"
		   "the recording cleanly; a guest that ends, too.",
	.examples = "  uniscope record kvm:pid=4121 -d 30\n"
		    "  uniscope record gdb:unix=/run/q.sock -e app.elf -F 499\n"
		    "  uniscope record web1 -o web1.uniscope",
	.min_operands = 1,
	.max_operands = 1,
	.options = options,
	.run = run,
};
