/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "base/confine.h"
#include "app/cmd.h"
#include "compat/names.h"
#include "compat/uniprof/print.h"
#include "app/record.h"
#include "app/symbols.h"
#include "app/term.h"
#include "config.h"

static struct {
	struct uni_record_args rec; /* frequency, duration, method, unwind, debug_dirs, quiet */
	const char *table, *elf, *named_elf, *qmp;
	bool missed, verbose, version;
} o;

static const struct uni_opt *list_uniprof_options(void)
{
	static const struct uni_opt table[] = {
		{ 'F', "frequency", UNI_OPT_DOUBLE, &o.rec.frequency, "HZ",
			"traces per second of each vCPU (default 1)", NULL, NULL },
		{ 'T', "time", UNI_OPT_DOUBLE, &o.rec.duration, "SECONDS",
			"how long; 0 traces until Ctrl-C (default 1)", NULL, NULL },
		{ 'M', "missed-deadlines", UNI_OPT_FLAG, &o.missed, NULL,
			"say each missed deadline on stderr; traces are then taken at exact "
			"multiples of the period",
			NULL, NULL },
		{ 's', "symbol-table", UNI_OPT_STR, &o.table, "FILE",
			"write names instead of addresses: from this table of nm, ELF or .usym",
			"FILE", NULL },
		{ 'e', "elf-file", UNI_OPT_STR, &o.elf, "ELF",
			"the image that the guest runs, for its call frame information (default: "
			"from the VMM's command line)",
			"FILE", NULL },
		{ 'E', "elf-resolve", UNI_OPT_STR, &o.named_elf, "ELF",
			"the same, and write names instead of addresses", "FILE", NULL },
		{ 'v', "verbose", UNI_OPT_FLAG, &o.verbose, NULL, "say how the guest is reached",
			NULL, NULL },
		{ 'V', "version", UNI_OPT_FLAG, &o.version, NULL, "print the version", NULL, NULL },
		{ 0, "method", UNI_OPT_STR, &o.rec.method, "auto|bpf|pause",
			"how a kvm: guest is sampled, as of record (default auto)",
			"auto bpf pause", NULL },
		UNI_NO_PAUSE_OPTION(o.rec.no_pause),
		UNI_PACE_OPTIONS(o.rec.pace),
		{ 0, "unwind", UNI_OPT_STR, &o.rec.unwind, "LIST",
			"how callers are found, tried in this order, as of record (default cfi,fp: "
			"the format has no mark for guesses)",
			NULL, NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_DEBUG_DIR_OPTION(o.rec.debug_dirs),
		{ 'q', "quiet", UNI_OPT_FLAG, &o.rec.quiet, NULL, "no summary on stderr", NULL,
			NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){
		.rec = { .frequency = 1, .duration = 1, .unwind = "cfi,fp", .never_exits = true },
	};
	return table;
}

static int check_uniprof_options(struct uni_err *err)
{
	if ((o.table != NULL) + (o.elf != NULL) + (o.named_elf != NULL) > 1)
		return uni_err_set(err, UNI_EUSAGE,
			"-s, -e and -E exclude each other: -E has both an image and names");
	return uni_record_check_args(&o.rec, err);
}

/* The symbols for names; NULL: addresses are written. */
static int find_names(const struct uni_guest *g, struct uni_symtab **ret, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&o.rec.debug_dirs);

	if (o.table != NULL)
		return uni_compat_symbols(o.table, &search, ret, err);
	if (o.named_elf != NULL && g->image != NULL)
		return uni_symtab_of_image(g->image, ret, err);
	if (o.named_elf != NULL)
		return uni_compat_symbols(o.named_elf, &search, ret, err);
	return 0;
}

static int trace_guest(struct uni_guest *g, const char *path, struct uni_err *err)
{
	struct uni_symtab *names = NULL;
	struct uni_sink *out = NULL;
	struct uni_tracer_args args = { .frequency = o.rec.frequency,
		.duration = o.rec.duration,
		.target = g->spec.text,
		.say_missed = o.missed,
		.pace = &o.rec.pace,
		.quiet = o.rec.quiet };
	int rc = find_names(g, &names, err);

	args.symtab = names;
	if (rc == 0)
		rc = uni_sink_open_file(path, &out, err);
	if (rc == 0 && o.verbose)
		uni_note("%s: %s%s%s", g->spec.text, g->info.note,
			g->image != NULL ? ", image " : "",
			g->image != NULL ? uni_image_path(g->image) : "");
	if (rc == 0)
		rc = uni_tracer_run(g, &args, out, err);
	uni_symtab_destroy(names);
	if (out == NULL)
		return rc;
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

static int run_uniprof(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	char target[UNI_COMPAT_TARGET_MAX];
	struct uni_attach_args args = { .target = target,
		.image = o.elf != NULL ? o.elf : o.named_elf,
		.qmp = o.qmp,
		.method = o.rec.method,
		.no_pause = o.rec.no_pause,
		.no_image_ok = true,
		.search = uni_search_of(&o.rec.debug_dirs),
		.unwind = o.rec.unwind };
	struct uni_guest g;
	int rc;

	if (o.version) {
		(void)puts("uniprof format 1.2, written by uniscope " UNISCOPE_VERSION);
		return UNI_EXIT_OK;
	}
	if (ctx->nr_operands != 2)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope compat uniprof [OPTIONS] OUT TARGET (see --help)"));
	rc = check_uniprof_options(err);
	uni_confine_output(ctx->operands[0]);
	if (rc == 0)
		rc = uni_compat_target(ctx->operands[1], target, err);
	if (rc == 0)
		rc = uni_guest_open_only(&g, &args, err);
	if (rc != 0)
		return uni_exit_of(rc);
	rc = trace_guest(&g, ctx->operands[0], err);
	uni_guest_close(&g);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_uniprof = {
	.name = "uniprof",
	.operands = "OUT TARGET",
	.summary = "write stack traces of a guest in uniprof's text, as it did",
	.details = "OUT is a file, or - for standard output. TARGET is a Xen domain's "
		   "number, or any target\n"
		   "as of `uniscope record`. The text is uniprof's, without its errors: the "
		   "outermost caller\n"
		   "is there, and everything that is no trace goes to standard error. The "
		   "guest runs on,\n"
		   "whatever happens to uniscope.",
	.examples = "  uniscope compat uniprof -F 100 -T 60 app-stacktrace 3\n"
		    "  uniscope compat uniprof -F 100 -T 60 -E app.dbg - kvm:pid=4121",
	.min_operands = 0,
	.max_operands = 2,
	.options = list_uniprof_options,
	.run = run_uniprof,
};
