/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "app/cmd.h"
#include "app/qemu.h"
#include "app/record.h"
#include "compat/run_xl.h"
#include "app/term.h"

/* A small guest takes a second; ten times that and more on a host that does other things. */
#define BOOT_NS (60 * UNI_NSEC_PER_SEC)

static struct {
	struct uni_record_args rec;
	const char *symbols, *accel, *machine, *cpu, *append, *console, *qemu;
	uint64_t mem, vcpus;
	const char *xl, *target;
	bool five_files;
} o;

static const struct uni_opt *options(void)
{
	static const struct uni_opt table[] = {
		{ 'e', "image", UNI_OPT_STR, &o.symbols, "ELF",
			"ELF with the symbols, or " UNI_SYMBOL_TABLE
			", when IMAGE and its .dbg sibling have none",
			"FILE", NULL },
		UNI_RECORD_OPTIONS(o.rec),
		{ 0, "accel", UNI_OPT_STR, &o.accel, "kvm|tcg|auto",
			"how QEMU runs the guest (default auto: KVM if it can be used)",
			"kvm tcg auto", NULL },
		{ 0, "machine", UNI_OPT_STR, &o.machine, "TYPE",
			"QEMU machine (default q35; virt for an image of aarch64)",
			"q35 pc microvm virt", NULL },
		{ 0, "cpu", UNI_OPT_STR, &o.cpu, "MODEL",
			"QEMU CPU model (default: host with KVM, max without)", NULL, NULL },
		{ 0, "memory", UNI_OPT_SIZE, &o.mem, "SIZE", "guest memory (default 128M)", NULL,
			NULL },
		{ 0, "vcpus", UNI_OPT_U64, &o.vcpus, "N", "number of vCPUs (default 1)", NULL,
			NULL },
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
		{ 0, "xl", UNI_OPT_STR, &o.xl, "CFG",
			"boot with Xen's xl what this configuration of a domain says, and destroy "
			"it in the end; also draws NAME.svg",
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

static int check(struct uni_err *err)
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
	if (o.mem < 1u << 20)
		return uni_err_set(err, UNI_EUSAGE, "--memory is at least 1M");
	return 0;
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

static bool has_ended(void *ctx)
{
	int status;

	return uni_qemu_ended(ctx, &status) != 0;
}

static int record_it(struct uni_qemu *q, const char *image, struct uni_err *err)
{
	bool is_table = o.symbols != NULL && uni_symbols_kind_of(o.symbols) != UNI_SYMBOLS_ELF;
	struct uni_attach_args args = { .target = q->target,
		.method = o.rec.method,
		.no_pause = o.rec.no_pause,
		.exits = o.rec.exits != NULL,
		.threads = o.rec.threads,
		.image = o.symbols != NULL && !is_table ? o.symbols : image,
		.table = is_table ? o.symbols : NULL,
		.search = uni_search_of(&o.rec.debug_dirs),
		.sysroot = &o.rec.sysroot,
		.unwind = o.rec.unwind,
		.wait_ns = BOOT_NS,
		.ended = has_ended,
		.ended_ctx = q };
	struct uni_guest g, *const one[] = { &g };
	int rc = uni_guest_open(&g, &args, err);

	if (rc == 0) {
		rc = uni_record_guests(one, 1, &o.rec, NULL, err);
		uni_guest_close(&g);
	}
	if (rc != 0 && uni_qemu_ending(q))
		return uni_err_prefix(err, "the guest ended before it could be recorded");
	return rc;
}

static int boot_with_qemu(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *image = ctx->operands[0], *slash = strrchr(image, '/');
	_cleanup_free_ char *output = o.rec.output != NULL
					      ? strdup(o.rec.output)
					      : uni_session_name(slash != NULL ? slash + 1 : image);
	_cleanup_free_ char *console = o.console != NULL
					       ? strdup(o.console)
					       : console_path(output != NULL ? output : "guest");
	struct uni_qemu_args args = { .image = image,
		.accel = o.accel,
		.machine = o.machine,
		.cpu = o.cpu,
		.append = o.append,
		.console = console,
		.program = o.qemu,
		.mem_bytes = o.mem,
		.vcpus = o.vcpus,
		.extra = ctx->rest };
	struct uni_qemu q;
	int rc = check(err);

	if (rc == 0 && (output == NULL || console == NULL))
		rc = uni_err_set(err, UNI_ENOMEM, "out of memory");
	o.rec.output = output;
	if (rc == 0)
		rc = uni_qemu_start(&args, &q, err);
	if (rc != 0)
		return rc;
	if (!o.rec.quiet)
		uni_note("booted %s under QEMU with %s (%s), console in %s", image, q.accel,
			q.accel_why, console);
	rc = record_it(&q, image, err);
	uni_qemu_stop(&q);
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
			"--xl boots the kernel that %s names: give its ELF with -e, and nothing "
			"for QEMU",
			o.xl);
	return uni_run_xl(&args, err);
}

static int run(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	if (o.xl != NULL)
		return uni_exit_of(boot_with_xl(ctx, err));
	if (ctx->nr_operands != 1)
		return uni_exit_of(uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope run [OPTIONS] IMAGE, or uniscope run --xl CFG (see "
			"--help)"));
	if (o.five_files || o.target != NULL)
		return uni_exit_of(
			uni_err_set(err, UNI_EUSAGE, "--five-files and --target go with --xl"));
	return uni_exit_of(boot_with_qemu(ctx, err));
}

const struct uni_cmd uni_cmd_run = {
	.name = "run",
	.operands = "IMAGE",
	.summary = "boot an image under QEMU, or a domain with xl, record it, stop it",
	.details =
		"The image is an ELF that QEMU boots with -kernel: by PVH or multiboot on x86_64, "
		"at its\n"
		"entry point on aarch64. What stands behind -- goes to QEMU as it is. With --xl no "
		"IMAGE\n"
		"is given: Xen boots what CFG says, and -e is the ELF with the symbols (default: "
		"CFG's\n"
		"kernel).",
	.examples = "  uniscope run app.elf -d 20\n"
		    "  uniscope run --accel tcg --memory 64M --append 'netdev.ip=...' app.elf -- "
		    "-device ...\n"
		    "  uniscope run --xl app.cfg -e app.dbg -F 100 -d 240 --five-files",
	.takes_rest = true,
	.min_operands = 0,
	.max_operands = 1,
	.options = options,
	.run = run,
};
