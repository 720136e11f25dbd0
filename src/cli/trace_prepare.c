/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/confine.h"
#include "base/privilege.h"
#include "base/text.h"
#include "app/cmd.h"
#include "app/term.h"
#include "obj/sites_prepare.h"

static struct {
	const char *output;
	struct uni_opt_list on;
} o;

static const struct uni_opt *list_trace_prepare_options(void)
{
	static const struct uni_opt table[] = {
		{ 'o', "output", UNI_OPT_STR, &o.output, "FILE",
			"write the prepared image there (default: in place)", "FILE", NULL },
		{ 0, "on", UNI_OPT_LIST, &o.on, "GLOB",
			"these functions record from the guest's first call", NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ 0 };
	return table;
}

static int run_trace_prepare(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *path = ctx->operands[0];
	const char *out = o.output != NULL ? o.output : path;
	struct uni_sites_prepared done;
	int rc;

	uni_confine_output(out);
	rc = uni_privilege_drop(err);
	if (rc == 0)
		rc = uni_sites_prepare(path, out, o.on.items.v, o.on.items.nr, &done, err);
	if (rc != 0)
		return uni_exit_of(rc);
	uni_note("%s: %zu function%s can be traced; %zu place%s changed, %zu were ready", out,
		done.nr_functions, uni_plural(done.nr_functions), done.nr_changed,
		uni_plural(done.nr_changed), done.nr_ready);
	if (done.nr_on != 0)
		uni_note("%zu function%s record from the guest's first call", done.nr_on,
			uni_plural(done.nr_on));
	if (done.nr_no_exits != 0)
		uni_note("%zu functions that match --on do not: their returns are not known",
			done.nr_no_exits);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_trace_prepare = {
	.name = "prepare",
	.operands = "IMAGE",
	.summary = "make an image's places to trace cost nothing while nobody traces",
	.details =
		"Each traced function's entry becomes one nop, and each of its jumps to the "
		"return thunk\n"
		"a plain return, until `trace start` patches them. A step of the guest's build: "
		"the last\n"
		"one, before anything is made of the image. Its build-id stays. With --on, chosen "
		"functions\n"
		"record as soon as the guest calls them; `trace dump` saves that.",
	.examples = "  uniscope trace prepare app.elf\n"
		    "  uniscope trace prepare app.elf -o app.prepared.elf\n"
		    "  uniscope trace prepare app.elf --on '*_init' -o app.boot.elf",
	.min_operands = 1,
	.max_operands = 1,
	.options = list_trace_prepare_options,
	.run = run_trace_prepare,
};
