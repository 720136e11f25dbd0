/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/confine.h"
#include "app/cmd.h"
#include "app/exact.h"
#include "app/guests.h"
#include "app/images.h"
#include "obj/disasm.h"
#include "top/run.h"
#include "top/signals.h"

static struct {
	struct uni_top_args top;
	struct uni_opt_list images, sysroot;
	const char *qmp, *method, *unwind;
	double wait;
	bool all, batch, count_given, no_pause, accept_image;
} o;

static const struct uni_opt *list_top_options(void)
{
	static const struct uni_opt table[] = {
		UNI_IMAGE_OPTION(o.images, UNI_IMAGE_RUNNING),
		UNI_SYSROOT_OPTION(o.sysroot),
		{ 'a', "all", UNI_OPT_FLAG, &o.all, NULL,
			"every guest on this host that can be attached", NULL, NULL },
		{ 'F', "frequency", UNI_OPT_DOUBLE, &o.top.frequency, "HZ",
			"samples per second of each vCPU (default 99)", NULL, NULL },
		{ 'i', "interval", UNI_OPT_DOUBLE, &o.top.interval, "SECONDS",
			"time between two refreshes, or snapshots (default 1)", NULL, NULL },
		{ 'd', "duration", UNI_OPT_DOUBLE, &o.top.duration, "SECONDS",
			"end after this time; 0 never ends (default 0). With it, "
			"--count of --batch has the default 0",
			NULL, NULL },
		{ 0, "window", UNI_OPT_DOUBLE, &o.top.window, "SECONDS",
			"show only the last seconds; 0 shows all since the start "
			"(default 10; with --batch the interval)",
			NULL, &o.top.window_given, 'w' },
		{ 'S', "sort", UNI_OPT_STR, &o.top.sort, "KEY",
			"order of the functions: self, total or name (default self)",
			"self total name", NULL, 's' },
		{ 0, "filter", UNI_OPT_STR, &o.top.filter, "TEXT",
			"only functions whose name holds this, in upper or lower case", NULL,
			NULL },
		{ 0, "function", UNI_OPT_STR, &o.top.function, "NAME",
			"select this function; with --batch also print what it calls", NULL, NULL },
		{ 0, "callers", UNI_OPT_FLAG, &o.top.callers, NULL,
			"show who calls the selected function, not what it calls", NULL, NULL },
		{ 0, "vcpu", UNI_OPT_U64, &o.top.vcpu, "N", "only samples of this vCPU", NULL,
			&o.top.vcpu_given },
		{ 0, "idle", UNI_OPT_FLAG, &o.top.idle, NULL,
			"also count samples of vCPUs that are halted, or have no host CPU", NULL,
			NULL },
		{ 0, "method", UNI_OPT_STR, &o.method, "auto|bpf|pause",
			"how a kvm: guest is sampled: by the host's kernel, "
			"which never stops it (bpf), or with a stop for each "
			"sample (pause). auto is bpf where permitted (default "
			"auto)",
			"auto bpf pause", NULL },
		UNI_NO_PAUSE_OPTION(o.no_pause),
		UNI_PACE_OPTIONS(o.top.pace),
		{ 0, "no-exits", UNI_OPT_FLAG, &o.top.no_exits, NULL,
			"do not count VM exits: guests that exit very often are "
			"then a little faster",
			NULL, NULL },
		UNI_NAMING_OPTIONS(o.top.naming),
		UNI_DEBUG_DIR_OPTION(o.top.debug_dirs),
		UNI_UNWIND_OPTION(o.unwind),
		UNI_ACCEPT_IMAGE_OPTION(o.accept_image),
		{ 'b', "batch", UNI_OPT_FLAG, &o.batch, NULL,
			"print snapshots as plain text instead of using the terminal", NULL, NULL },
		{ 0, "count", UNI_OPT_U64, &o.top.count, "N",
			"end after this many snapshots; 0 never ends (default "
			"1); needs --batch or --json",
			NULL, &o.count_given, 'n' },
		{ 0, "json", UNI_OPT_FLAG, &o.top.json, NULL, "--batch with one JSON object a line",
			NULL, NULL },
		{ 0, "rows", UNI_OPT_U64, &o.top.rows, "N",
			"functions in a snapshot, 0 all (default 20)", NULL, NULL },
		{ 0, "history", UNI_OPT_SIZE, &o.top.memory_bytes, "SIZE",
			"memory for samples and call chains; the oldest samples "
			"are dropped first (default 64M)",
			NULL, NULL },
		{ 'o', "output", UNI_OPT_STR, &o.top.output, "NAME",
			"what the key s saves: NAME.uniscope, numbered (default: the guest's name)",
			"FILE", NULL },
		{ 0, "wait", UNI_OPT_DOUBLE, &o.wait, "SECONDS",
			"keep trying for this time while the guest still boots "
			"(default 0)",
			NULL, NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .top = { .frequency = 99,
				     .interval = 1,
				     .window = 10,
				     .count = 1,
				     .rows = 20,
				     .memory_bytes = 64u << 20,
				     .sort = "self",
				     .naming.inlined = true } };
	return table;
}

static int check_top_operands(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	if (o.all ? ctx->nr_operands != 0 : ctx->nr_operands == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope top [OPTIONS] TARGET... (or --all, without one)");
	if (o.count_given && !o.batch && !o.top.json)
		return uni_err_set(err, UNI_EUSAGE, "--count needs --batch");
	if (o.top.duration > 0 && !o.count_given)
		o.top.count = 0;
	if (o.wait < 0 || o.wait > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--wait must be between 0 and 10000000 s");
	return uni_top_check_args(&o.top, err);
}

static int show_top(const struct uni_guests *all, struct uni_err *err)
{
	_cleanup_free_ struct uni_top_run *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return uni_err_nomem(err);
	uni_top_signals_take();
	rc = uni_top_run_init(r, all->open.v, all->open.nr, &o.top, err);
	if (rc == 0)
		rc = o.batch || o.top.json ? uni_top_run_batch(r, err) : uni_top_run_screen(r, err);
	uni_top_run_deinit(r);
	uni_top_signals_restore();
	return rc;
}

static int run_top(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_guests_args args = { .targets = ctx->operands,
		.nr = ctx->nr_operands,
		.all = o.all,
		.attach = { .image = uni_images_first(&o.images),
			.qmp = o.qmp,
			.method = o.method,
			.no_pause = o.no_pause,
			.search = uni_search_of(&o.top.debug_dirs),
			.sysroot = &o.sysroot,
			.wait_ns = (uint64_t)(o.wait * 1e9),
			.inside_ok = true,
			.may_give_up = true,
			.exits_too = !o.top.no_exits,
			.no_image_ok = true,
			.accept_image = o.accept_image,
			.unwind = o.unwind } };
	struct uni_guests all = { 0 };
	int rc = check_top_operands(ctx, err);

	/* Its default name is below the current folder. */
	uni_confine_output(o.top.output != NULL ? o.top.output : "session");
	/* Enter shows code, and no library can be loaded once guests are open. */
	if (rc == 0 && !o.batch && !o.top.json)
		uni_disasm_load();
	if (rc == 0)
		rc = uni_images_others(&o.images, &o.sysroot, err);
	if (rc == 0)
		rc = uni_guests_open(&all, &args, err);
	for (size_t i = 0; rc == 0 && i < all.open.nr; i++)
		uni_exact_note_counts(&all.open.v[i]->info);
	if (rc == 0)
		rc = show_top(&all, err);
	uni_guests_close(&all);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_top = {
	.name = "top",
	.operands = "TARGET...",
	.summary = "watch where the time of a running guest goes, live",
	.details = "Samples like record. It shows the functions that the guest spends its "
		   "time in, and the\n"
		   "calls below the selected one. It also shows the state of each vCPU and "
		   "the quality of the\n"
		   "sampling. The key ? lists the keys. --batch prints snapshots for "
		   "scripts. Several guests are\n"
		   "shown together, each below its name.",
	.examples = "  uniscope top kvm:pid=4121\n"
		    "  uniscope top web1 -F 499 --window 30\n"
		    "  uniscope top --all\n"
		    "  uniscope top web1 --batch --count 5 -i 2\n"
		    "  uniscope top web1 --batch -d 60 -i 10\n"
		    "  uniscope top web1 --json --count 0 | jq -c .functions[0]",
	.min_operands = 0,
	.max_operands = SIZE_MAX,
	.options = list_top_options,
	.run = run_top,
};
