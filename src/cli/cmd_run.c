/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "app/bootable.h"
#include "app/cmd.h"
#include "app/images.h"
#include "app/symbols.h"
#include "app/tender.h"
#include "app/xl_config.h"
#include "backend/target.h"
#include "cli/run_options.h"
#include "compat/run_xl.h"

static struct uni_run_options o;

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
		{ 0, "inputs", UNI_OPT_STR, &o.inputs, "FILE",
			"with --repeatable and --disk: what the disk answered, and when. "
			"The first run records FILE, and later ones give it to the guest again",
			"FILE", NULL },
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

	o = (struct uni_run_options){
		.rec = UNI_RECORD_DEFAULTS, .accel = "auto", .mem = 128u << 20, .vcpus = 1
	};
	return table;
}

static int check_exact(struct uni_err *err)
{
	if (o.exact == NULL)
		return o.repeatable || o.begin_at != NULL || o.end_at != NULL ||
				       o.filter.items.nr != 0 || o.depth != 0 || o.inputs != NULL
			       ? uni_err_set(err, UNI_EUSAGE,
					 "--repeatable, --inputs, --begin-at, --end-at, --filter "
					 "and "
					 "--depth need --exact")
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
	if (o.inputs != NULL && (!o.repeatable || o.disk == NULL))
		return uni_err_set(err, UNI_EUSAGE,
			"--inputs needs --repeatable and --disk: it fixes a disk's");
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

static int boot_with_xl(const char *config, struct uni_err *err)
{
	return uni_run_xl(&(struct uni_run_xl_args){ .rec = &o.rec,
				  .config = config,
				  .image = o.symbols,
				  .target = o.target,
				  .five_files = o.five_files },
		err);
}

static int boot_configured(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	int rc = uni_record_check_args(&o.rec, err);

	if (rc != 0)
		return rc;
	if (ctx->nr_operands != 0 || ctx->rest != NULL)
		return uni_err_set(err, UNI_EUSAGE,
			"--xl boots the kernel that %s names: give its ELF with "
			"-e, and no options for QEMU",
			o.xl);
	return boot_with_xl(o.xl, err);
}

static int start_tender(
	const char *path, const struct uni_solo5 *notes, char **extra, struct uni_err *err)
{
	_cleanup_free_ char *output = NULL, *console = NULL;
	int rc = uni_run_name_outputs(&o, path, &output, &console, err);

	return rc != 0 ? rc
		       : uni_tender_run(&(struct uni_tender_args){ .notes = notes,
						.image = path,
						.append = o.append,
						.console = console,
						.mem_bytes = o.mem,
						.extra = extra,
						.attach = uni_run_attach_args(&o, path),
						.rec = &o.rec },
				 err);
}

/* "app" of /srv/app.xen, as far as xl takes it for a domain's name. */
static void name_domain(const char *path, char *ret, size_t cap)
{
	const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
	size_t len = strlen(base);

	if (len > 4 && strcmp(base + len - 4, ".xen") == 0)
		len -= 4;
	(void)snprintf(ret, cap, "%.*s", (int)uni_min(len, cap - 1), base);
	for (; *ret != '\0'; ret++) {
		if (!isalnum((unsigned char)*ret) && strchr("._-", *ret) == NULL)
			*ret = '-';
	}
}

/* In a dom0 the domain is made; elsewhere its configuration is the result. */
static int boot_domain(const char *path, struct uni_err *err)
{
	const struct uni_target_ops *xen = uni_target_backend("xen");
	_cleanup_free_ char *kernel = realpath(path, NULL);
	_cleanup_strbuf_ struct uni_strbuf text;
	_cleanup_close_ int fd = -1;
	struct uni_xl_config config = { 0 };
	struct uni_err why = { 0 };
	char file[64];

	uni_strbuf_init(&text);
	if (kernel == NULL || strlen(kernel) >= sizeof(config.kernel))
		return uni_err_set(err, UNI_ENOENT, "cannot read image %s", path);
	memcpy(config.kernel, kernel, strlen(kernel) + 1);
	name_domain(path, config.name, sizeof(config.name));
	uni_xl_config_write(&config, o.append, o.mem >> 20, &text);
	if (uni_strbuf_failed(&text))
		return uni_err_nomem(err);
	if (xen == NULL || xen->host_check(&why) != 0) {
		(void)fputs(text.s, stdout);
		return uni_err_set(err, UNI_ENOTSUP,
			"%s is a domain of Xen, and %s. In a dom0 this command boots it, or "
			"`uniscope run --xl CFG` with the configuration above",
			path, xen == NULL ? "this build reaches none" : why.msg);
	}
	fd = memfd_create("xl", MFD_CLOEXEC);
	if (fd < 0 || write(fd, text.s, text.len) != (ssize_t)text.len)
		return uni_err_set(err, UNI_EIO, "no memory for a configuration");
	(void)snprintf(file, sizeof(file), "/proc/%d/fd/%d", (int)getpid(), fd);
	return boot_with_xl(file, err);
}

/* An image of Solo5 says what it is to run in. */
static int boot_solo5(
	const char *path, const struct uni_solo5 *notes, char **extra, struct uni_err *err)
{
	const char *name = uni_tender_of(notes->binding);
	bool is_xen = notes->binding == UNI_SOLO5_XEN;

	if (o.exact != NULL || o.machine != NULL || o.cpu != NULL || o.qemu != NULL ||
		o.vcpus != 1 || strcmp(o.accel, "auto") != 0 || (is_xen && extra != NULL))
		return uni_err_set(err, UNI_EUSAGE,
			"%s runs under %s, and not under QEMU: leave out --accel, --machine, "
			"--cpu, --vcpus, --qemu and --exact%s, or link it for virtio",
			path, is_xen ? "Xen" : name, is_xen ? ", and what is behind --" : "");
	return is_xen ? boot_domain(path, err) : start_tender(path, notes, extra, err);
}

static int boot_image(const char *path, char **extra, struct uni_err *err)
{
	_cleanup_free_ struct uni_bootable *image = calloc(1, sizeof(*image));
	int rc = check_run_options(err);

	if (rc != 0)
		return rc;
	rc = image != NULL ? uni_bootable_read(path, image, err) : uni_err_nomem(err);
	if (rc != 0)
		return rc;
	if (o.disk == NULL && (uni_tender_of(image->notes.binding) != NULL ||
				      image->notes.binding == UNI_SOLO5_XEN))
		return boot_solo5(path, &image->notes, extra, err);
	return uni_run_qemu(&o, path, image, extra, err);
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
		rc = o.xl != NULL ? boot_configured(ctx, err) : boot_image(image, ctx->rest, err);
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_run = {
	.name = "run",
	.operands = "IMAGE",
	.summary = "boot an image under QEMU, a Solo5 tender or xl, record it, stop it",
	.details = "The image is an ELF that QEMU boots with -kernel: by PVH or "
		   "multiboot on x86_64, at its\n"
		   "entry point on aarch64. An image of Solo5 says by itself that it is for "
		   "solo5-hvt,\n"
		   "solo5-spt or Xen. Arguments behind -- go to QEMU or to the tender as they "
		   "are. With --disk,\n"
		   "the firmware boots a raw disk image. Recording begins when the kernel that "
		   "-e names is\n"
		   "found in memory. With --xl, Xen boots the domain of CFG, and "
		   "-e is the ELF with\n"
		   "the symbols (default: CFG's kernel).",
	.examples = "  uniscope run app.elf -d 20\n"
		    "  uniscope run --accel tcg --memory 64M --append 'netdev.ip=...' app.elf -- "
		    "-device ...\n"
		    "  uniscope run app.hvt -- --net:service=tap0\n"
		    "  uniscope run --disk disk.img -e kernel.elf -e program.elf\n"
		    "  uniscope run --exact app.elf -d 0\n"
		    "  uniscope run --xl app.cfg -e app.dbg -F 100 -d 240 --five-files",
	.starts_others = true,
	.takes_rest = true,
	.min_operands = 0,
	.max_operands = 1,
	.options = list_run_options,
	.run = run_run,
};
