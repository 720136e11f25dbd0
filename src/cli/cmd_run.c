/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "app/boot.h"
#include "app/child.h"
#include "app/exact.h"
#include "app/cmd.h"
#include "app/qemu.h"
#include "app/qemu_options.h"
#include "app/quality.h"
#include "app/record.h"
#include "app/signals.h"
#include "app/summary.h"
#include "app/term.h"
#include "compat/run_xl.h"

#define BOOT_NS	   (60 * UNI_NSEC_PER_SEC) /* from the image's first instruction on */
#define FIRMWARE_S 600.0		   /* before that */
/* A kernel on a disk is at its load address first, and moves itself (Nanos) within this time. */
#define SETTLE_NS (500 * UNI_NSEC_PER_MSEC)
#define ENDING_NS (5 * UNI_NSEC_PER_SEC) /* of a QEMU whose stub is gone */

static struct {
	struct uni_record_args rec;
	struct uni_opt_list images; /* -e: the booted one's symbols, then programs that it loads */
	const char *symbols;	    /* the first of them, or NULL */
	const char *disk, *accel, *machine, *cpu, *append, *console, *qemu;
	uint64_t mem, vcpus;
	double wait;
	bool repeatable;
	const char *begin_at, *end_at;
	struct uni_opt_list filter;
	uint64_t depth;
	enum uni_exact_mode mode;
	const char *exact; /* NULL: no; "": tree */
	const char *xl, *target;
	bool five_files;
} o;

static const struct uni_opt *list_run_options(void)
{
	static const struct uni_opt table[] = {
		UNI_IMAGE_OPTION(o.images, "ELF with the symbols, or " UNI_SYMBOL_TABLE
					   ", when IMAGE and its .dbg sibling have none; with "
					   "--disk, the kernel's ELF"),
		{ 0, "disk", UNI_OPT_STR, &o.disk, "FILE",
			"boot this raw disk image by the PC's firmware, instead of IMAGE; it is "
			"not changed. -e names the kernel that is on it",
			"FILE", NULL },
		UNI_RECORD_OPTIONS(o.rec),
		{ 0, "accel", UNI_OPT_STR, &o.accel, "kvm|tcg|auto",
			"how QEMU runs the guest (default auto: KVM if it can be used)",
			"kvm tcg auto", NULL },
		{ 0, "machine", UNI_OPT_STR, &o.machine, "TYPE",
			"QEMU machine (default: microvm for an image that boots "
			"by PVH without devices for QEMU, else q35; virt "
			"for aarch64)",
			"q35 pc microvm virt", NULL },
		{ 0, "cpu", UNI_OPT_STR, &o.cpu, "MODEL",
			"QEMU CPU model (default: host with KVM, max without)", NULL, NULL },
		{ 0, "memory", UNI_OPT_SIZE, &o.mem, "SIZE", "guest memory (default 128M)", NULL,
			NULL },
		{ 0, "vcpus", UNI_OPT_U64, &o.vcpus, "N", "number of vCPUs (default 1)", NULL,
			NULL },
		{ 0, "wait", UNI_OPT_DOUBLE, &o.wait, "SECONDS",
			"give up if the guest has not begun to execute the image "
			"after this time (default 600), or if attaching then "
			"takes longer than this (default 60)",
			NULL, NULL },
		{ 0, "append", UNI_OPT_STR, &o.append, "TEXT", "the guest's command line", NULL,
			NULL },
		{ 0, "console", UNI_OPT_STR, &o.console, "FILE",
			"where the guest's serial console goes (default: the session's name with "
			".console.log)",
			"FILE", NULL },
		{ 0, "qemu", UNI_OPT_STR, &o.qemu, "PROGRAM",
			"QEMU to run (default qemu-system-x86_64, or that of the image's "
			"architecture)",
			"FILE", NULL },
		{ 0, "exact", UNI_OPT_MAYBE, &o.exact, "[=tree|counts|calls]",
			"instead of samples, count every instruction and every "
			"call, in the tree of their callers, by a plugin of "
			"QEMU's TCG. It counts from the image's first "
			"instruction until the guest ends or --duration is over. "
			"counts: without calls, at less cost. calls: each call and "
			"return is recorded as well, for `uniscope trace`",
			"tree counts calls", NULL },
		{ 0, "filter", UNI_OPT_LIST, &o.filter, "GLOB",
			"with --exact=calls: record calls of functions whose name "
			"matches; may be given several times (default: all)",
			NULL, NULL },
		{ 0, "depth", UNI_OPT_U64, &o.depth, "N",
			"with --exact=calls: record no calls deeper than N "
			"(default 0: all)",
			NULL, NULL },
		{ 0, "begin-at", UNI_OPT_STR, &o.begin_at, "FUNCTION",
			"with --exact: count from its first call on", NULL, NULL },
		{ 0, "end-at", UNI_OPT_STR, &o.end_at, "FUNCTION",
			"with --exact: end the guest where it is called for the first time", NULL,
			NULL },
		{ 0, "repeatable", UNI_OPT_FLAG, &o.repeatable, NULL,
			"with --exact: the guest's clocks count its "
			"instructions, and random numbers are fixed, so that the "
			"same image gives the same counts",
			NULL, NULL },
		{ 0, "xl", UNI_OPT_STR, &o.xl, "CFG",
			"boot the domain of this configuration with Xen's xl, "
			"and destroy it at the end; also draw NAME.svg",
			"FILE", NULL },
		{ 0, "five-files", UNI_OPT_FLAG, &o.five_files, NULL,
			"with --xl, also write the domain's -stacktrace, .syms, -stacktrace.syms, "
			"-stackcollapse and -flamegraph.svg, as generate-flame-graph",
			NULL, NULL },
		{ 0, "target", UNI_OPT_STR, &o.target, "TARGET",
			"with --xl, how the domain is reached (default xen:dom=N with its number)",
			NULL, NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){
		.rec = UNI_RECORD_DEFAULTS, .accel = "auto", .mem = 128u << 20, .vcpus = 1
	};
	return table;
}

static int check_exact(struct uni_err *err)
{
	if (o.exact == NULL)
		return o.repeatable || o.begin_at != NULL || o.end_at != NULL ||
				       o.filter.items.nr != 0 || o.depth != 0
			       ? uni_err_set(err, UNI_EUSAGE,
					 "--repeatable, --begin-at, --end-at, --filter and --depth "
					 "need --exact")
			       : 0;
	if (uni_exact_mode_of(o.exact[0] != '\0' ? o.exact : "tree", &o.mode) != 0)
		return uni_err_set(
			err, UNI_EUSAGE, "--exact is tree, counts or calls, not '%s'", o.exact);
	if (o.mode != UNI_EXACT_TRACE && (o.filter.items.nr != 0 || o.depth != 0))
		return uni_err_set(err, UNI_EUSAGE,
			"--filter and --depth choose calls to record: they need --exact=calls");
	if (o.mode == UNI_EXACT_COUNTS && (o.begin_at != NULL || o.end_at != NULL))
		return uni_err_set(err, UNI_EUSAGE,
			"--begin-at and --end-at need --exact=tree: counts has no calls");
	if (strcmp(o.accel, "kvm") == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"--exact needs TCG, because QEMU counts only code that "
			"it translates: leave out --accel kvm");
	if (o.rec.exits != NULL || o.rec.threads || o.rec.aggregate || o.rec.watch.items.nr != 0 ||
		o.rec.save_replay != NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"--exact takes no samples: leave out --exits, --threads, --aggregate, "
			"--watch and --save-replay");
	return 0;
}

static int check_run_options(struct uni_err *err)
{
	int rc = uni_record_check_args(&o.rec, err);

	if (rc != 0)
		return rc;
	if (strcmp(o.accel, "kvm") != 0 && strcmp(o.accel, "tcg") != 0 &&
		strcmp(o.accel, "auto") != 0)
		return uni_err_set(
			err, UNI_EUSAGE, "--accel is kvm, tcg or auto, not '%s'", o.accel);
	if (o.vcpus < 1 || o.vcpus > UNI_VCPU_MAX)
		return uni_err_set(err, UNI_EUSAGE, "--vcpus is 1 to %d", UNI_VCPU_MAX);
	if (o.wait < 0 || o.wait > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--wait must be between 0 and 10000000 s");
	if (o.mem < 1u << 20)
		return uni_err_set(err, UNI_EUSAGE, "--memory is at least 1M");
	return check_exact(err);
}

/* NAME of NAME.uniscope with .console.log instead. */
static char *console_path(const char *session)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, session);
	if (b.len > 9 && strcmp(b.s + b.len - 9, ".uniscope") == 0)
		b.len -= 9;
	uni_strbuf_adds(&b, ".console.log");
	return uni_strbuf_detach(&b);
}

/* A try to boot it: choices that the user left open, and the result. */
struct attempt {
	struct uni_qemu_args args;
	struct uni_qemu q;
	struct uni_boot boot;
	bool booted;	      /* boot has the result */
	bool qemu_left;	      /* QEMU could not even begin */
	struct uni_err first; /* not told yet: why it was tried once more */
	bool without_kvm;     /* as KVM could not run it, for this reason: */
	struct uni_err in_kvm;
};

static bool may_try_tcg(const struct attempt *a)
{
	return strcmp(o.accel, "auto") == 0 && a->q.accel != NULL && strcmp(a->q.accel, "kvm") == 0;
}

static bool has_ended(void *ctx)
{
	struct attempt *a = ctx;

	return uni_boot_ended(&a->boot);
}

static bool is_awake(void *ctx)
{
	struct attempt *a = ctx;

	return uni_boot_awake(&a->boot);
}

/* If the guest died, keeps the recording if any of it is the image's. Exceptions: all of it is the
 * halt that ended it; or KVM is to blame, and there is another way. */
static int judge_attempt(void *ctx, const struct uni_record_stats *st, struct uni_err *err)
{
	struct attempt *a = ctx;
	const struct uni_sample_filter on_cpu = { .on_cpu = true };
	char line[512];
	bool only_halted;

	if (!uni_boot_ended(&a->boot))
		return 0;
	uni_boot_tell(&a->boot, line, sizeof(line));
	if (a->boot.end == UNI_BOOT_INTERNAL && may_try_tcg(a))
		return uni_err_set(err, UNI_EGONE, "%s", line);
	/* Some show a thread on its way back into the halt, after a pause. */
	only_halted = a->boot.end == UNI_BOOT_HALTED &&
		      uni_quality_count(st, &on_cpu) <= o.vcpus + st->weight / 20;
	if (!only_halted && (st->inside != 0 || (st->outside == 0 && st->weight != 0)))
		return 0;
	return uni_err_set(err, UNI_EGONE, "%s, before it could be recorded", line);
}

static int record_it(struct attempt *a, struct uni_err *err)
{
	bool is_table = o.symbols != NULL && uni_symbols_kind_of(o.symbols) != UNI_SYMBOLS_ELF;
	uint64_t wait_ns = o.wait != 0 ? (uint64_t)(o.wait * 1e9) : BOOT_NS;
	struct uni_attach_args args = { .target = a->q.target,
		.method = o.rec.method,
		.no_pause = o.rec.no_pause,
		.exits = o.rec.exits != NULL,
		.threads = o.rec.threads,
		.image = o.symbols != NULL && !is_table ? o.symbols : a->args.image,
		.table = is_table ? o.symbols : NULL,
		.search = uni_search_of(&o.rec.debug_dirs),
		.sysroot = &o.rec.sysroot,
		.accept_image = o.rec.accept_image,
		.unwind = o.rec.unwind,
		.wait_ns = wait_ns,
		.settle_ns = o.disk != NULL ? SETTLE_NS : 0,
		.ended = has_ended,
		.ended_ctx = a };
	struct uni_guest g, *const one[] = { &g };
	int rc = uni_guest_open(&g, &args, err);

	/* A guest that is stopped forever looks as if it ran there all the time. */
	if (rc == 0 && has_ended(a)) {
		uni_guest_close(&g);
		return -UNI_EGONE;
	}
	if (rc == 0) {
		rc = uni_record_guests(one, 1, &o.rec, NULL, err);
		uni_guest_close(&g);
	}
	return rc;
}

/* A QEMU that ends closes its stub before its monitor. */
static bool has_ended_by_now(struct attempt *a, int rc)
{
	const struct timespec nap = uni_ns_timespec(10 * UNI_NSEC_PER_MSEC);
	uint64_t until_ns = uni_now_ns() + ENDING_NS;

	while (!uni_boot_ended(&a->boot)) {
		if (rc != -UNI_EGONE || uni_now_ns() >= until_ns)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

/* The end of a guest that died says more than errors noticed meanwhile. */
static int tell_end(struct attempt *a, int rc, struct uni_err *err)
{
	char line[512];

	if (!has_ended_by_now(a, rc))
		return rc;
	uni_boot_tell(&a->boot, line, sizeof(line));
	if (rc == 0 && a->boot.end != UNI_BOOT_INTERNAL && a->boot.end != UNI_BOOT_PANIC &&
		a->boot.end != UNI_BOOT_RESET) {
		if (!o.rec.quiet)
			uni_note("%s" UNI_SUMMARY_KEPT, line);
		return 0;
	}
	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_EGONE, "%s%s", line,
		rc == 0 ? UNI_SUMMARY_KEPT : ", before it could be recorded");
}

static int try_once(struct attempt *a, const struct uni_image *image, struct uni_err *err)
{
	const char *slash = strrchr(a->args.image, '/');
	int rc = uni_qemu_start(&a->args, &a->q, err);

	a->booted = rc == 0;
	a->qemu_left = rc == -UNI_EIO;
	if (rc != 0)
		return rc;
	a->boot = (struct uni_boot){ .q = &a->q,
		.image = image,
		.name = slash != NULL ? slash + 1 : a->args.image,
		.console = a->args.console,
		.quiet = o.rec.quiet };
	if (!o.rec.quiet)
		uni_note("booted %s under QEMU with %s (%s) on %s, console in %s",
			o.disk != NULL ? o.disk : a->args.image, a->q.accel, a->q.accel_why,
			a->q.machine, a->args.console);
	rc = uni_boot_begin(&a->boot, err);
	if (rc == 0)
		rc = uni_boot_wait(
			&a->boot, (uint64_t)((o.wait != 0 ? o.wait : FIRMWARE_S) * 1e9), err);
	if (rc == 0)
		rc = tell_end(a, record_it(a, err), err);
	return rc;
}

/* Is there another way to boot it, and is the failure not the image's own fault? Chooses it, with a
 * message. */
static bool choose_next(struct attempt *a, struct uni_err *err)
{
	const struct uni_boot *b = &a->boot;
	bool died = a->booted && b->end != UNI_BOOT_GOES_ON;
	/* Another machine would not help. */
	bool accel_failed =
		a->qemu_left && (uni_child_has_said(a->args.console, "kvm_") ||
					uni_child_has_said(a->args.console, "initialize kvm") ||
					uni_child_has_said(a->args.console, "invalid accelerator"));

	if (may_try_tcg(a) && (accel_failed || (died && b->end == UNI_BOOT_INTERNAL))) {
		uni_note("%s; trying once more without KVM (TCG)", err->msg);
		a->without_kvm = true;
		a->in_kvm = *err;
		a->args.accel = "tcg";
		a->args.accel_why = "KVM cannot run this guest";
	} else if (a->without_kvm && !a->booted) {
		return false; /* this QEMU has no TCG, on any machine */
	} else if (a->args.machine != NULL && o.machine == NULL && !accel_failed &&
		   (a->booted ? uni_boot_never_ran(b) : a->qemu_left)) {
		if (!o.rec.quiet)
			uni_note("%s; trying once more on q35", err->msg);
		else
			a->first = *err;
		a->args.machine = NULL;
	} else {
		return false;
	}
	*err = (struct uni_err){ 0 };
	return true;
}

/* "pc" of `-- -machine pc,usb=off`: QEMU takes the last one. */
static void take_machine(char *const *extra)
{
	static char type[32];

	for (; extra != NULL && extra[0] != NULL && extra[1] != NULL; extra++) {
		size_t len = strcspn(extra[1], ",=");

		if ((strcmp(extra[0], "-machine") != 0 && strcmp(extra[0], "-M") != 0) ||
			extra[1][len] == '=' || len == 0 || len >= sizeof(type))
			continue;
		(void)snprintf(type, sizeof(type), "%.*s", (int)len, extra[1]);
		o.machine = type;
	}
}

/* How the guest died says more than that there is no other way to run it. */
static int tell_no_tcg(const struct attempt *a, struct uni_err *err)
{
	const struct uni_err own = *err;

	*err = (struct uni_err){ 0 };
	return uni_err_set(err, UNI_EGONE, "%s; and this QEMU cannot run it without KVM: %s",
		a->in_kvm.msg, own.msg);
}

static int boot_until_recorded(
	struct attempt *a, const struct uni_image *image, struct uni_err *err)
{
	struct uni_signals signals;
	int rc;

	o.rec.ended = has_ended;
	o.rec.awake = is_awake;
	o.rec.judge = judge_attempt;
	o.rec.ctx = a;
	uni_signals_begin(&signals);
	do {
		rc = try_once(a, image, err);
		uni_qemu_stop(&a->q);
	} while (rc != 0 && choose_next(a, err));
	uni_signals_end(&signals);
	if (rc != 0 && a->first.code != 0)
		uni_note("%s; it was tried once more on q35", a->first.msg);
	return rc != 0 && a->without_kvm && !a->booted ? tell_no_tcg(a, err) : rc;
}

static int boot_with_qemu(const char *path, char **extra, struct uni_err *err)
{
	const char *named = o.disk != NULL ? o.disk : path, *slash = strrchr(named, '/');
	_cleanup_free_ char *output = o.rec.output != NULL
					      ? strdup(o.rec.output)
					      : uni_session_name(slash != NULL ? slash + 1 : named);
	_cleanup_free_ char *console = o.console != NULL
					       ? strdup(o.console)
					       : console_path(output != NULL ? output : "guest");
	struct attempt a = { .args = { .image = path,
				     .disk = o.disk,
				     .accel = o.accel,
				     .machine = o.machine,
				     .cpu = o.cpu,
				     .append = o.append,
				     .console = console,
				     .program = o.qemu,
				     .mem_bytes = o.mem,
				     .vcpus = o.vcpus,
				     .extra = extra } };
	struct uni_err unread = { 0 };
	struct uni_image *image = NULL;
	int rc = check_run_options(err);

	if (rc == 0 && (output == NULL || console == NULL))
		rc = uni_err_nomem(err);
	if (rc != 0)
		return rc;
	if (o.symbols == NULL && uni_symbols_kind_of(path) != UNI_SYMBOLS_ELF)
		return uni_err_set(err, UNI_EFORMAT,
			"%s is no ELF image, so its functions have no names: give the ELF file "
			"that it was made of with -e",
			path);
	if (uni_qemu_wants_paused(extra))
		return uni_err_set(err, UNI_EUSAGE,
			"-S starts the guest paused, and there would be nothing to record: start "
			"QEMU yourself, and take `uniscope record`");
	o.rec.output = output;
	if (o.exact != NULL)
		return uni_exact_run(&(struct uni_exact_args){ .qemu = a.args,
					     .symbols = o.symbols,
					     .mode = o.mode,
					     .filter = o.filter.items.v,
					     .nr_filter = o.filter.items.nr,
					     .depth = o.depth,
					     .begin_at = o.begin_at,
					     .end_at = o.end_at,
					     .repeatable = o.repeatable,
					     .rec = &o.rec },
			err);
	/* QEMU reports errors in a file that is no ELF. */
	(void)uni_image_load(path, &image, &unread);
	take_machine(extra);
	a.args.machine = o.machine;
	if (o.machine == NULL && o.disk == NULL && uni_qemu_fits_microvm(image, extra))
		a.args.machine = "microvm";
	rc = boot_until_recorded(&a, image, err);
	uni_image_destroy(image);
	return rc;
}

static int boot_with_xl(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_run_xl_args args = { .rec = &o.rec,
		.config = o.xl,
		.image = o.symbols,
		.target = o.target,
		.five_files = o.five_files };
	int rc = uni_record_check_args(&o.rec, err);

	if (rc != 0)
		return rc;
	if (ctx->nr_operands != 0 || ctx->rest != NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"--xl boots the kernel that %s names: give its ELF with "
			"-e, and no options for QEMU",
			o.xl);
	return uni_run_xl(&args, err);
}

/* The first -e has the symbols of what is booted; the others are looked for in its memory. */
static int sort_images(struct uni_err *err)
{
	o.symbols = uni_images_first(&o.images);
	return uni_images_others(&o.images, &o.rec.sysroot, err);
}

/* The ELF that is booted, be it from a disk. */
static int name_image(const struct uni_cmd_ctx *ctx, const char **ret, struct uni_err *err)
{
	if (o.five_files || o.target != NULL)
		return uni_err_set(err, UNI_EUSAGE, "--five-files and --target need --xl");
	if (o.disk != NULL && ctx->nr_operands != 0)
		return uni_err_set(err, UNI_EUSAGE,
			"--disk boots what is on the disk: give the kernel's ELF with -e, and no "
			"IMAGE");
	if (o.disk != NULL &&
		(o.symbols == NULL || uni_symbols_kind_of(o.symbols) != UNI_SYMBOLS_ELF))
		return uni_err_set(err, UNI_EUSAGE,
			"--disk needs the ELF of the kernel that is on the disk (-e KERNEL.elf): "
			"it is found in the guest's memory by its code");
	if (o.disk == NULL && ctx->nr_operands != 1)
		return uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope run [OPTIONS] IMAGE, uniscope run --disk FILE -e KERNEL, "
			"or uniscope run --xl CFG (see --help)");
	*ret = o.disk != NULL ? o.symbols : ctx->operands[0];
	return 0;
}

static int run_run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *image = NULL;
	int rc = sort_images(err);

	if (rc == 0 && o.xl != NULL && o.disk != NULL)
		rc = uni_err_set(err, UNI_EUSAGE, "--disk is QEMU's, and --xl is Xen's: give one");
	if (rc == 0 && o.xl == NULL)
		rc = name_image(ctx, &image, err);
	if (rc == 0)
		rc = o.xl != NULL ? boot_with_xl(ctx, err) : boot_with_qemu(image, ctx->rest, err);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_run = {
	.name = "run",
	.operands = "IMAGE",
	.summary = "boot an image under QEMU, or a domain with xl, record it, stop it",
	.details = "The image is an ELF that QEMU boots with -kernel: by PVH or "
		   "multiboot on x86_64, at its\n"
		   "entry point on aarch64. Arguments behind -- go to QEMU as they "
		   "are. With --disk,\n"
		   "the firmware boots a raw disk image. Recording begins when the kernel that "
		   "-e names is\n"
		   "found in memory. With --xl, Xen boots the domain of CFG, and "
		   "-e is the ELF with\n"
		   "the symbols (default: CFG's kernel).",
	.examples = "  uniscope run app.elf -d 20\n"
		    "  uniscope run --accel tcg --memory 64M --append 'netdev.ip=...' app.elf -- "
		    "-device ...\n"
		    "  uniscope run --disk disk.img -e kernel.elf -e program.elf\n"
		    "  uniscope run --exact app.elf -d 0\n"
		    "  uniscope run --xl app.cfg -e app.dbg -F 100 -d 240 --five-files",
	.takes_rest = true,
	.min_operands = 0,
	.max_operands = 1,
	.options = list_run_options,
	.run = run_run,
};
