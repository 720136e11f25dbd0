/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/qemu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "app/child.h"
#include "backend/target.h"

#define START_NS  (60 * UNI_NSEC_PER_SEC) /* a tenth of a second, where the host is not busy */
#define ANSWER_MS 10000

static void sleep_for(uint64_t ns)
{
	struct timespec ts = uni_ns_timespec(ns);

	(void)nanosleep(&ts, NULL);
}

/*
 * How to boot an image of each architecture; the first one if that is unknown. Nested and software
 * KVMs offer the ARCH_CAPABILITIES MSR and then refuse it: QEMU aborts. KVM of arm64 may have no
 * GICv2, which is the default of `virt`.
 */
static const struct uni_qemu_kind {
	uint16_t elf_machine;
	const char *uname, *program, *package, *machine;
	bool isa; /* a guest may end QEMU by isa-debug-exit, and report a panic by pvpanic */
	const char *kvm_cpu, *kvm_options; /* options of the machine */
} kinds[] = {
	{ 62, "x86_64", "qemu-system-x86_64", "qemu-system-x86", "q35", true,
		"host,-arch-capabilities", "" },
	{ 183, "aarch64", "qemu-system-aarch64", "qemu-system-arm", "virt", false, "host",
		",gic-version=host" },
};

/* The kind for this host's own images; the first one if there is none. */
static const struct uni_qemu_kind *native_kind(void)
{
	struct utsname uts;

	for (size_t i = 0; uname(&uts) == 0 && i < uni_array_len(kinds); i++) {
		if (strcmp(kinds[i].uname, uts.machine) == 0)
			return &kinds[i];
	}
	return &kinds[0];
}

/* Or does kvm: only say that it is for other hosts? */
static bool reaches_kvm(void)
{
	const struct uni_target_ops *ops = uni_target_backend("kvm");

	return ops != NULL && ops->claims != NULL;
}

const char *uni_qemu_native(const char **package_ret)
{
	*package_ret = native_kind()->package;
	return native_kind()->program;
}

static const struct uni_qemu_kind *kind_of(const char *image)
{
	_cleanup_close_ int fd = open(image, O_RDONLY | O_CLOEXEC);
	uint8_t head[20];

	/* e_machine of a little-endian file; QEMU reports errors in others. */
	if (fd < 0 || read(fd, head, sizeof(head)) != (ssize_t)sizeof(head) ||
		memcmp(head, "\177ELF", 4) != 0 || head[5] != 1)
		return &kinds[0];
	for (size_t i = 1; i < uni_array_len(kinds); i++) {
		if (kinds[i].elf_machine == (head[18] | head[19] << 8))
			return &kinds[i];
	}
	return &kinds[0];
}

static const char *program_of(const struct uni_qemu_args *args, const struct uni_qemu *q)
{
	return args->program != NULL ? args->program : q->kind->program;
}

bool uni_qemu_has_kvm(const char **why_ret)
{
	if (access("/dev/kvm", R_OK | W_OK) == 0) {
		*why_ret = "/dev/kvm can be used";
		return true;
	}
	*why_ret = errno == ENOENT ? "there is no /dev/kvm" : "/dev/kvm may not be opened";
	return false;
}

static void choose_accel(const struct uni_qemu_args *args, struct uni_qemu *q)
{
	const char *want = args->accel;

	if (strcmp(want, "auto") != 0) {
		q->accel = want;
		q->accel_why = args->accel_why != NULL ? args->accel_why : "as asked";
	} else if (q->kind != native_kind()) {
		q->accel = "tcg";
		q->accel_why = "the image is not for this host";
	} else {
		q->accel = uni_qemu_has_kvm(&q->accel_why) ? "kvm" : "tcg";
	}
}

static bool names_pvpanic(char *const *extra)
{
	for (; extra != NULL && *extra != NULL; extra++) {
		if (strncmp(*extra, "pvpanic", 7) == 0)
			return true;
	}
	return false;
}

void uni_qemu_add_value(struct uni_strbuf *b, const char *value)
{
	for (; *value != '\0'; value++) {
		uni_strbuf_addc(b, *value);
		if (*value == ',')
			uni_strbuf_addc(b, ',');
	}
}

/* The guest writes to a temporary file, so the image stays as it is for the next run. For the layer
 * that records and replays, see docs/system/replay.rst of QEMU. */
static void add_disk(struct uni_child_args *a, const struct uni_qemu_args *args)
{
	_cleanup_strbuf_ struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_addf(&b, "if=%s,format=raw,snapshot=on,file=",
		args->disk_replays ? "none,id=disk" : "virtio");
	uni_qemu_add_value(&b, args->disk);
	uni_child_add(a, "-drive");
	if (uni_strbuf_failed(&b))
		a->failed = true;
	else
		uni_child_add(a, b.s);
	for (const char *const *p = (const char *const[]){ "-drive",
		     "driver=blkreplay,if=none,image=disk,id=replayed", "-device",
		     "virtio-blk-pci,drive=replayed", NULL };
		args->disk_replays && *p != NULL; p++)
		uni_child_add(a, *p);
}

/* The guest does not run until we let it, so that we miss nothing. QEMU keeps a guest that has
 * ended, so that we can see where it stopped. */
static void build_argv(
	struct uni_child_args *a, const struct uni_qemu_args *args, const struct uni_qemu *q)
{
	bool kvm = strcmp(q->accel, "kvm") == 0;
	char text[256];

	uni_child_add(a, program_of(args, q));
	uni_child_add(a, "-M");
	(void)snprintf(text, sizeof(text), "%s%s", q->machine,
		kvm && args->machine == NULL ? q->kind->kvm_options : "");
	uni_child_add(a, text);
	uni_child_add(a, "-accel");
	uni_child_add(a, q->accel);
	uni_child_add(a, "-cpu");
	uni_child_add(a, args->cpu != NULL ? args->cpu : kvm ? q->kind->kvm_cpu : "max");
	uni_child_add(a, "-m");
	(void)snprintf(text, sizeof(text), "%" PRIu64, args->mem_bytes >> 20);
	uni_child_add(a, text);
	uni_child_add(a, "-smp");
	(void)snprintf(text, sizeof(text), "%" PRIu64, args->vcpus);
	uni_child_add(a, text);
	for (const char *const *p = (const char *const[]){ "-display", "none", "-nodefaults",
		     "-no-reboot", "-no-shutdown", "-S", "-serial", "stdio", NULL };
		*p != NULL; p++)
		uni_child_add(a, *p);
	if (q->kind->isa) {
		uni_child_add(a, "-device");
		uni_child_add(a, "isa-debug-exit,iobase=0xf4,iosize=4");
	}
	if (q->kind->isa && !names_pvpanic(args->extra)) {
		uni_child_add(a, "-device");
		uni_child_add(a, "pvpanic");
	}
	(void)snprintf(text, sizeof(text), "unix:%s/qmp.sock,server=on,wait=off", q->dir);
	uni_child_add(a, "-qmp");
	uni_child_add(a, text);
	(void)snprintf(text, sizeof(text), "unix:%s/gdb.sock,server=on,wait=off", q->dir);
	uni_child_add(a, "-gdb");
	uni_child_add(a, text);
	if (args->disk != NULL) {
		add_disk(a, args);
	} else {
		uni_child_add(a, "-kernel");
		uni_child_add(a, args->image);
	}
	if (args->append != NULL) {
		uni_child_add(a, "-append");
		uni_child_add(a, args->append);
	}
	if (args->plugin != NULL) {
		uni_child_add(a, "-plugin");
		uni_child_add(a, args->plugin);
	}
	for (char **p = args->extra; p != NULL && *p != NULL; p++)
		uni_child_add(a, *p);
}

bool uni_qemu_was_debug_exit(const struct uni_qemu *q, int status)
{
	/* (code << 1) | 1; QEMU's own failures are 1, and by signals it leaves with 0. */
	return q->kind->isa && WIFEXITED(status) && (WEXITSTATUS(status) & 1) != 0 &&
	       WEXITSTATUS(status) != 1 && WEXITSTATUS(status) != 127;
}

/* Options of ours whose values are QEMU's; 0: none of them is to blame. */
static int tell_refused(
	const struct uni_qemu_args *args, const struct uni_qemu *q, struct uni_err *err)
{
	const struct {
		const char *said, *option, *value, *what, *list;
		enum uni_errcode code; /* EIO: another machine may do */
	} known[] = {
		{ "unsupported machine type", "--machine", q->machine, "machine", "-M help",
			UNI_EIO },
		{ "invalid accelerator", "--accel", q->accel, "accelerator", "-accel help",
			UNI_EIO },
		{ "unable to find CPU model", "--cpu", args->cpu, "CPU model", "-cpu help",
			UNI_ENOTSUP },
	};

	for (size_t i = 0; i < uni_array_len(known); i++) {
		if (known[i].value == NULL || !uni_child_has_said(args->console, known[i].said))
			continue;
		return uni_err_set(err, known[i].code,
			"%s %s: %s has no such %s; `%s %s` lists those that it has",
			known[i].option, known[i].value, program_of(args, q), known[i].what,
			program_of(args, q), known[i].list);
	}
	return 0;
}

/* Our plugin did not begin, and has said why. */
static int tell_plugin(const struct uni_qemu_args *args, struct uni_err *err)
{
	char words[256];

	if (args->plugin == NULL ||
		!uni_child_line(args->console, "uniscope's plugin: ", words, sizeof(words)))
		return 0;
	return uni_err_set(err, UNI_EIO, "%s%s", words,
		strstr(words, "no room") != NULL ? ": free some, or name another folder by TMPDIR"
						 : "");
}

static int ended_early(
	const struct uni_qemu_args *args, const struct uni_qemu *q, int status, struct uni_err *err)
{
	char words[256];
	int rc;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return uni_err_set(err, UNI_ENOENT,
			"cannot run %s: install it (Debian: %s) or name it with --qemu",
			program_of(args, q), q->kind->package);
	rc = tell_refused(args, q, err);
	if (rc == 0)
		rc = tell_plugin(args, err);
	if (rc != 0)
		return rc;
	uni_child_last_words(args->console, words, sizeof(words));
	return uni_err_set(err, UNI_EIO,
		"QEMU ended before %s booted (status %d); its last words: %s (all are in %s)",
		args->image, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
		words, args->console);
}

/* The socket appears once QEMU has set up the machine. */
static int wait_for_socket(
	struct uni_qemu *q, const struct uni_qemu_args *args, struct uni_err *err)
{
	uint64_t until = uni_now_ns() + START_NS;
	char path[96];
	struct stat st;
	int status = 0;

	(void)snprintf(path, sizeof(path), "%s/gdb.sock", q->dir);
	while (stat(path, &st) != 0) {
		if (uni_child_ended(&q->pid, &status))
			return ended_early(args, q, status, err);
		if (uni_now_ns() > until)
			return uni_err_set(err, UNI_ETIMEDOUT,
				"QEMU did not start within a minute; see %s", args->console);
		sleep_for(10 * UNI_NSEC_PER_MSEC);
	}
	return 0;
}

static int open_monitor(struct uni_qemu *q, const struct uni_qemu_args *args, struct uni_err *err)
{
	char path[96];
	int status = 0, rc;

	(void)snprintf(path, sizeof(path), "%s/qmp.sock", q->dir);
	rc = uni_qmp_open(path, ANSWER_MS, &q->qmp, err);
	if (rc != 0 && uni_child_ending(&q->pid, &status)) {
		*err = (struct uni_err){ 0 };
		return ended_early(args, q, status, err);
	}
	return rc;
}

/* The firmware says nothing about a disk that it cannot boot: it waits for another. */
static int check_disk(
	const struct uni_qemu_args *args, const struct uni_qemu *q, struct uni_err *err)
{
	_cleanup_close_ int fd = open(args->disk, O_RDONLY | O_CLOEXEC);
	uint8_t head[512];
	ssize_t len;

	if (!q->kind->isa)
		return uni_err_set(err, UNI_ENOTSUP,
			"--disk needs the firmware of x86_64's PCs, and %s is not for x86_64",
			args->image);
	if (fd < 0)
		return uni_err_set(
			err, UNI_ENOENT, "cannot read disk %s: %s", args->disk, strerror(errno));
	len = read(fd, head, sizeof(head));
	if (len > 4 && memcmp(head, "QFI\xfb", 4) == 0)
		return uni_err_set(err, UNI_EINVAL,
			"%s is a qcow2 image: `qemu-img convert -O raw %s FILE` makes the raw one "
			"that --disk takes",
			args->disk, args->disk);
	if (len != (ssize_t)sizeof(head) || head[510] != 0x55 || head[511] != 0xaa)
		return uni_err_set(err, UNI_EINVAL,
			"%s is no disk that boots: its first sector does not end with 55 aa",
			args->disk);
	return 0;
}

/* Detects possible failures before a VM is made. */
static int open_files(const struct uni_qemu_args *args, const struct uni_qemu *q, int *console_ret,
	struct uni_err *err)
{
	struct stat st;
	int rc;

	if (access(args->image, R_OK) != 0)
		return uni_err_set(
			err, UNI_ENOENT, "cannot read image %s: %s", args->image, strerror(errno));
	if (stat(args->image, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0)
		return uni_err_set(err, UNI_EFORMAT, "image %s is empty", args->image);
	rc = args->disk != NULL ? check_disk(args, q, err) : 0;
	if (rc != 0)
		return rc;
	return uni_child_console(args->console, console_ret, err);
}

int uni_qemu_start(const struct uni_qemu_args *args, struct uni_qemu *q, struct uni_err *err)
{
	_cleanup_close_ int console = -1;
	struct uni_child_args a = { 0 };
	int rc;

	memset(q, 0, sizeof(*q));
	q->kind = kind_of(args->image);
	rc = open_files(args, q, &console, err);
	if (rc != 0)
		return rc;
	choose_accel(args, q);
	q->machine = args->machine != NULL ? args->machine : q->kind->machine;
	(void)snprintf(q->dir, sizeof(q->dir), "/tmp/uniscope-run-XXXXXX");
	if (mkdtemp(q->dir) == NULL) {
		rc = uni_err_set(err, UNI_EIO, "cannot make a folder in /tmp: %s", strerror(errno));
		q->dir[0] = '\0';
		return rc;
	}
	rc = uni_scratch_keep(&q->keep, q->dir, err);
	if (rc != 0) {
		uni_qemu_stop(q);
		return rc;
	}
	build_argv(&a, args, q);
	/* A plugin writes its counts. */
	a.rights = (struct uni_child_rights){ .image = args->image,
		.disk = args->disk,
		.dir = q->dir,
		.kvm = strcmp(q->accel, "kvm") == 0,
		.writes = args->plugin != NULL,
		.options =
			args->program != NULL || (args->extra != NULL && args->extra[0] != NULL) };
	rc = uni_child_start(&a, console, "QEMU", &q->pid, err);
	uni_child_args_deinit(&a);
	if (rc == 0)
		rc = wait_for_socket(q, args, err);
	if (rc == 0)
		rc = open_monitor(q, args, err);
	if (rc != 0) {
		uni_qemu_stop(q);
		return rc;
	}
	if (strcmp(q->accel, "kvm") == 0 && reaches_kvm())
		(void)snprintf(q->target, sizeof(q->target), "kvm:pid=%d", (int)q->pid);
	else
		(void)snprintf(q->target, sizeof(q->target), "gdb:unix=%s/gdb.sock", q->dir);
	return 0;
}

bool uni_qemu_ended(struct uni_qemu *q, int *status_ret)
{
	return uni_child_has_ended(q->fate, &q->pid, status_ret);
}

bool uni_qemu_ending(struct uni_qemu *q, int *status_ret)
{
	return uni_child_is_ending(q->fate, &q->pid, status_ret);
}

void uni_qemu_stop(struct uni_qemu *q)
{
	static const char *const sockets[] = { "gdb.sock", "qmp.sock" };
	char path[96];

	uni_qmp_close(q->qmp);
	q->qmp = NULL;
	uni_child_end(&q->pid, "QEMU");
	if (q->dir[0] == '\0')
		return;
	for (size_t i = 0; i < uni_array_len(sockets); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", q->dir, sockets[i]);
		(void)unlink(path);
	}
	(void)rmdir(q->dir);
	uni_scratch_leave(&q->keep);
	q->dir[0] = '\0';
}
