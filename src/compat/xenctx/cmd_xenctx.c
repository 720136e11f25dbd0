/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "app/cmd.h"
#include "compat/names.h"
#include "compat/xenctx/xenctx.h"
#include "app/images.h"
#include "app/symbols.h"

#define KERNEL_START 0xffffffff80000000u

static struct {
	struct uni_xenctx_args x;
	const char *table, *image, *qmp, *lines, *kernel_start, *memory, *dump;
	struct uni_opt_list debug_dirs;
	bool no_pause;
} o;

static const struct uni_opt *list_xenctx_options(void)
{
	static const struct uni_opt table[] = {
		{ 'f', "frame-pointers", UNI_OPT_FLAG, &o.x.frame_pointers, NULL,
			"follow frame pointers only", NULL, NULL },
		{ 's', "symbol-table", UNI_OPT_STR, &o.table, "FILE",
			"names: a System.map, a table of nm, an ELF or a .usym (default: the "
			"image's)",
			"FILE", NULL },
		{ 'S', "stack-trace", UNI_OPT_FLAG, &o.x.stack_trace, NULL,
			"every word of the stack in place of the call trace, which is in it", NULL,
			NULL },
		{ 'k', "kernel-start", UNI_OPT_STR, &o.kernel_start, "ADDR",
			"where code begins, if neither an image nor names tell (default "
			"0xffffffff80000000)",
			NULL, NULL },
		{ 'a', "all", UNI_OPT_FLAG, &o.x.all_regs, NULL, "control and debug registers, too",
			NULL, NULL },
		{ 'C', "all-vcpus", UNI_OPT_FLAG, &o.x.all_vcpus, NULL, "every vCPU", NULL, NULL },
		{ 'n', "display-stack-pages", UNI_OPT_U64, &o.x.pages, "N",
			"how many pages of the stack may be shown, the first being the stack "
			"pointer's (default 1)",
			NULL, NULL },
		{ 'b', "bytes-per-line", UNI_OPT_U64, &o.x.bytes_per_line, "N",
			"bytes of a dump's line: 4 to 128, rounded up to words "
			"of 8 (default 32)",
			NULL, NULL },
		{ 'l', "lines", UNI_OPT_STR, &o.lines, "N|all",
			"lines of the stack, and of -m (default 5)", "all", NULL },
		{ 'D', "decode-as-ascii", UNI_OPT_FLAG, &o.x.ascii, NULL,
			"dumps also as characters", NULL, NULL },
		{ 't', "tag-stack-dump", UNI_OPT_FLAG, &o.x.tagged, NULL,
			"the address before each line of a dump", NULL, NULL },
		{ 'm', "memory", UNI_OPT_STR, &o.memory, "ADDR", "show only memory, from here on",
			NULL, NULL },
		{ 'd', "dump-as-stack", UNI_OPT_STR, &o.dump, "ADDR",
			"show only memory, as if a stack began here: what looks like code is "
			"its call trace; not with -f",
			NULL, NULL },
		{ 'e', "image", UNI_OPT_ONCE, &o.image, "ELF",
			"the image that the guest runs (default: from the VMM's command line)",
			"FILE", NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_NO_PAUSE_OPTION(o.no_pause),
		UNI_DEBUG_DIR_OPTION(o.debug_dirs),
		UNI_OPT_END,
	};

	o = (__typeof__(o)){
		.x = { .kernel_start = KERNEL_START, .pages = 1, .lines = 5, .bytes_per_line = 32 },
	};
	return table;
}

static int parse_addr(const char *opt, const char *text, uint64_t *ret, struct uni_err *err)
{
	if (text == NULL || uni_parse_u64(text, ret))
		return 0;
	return uni_err_set(
		err, UNI_EUSAGE, "%s takes an address such as 0x1f000, not '%s'", opt, text);
}

static int parse_lines(struct uni_err *err)
{
	if (o.lines == NULL)
		return 0;
	if (strcmp(o.lines, "all") == 0 || strcmp(o.lines, "max") == 0)
		o.x.lines = UNI_XENCTX_LINES_ALL;
	else if (!uni_parse_u64(o.lines, &o.x.lines))
		return uni_err_set(
			err, UNI_EUSAGE, "--lines takes a number or 'all', not '%s'", o.lines);
	return 0;
}

static int check_vcpu(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	if (ctx->nr_operands < 2)
		return 0;
	if (o.x.all_vcpus)
		return uni_err_set(err, UNI_EUSAGE, "-C is for all vCPUs, and '%s' names one",
			ctx->operands[1]);
	if (!uni_parse_u64(ctx->operands[1], &o.x.vcpu))
		return uni_err_set(
			err, UNI_EUSAGE, "'%s' is no number of a vCPU", ctx->operands[1]);
	return 0;
}

static int check_xenctx_options(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	int rc = check_vcpu(ctx, err);

	if (rc == 0)
		rc = parse_lines(err);
	if (rc == 0)
		rc = parse_addr("--kernel-start", o.kernel_start, &o.x.kernel_start, err);
	if (rc == 0)
		rc = parse_addr("--memory", o.memory, &o.x.memory, err);
	if (rc == 0)
		rc = parse_addr("--dump-as-stack", o.dump, &o.x.dump, err);
	if (rc != 0)
		return rc;
	o.x.has_memory = o.memory != NULL;
	o.x.has_dump = o.dump != NULL;
	if (o.x.has_dump && o.x.frame_pointers)
		return uni_err_set(err, UNI_EUSAGE,
			"-d and -f exclude each other: what is shown as a stack has no frame "
			"pointer");
	if (o.x.pages < 1 || o.x.pages > UNI_XENCTX_PAGES_MAX)
		return uni_err_set(
			err, UNI_EUSAGE, "--display-stack-pages is 1 to %d", UNI_XENCTX_PAGES_MAX);
	if (o.x.bytes_per_line < 4 || o.x.bytes_per_line > 128)
		return uni_err_set(err, UNI_EUSAGE, "--bytes-per-line is 4 to 128");
	o.x.bytes_per_line =
		(o.x.bytes_per_line + UNI_XENCTX_WORD - 1) / UNI_XENCTX_WORD * UNI_XENCTX_WORD;
	return 0;
}

static int show_context(struct uni_guest *g, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.debug_dirs);
	_cleanup_free_ struct uni_xenctx *x = calloc(1, sizeof(*x));
	struct uni_guest_symbols names = { 0 };
	struct uni_symtab *table = NULL;
	int rc = x == NULL ? uni_err_nomem(err) : 0;

	if (rc == 0 && o.table != NULL)
		rc = uni_compat_symbols(o.table, &search, &table, err);
	else if (rc == 0)
		rc = uni_guest_symbols_load(g, &search, NULL, &names, err);
	o.x.symtab = table != NULL ? table : names.symtab;
	if (rc == 0)
		rc = uni_xenctx_take(g, &o.x, x, err);
	if (rc == 0)
		uni_xenctx_print(g, &o.x, x, stdout);
	if (x != NULL)
		uni_xenctx_free(x);
	uni_guest_symbols_free(&names);
	uni_symtab_destroy(table);
	return rc;
}

static int run_xenctx(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	char target[UNI_COMPAT_TARGET_MAX];
	struct uni_attach_args args = { .target = target,
		.image = o.image,
		.qmp = o.qmp,
		.no_image_ok = true,
		.no_pause = o.no_pause,
		.once = true,
		.search = uni_search_of(&o.debug_dirs),
		.unwind = o.x.frame_pointers ? "fp" : NULL };
	struct uni_guest g;
	int rc = check_xenctx_options(ctx, err);

	if (rc == 0)
		rc = uni_compat_target(ctx->operands[0], target, err);
	if (rc == 0)
		rc = uni_guest_open_only(&g, &args, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = show_context(&g, err);
	uni_guest_close(&g);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_xenctx = {
	.name = "xenctx",
	.operands = "TARGET [VCPU]",
	.summary = "print registers, code and stack of a vCPU, as xenctx does",
	.details = "TARGET is a Xen domain's number, or any target as of `uniscope stacks`; "
		   "VCPU is 0 unless\n"
		   "given. The guest is held only while it is read, unless --no-pause is "
		   "given. The call trace is\n"
		   "found by unwinding. A question mark behind a name marks a guess.",
	.examples = "  uniscope compat xenctx 3\n"
		    "  uniscope compat xenctx -f -C -s app.syms 3\n"
		    "  uniscope compat xenctx -S -t kvm:pid=4121 1",
	.min_operands = 1,
	.max_operands = 2,
	.options = list_xenctx_options,
	.run = run_xenctx,
};
