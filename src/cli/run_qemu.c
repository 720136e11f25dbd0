/* SPDX-License-Identifier: BSD-2-Clause */
/* `run` under QEMU: on another machine, or without KVM, where the first choice does not do. */
#include "cli/run_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/io.h"
#include "base/privilege.h"
#include "app/apart.h"
#include "app/boot.h"
#include "app/bootable.h"
#include "app/child.h"
#include "app/exact.h"
#include "app/qemu.h"
#include "app/qemu_options.h"
#include "app/quality.h"
#include "app/record.h"
#include "app/signals.h"
#include "app/summary.h"
#include "app/symbols.h"
#include "app/term.h"
#include "backend/method.h"
#include "backend/shared.h"

#define FIRMWARE_S 600.0 /* before the image's first instruction */
/* A kernel on a disk is at its load address first, and moves itself (Nanos) within this time. */
#define SETTLE_NS (500 * UNI_NSEC_PER_MSEC)
#define ENDING_NS (5 * UNI_NSEC_PER_SEC) /* of a QEMU whose stub is gone */

/* A try to boot it: choices that the user left open, and the result. */
struct attempt {
	struct uni_run_options *o;
	struct uni_qemu_args args;
	struct uni_qemu q;
	struct uni_boot boot;
	bool booted;	      /* boot has the result */
	bool qemu_left;	      /* QEMU could not even begin */
	bool gone;	      /* its vCPUs have ended: QEMU does, too */
	struct uni_err first; /* not told yet: why it was tried once more */
	bool without_kvm;     /* as KVM could not run it, for this reason: */
	struct uni_err in_kvm;
	const struct uni_bootable *image;
	struct uni_image *names; /* owned; NULL: not read yet */
	struct outcome *seen; /* by the process that records without rights; NULL: there is none */
};

/* All that this process has to know. It may be anything. */
struct outcome {
	struct uni_child_fate fate; /* this one is told */
	enum uni_boot_end end;
	unsigned nr_astray;
	bool ran, watched;
};

/* Only the host's kernel, which samples guests of KVM, serves these options. */
static bool needs_kernel(const struct uni_record_args *rec)
{
	enum uni_asked asked = UNI_ASKED_AUTO;

	(void)uni_asked_parse(rec->method, &asked);
	return rec->exits != NULL || rec->aggregate || rec->no_pause || asked == UNI_ASKED_KERNEL;
}

static bool may_try_tcg(const struct attempt *a)
{
	return strcmp(a->o->accel, "auto") == 0 && a->q.accel != NULL &&
	       strcmp(a->q.accel, "kvm") == 0 && !needs_kernel(&a->o->rec) &&
	       a->boot.nr_astray == 0;
}

static bool has_ended(void *ctx)
{
	struct attempt *a = ctx;

	return uni_boot_ended(&a->boot);
}

static bool is_over(void *ctx)
{
	struct attempt *a = ctx;

	return uni_boot_over(&a->boot);
}

static bool has_ended_meanwhile(void *ctx, bool settled)
{
	struct attempt *a = ctx;

	a->boot.unsettled = !settled;
	return uni_boot_ended(&a->boot);
}

static bool is_awake(void *ctx)
{
	struct attempt *a = ctx;

	return uni_boot_awake(&a->boot);
}

static void on_gone(void *ctx)
{
	struct attempt *a = ctx;

	a->gone = true;
}

/* A QEMU that ends closes its stub before its monitor, and a vCPU ends before its process does. */
static bool has_ended_by_now(struct attempt *a, int rc)
{
	const struct timespec nap = uni_ns_timespec(10 * UNI_NSEC_PER_MSEC);
	uint64_t until_ns = uni_now_ns() + ENDING_NS;

	while (!uni_boot_ended(&a->boot)) {
		if ((rc != -UNI_EGONE && !a->gone) || uni_now_ns() >= until_ns)
			return false;
		(void)nanosleep(&nap, NULL);
	}
	return true;
}

/* If the guest died, keeps the recording if any of it is the image's. Exceptions: all of it is the
 * halt that ended it; or KVM is to blame, and there is another way. */
static int judge_attempt(void *ctx, const struct uni_record_stats *st, struct uni_err *err)
{
	struct attempt *a = ctx;
	const struct uni_sample_filter on_cpu = { .on_cpu = true };
	char line[512];
	bool only_halted;

	if (!has_ended_by_now(a, 0))
		return 0;
	uni_boot_tell(&a->boot, line, sizeof(line));
	if (a->boot.end == UNI_BOOT_INTERNAL && may_try_tcg(a))
		return uni_err_set(err, UNI_EGONE, "%s", line);
	/* Some show a thread on its way back into the halt, after a pause. */
	only_halted = a->boot.end == UNI_BOOT_HALTED &&
		      uni_quality_count(st, &on_cpu) <= a->o->vcpus + st->weight / 20;
	if (a->o->rec.frequency == 0 && st->exits != 0)
		return 0;
	if (!only_halted && (st->inside != 0 || (st->outside == 0 && st->weight != 0)))
		return 0;
	return uni_err_set(err, UNI_EGONE, "%s, before it could be recorded", line);
}

/* The guest runs, and nothing of its image was read by this process. */
static int give_up_rights(
	const struct attempt *a, const struct uni_attach_args *args, struct uni_err *err)
{
	_cleanup_free_ struct uni_spec *spec = calloc(1, sizeof(*spec));
	int rc = spec != NULL ? uni_spec_parse(a->q.target, spec, err) : uni_err_nomem(err);

	uni_confine_output(a->o->rec.output);
	uni_confine_output(a->o->rec.save_replay);
	return rc == 0 ? uni_guest_give_up_rights(spec, args, err) : rc;
}

static int record_with(struct attempt *a, struct uni_target_shared *shared, struct uni_err *err)
{
	struct uni_attach_args args = uni_run_attach_args(a->o, a->args.image);
	struct uni_guest g, *const one[] = { &g };
	int rc;

	args.target = a->q.target;
	args.shared = shared;
	args.stopped = a->o->rec.save_replay != NULL || a->o->rec.watch.items.nr != 0;
	args.settle_ns = a->o->disk != NULL ? SETTLE_NS : 0;
	args.ended = has_ended;
	args.over = is_over;
	args.ended_ctx = a;
	rc = a->seen != NULL ? give_up_rights(a, &args, err) : 0;
	if (rc == 0)
		rc = uni_guest_open(&g, &args, err);
	/* A guest that is stopped forever looks as if it ran there all the time. */
	if (rc == 0 && has_ended(a)) {
		uni_guest_close(&g);
		return -UNI_EGONE;
	}
	if (rc == 0) {
		a->boot.image = g.image;
		rc = uni_record_guests(one, 1, &a->o->rec, NULL, err);
		a->boot.image = NULL;
		uni_guest_close(&g);
	}
	return rc;
}

static int record_it(struct attempt *a, struct uni_err *err)
{
	struct uni_target_shared *shared = uni_target_shared_create();
	int rc = shared != NULL ? record_with(a, shared, err) : uni_err_nomem(err);

	uni_target_shared_destroy(shared);
	return rc;
}

/* It did not end by its own will. */
static bool has_died(const struct uni_boot *b)
{
	return b->end == UNI_BOOT_INTERNAL || b->end == UNI_BOOT_PANIC ||
	       b->end == UNI_BOOT_RESET || b->end == UNI_BOOT_ASTRAY ||
	       (b->end == UNI_BOOT_EXITED && WIFSIGNALED(b->status));
}

/* The end of a guest that died says more than errors noticed meanwhile. */
static int tell_end(struct attempt *a, int rc, struct uni_err *err)
{
	char line[512];

	if (!has_ended_by_now(a, rc))
		return rc;
	uni_boot_tell(&a->boot, line, sizeof(line));
	if (rc == 0 && !has_died(&a->boot)) {
		if (!a->o->rec.quiet)
			uni_note("%s" UNI_SUMMARY_KEPT, line);
		return 0;
	}
	*err = (struct uni_err){ 0 };
	/* The recording so far is replaced. */
	if (a->boot.end == UNI_BOOT_INTERNAL && may_try_tcg(a))
		return uni_err_set(err, UNI_EGONE, "%s", line);
	return uni_err_set(err, UNI_EGONE, "%s%s", line,
		rc == 0 ? UNI_SUMMARY_KEPT : ", before it could be recorded");
}

/* For the name of the function in which it ended. */
static void read_image(struct uni_boot *b)
{
	struct attempt *a = (struct attempt *)((char *)b - offsetof(struct attempt, boot));
	struct uni_err ignored = { 0 };

	if (a->names == NULL && (a->seen == NULL || uni_privilege_is_dropped() ||
					uni_privilege_drop(&ignored) == 0))
		(void)uni_image_load(a->args.image, &a->names, &ignored);
	b->image = a->names;
}

static int boot_and_record(void *ctx, struct uni_err *err)
{
	struct attempt *a = ctx;
	int rc = 0;

	if (a->seen != NULL) {
		a->q.fate = &a->seen->fate;
		rc = uni_privilege_limit(err);
	}
	if (rc == 0)
		rc = uni_boot_begin(&a->boot, err);
	if (rc == 0)
		rc = uni_boot_wait(&a->boot,
			(uint64_t)((a->o->wait != 0 ? a->o->wait : FIRMWARE_S) * 1e9), err);
	if (rc == 0)
		rc = tell_end(a, record_it(a, err), err);
	if (a->seen != NULL) {
		a->seen->end = a->boot.end;
		a->seen->nr_astray = a->boot.nr_astray;
		a->seen->ran = a->boot.ran;
		a->seen->watched = a->boot.watched;
	}
	return rc;
}

static void look_after_qemu(void *ctx)
{
	struct attempt *a = ctx;

	uni_child_tell(&a->q.pid, &a->seen->fate);
}

/* With rights to lose, a process of its own boots and records. This one can still try again. */
static int record_apart(struct attempt *a, struct uni_err *err)
{
	int rc;

	if (!uni_privilege_has())
		return boot_and_record(a, err);
	a->seen = uni_apart_share(sizeof(*a->seen));
	if (a->seen == NULL)
		return uni_err_nomem(err);
	rc = uni_apart_run(&(struct uni_apart){ .work = boot_and_record,
				   .idle = look_after_qemu,
				   .ctx = a,
				   .what = "record the guest" },
		err);
	a->boot.end = a->seen->end;
	a->boot.nr_astray = a->seen->nr_astray;
	a->boot.ran = a->seen->ran;
	a->boot.watched = a->seen->watched;
	uni_apart_unshare(a->seen, sizeof(*a->seen));
	a->seen = NULL;
	return rc;
}

static int try_once(struct attempt *a, struct uni_err *err)
{
	const char *slash = strrchr(a->args.image, '/');
	int rc = uni_qemu_start(&a->args, &a->q, err);

	a->booted = rc == 0;
	a->gone = false;
	a->qemu_left = rc == -UNI_EIO;
	if (rc != 0)
		return rc;
	a->boot = (struct uni_boot){ .q = &a->q,
		.read_image = read_image,
		.segment = a->image->segment,
		.nr_segments = a->image->nr_segments,
		.name = slash != NULL ? slash + 1 : a->args.image,
		.console = a->args.console,
		.quiet = a->o->rec.quiet };
	if (!a->o->rec.quiet)
		uni_note("booted %s under QEMU with %s (%s) on %s, console in %s",
			a->o->disk != NULL ? a->o->disk : a->args.image, a->q.accel, a->q.accel_why,
			a->q.machine, a->args.console);
	return record_apart(a, err);
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
	bool misspelt = a->qemu_left && uni_child_has_said(a->args.console, "invalid option");

	if (may_try_tcg(a) && (accel_failed || (died && b->end == UNI_BOOT_INTERNAL))) {
		uni_note("%s; trying once more without KVM (TCG)", err->msg);
		a->without_kvm = true;
		a->in_kvm = *err;
		a->args.accel = "tcg";
		a->args.accel_why = "KVM cannot run this guest";
	} else if (a->without_kvm && !a->booted) {
		return false; /* this QEMU has no TCG, on any machine */
	} else if (a->args.machine != NULL && a->o->machine == NULL && !accel_failed && !misspelt &&
		   (a->booted ? uni_boot_never_ran(b) : a->qemu_left)) {
		if (!a->o->rec.quiet)
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
static void take_machine(struct uni_run_options *o, char *const *extra)
{
	static char type[32];

	for (; extra != NULL && extra[0] != NULL && extra[1] != NULL; extra++) {
		size_t len = strcspn(extra[1], ",=");

		if ((!uni_qemu_is_option(extra[0], "machine") &&
			    !uni_qemu_is_option(extra[0], "M")) ||
			extra[1][len] == '=' || len == 0 || len >= sizeof(type))
			continue;
		(void)snprintf(type, sizeof(type), "%.*s", (int)len, extra[1]);
		o->machine = type;
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

static int boot_until_recorded(struct attempt *a, struct uni_err *err)
{
	struct uni_signals signals;
	int rc;

	a->o->rec.ended = has_ended_meanwhile;
	a->o->rec.awake = is_awake;
	a->o->rec.judge = judge_attempt;
	a->o->rec.gone = on_gone;
	a->o->rec.ctx = a;
	uni_signals_begin(&signals);
	do {
		rc = try_once(a, err);
		uni_qemu_stop(&a->q);
	} while (rc != 0 && uni_signals_go_on() && choose_next(a, err));
	uni_signals_end(&signals);
	if (rc != 0 && a->first.code != 0 && (!a->qemu_left || strcmp(a->first.msg, err->msg) != 0))
		uni_note("%s; it was tried once more on q35", a->first.msg);
	return rc != 0 && a->without_kvm && !a->booted ? tell_no_tcg(a, err) : rc;
}

/* `--exact` looks at no process. */
static int boot_with(struct attempt *a, char **extra, struct uni_err *err)
{
	struct uni_run_options *o = a->o;
	int rc;

	if (o->exact != NULL)
		return uni_exact_run(&(struct uni_exact_args){ .qemu = a->args,
					     .symbols = o->symbols,
					     .mode = o->mode,
					     .filter = o->filter.items.v,
					     .nr_filter = o->filter.items.nr,
					     .depth = o->depth,
					     .begin_at = o->begin_at,
					     .end_at = o->end_at,
					     .repeatable = o->repeatable,
					     .inputs = o->inputs,
					     .rec = &o->rec },
			err);
	rc = uni_process_numbers_check(err);
	if (rc != 0)
		return rc;
	take_machine(o, extra);
	a->args.machine = o->machine;
	if (o->machine == NULL && o->disk == NULL && uni_qemu_fits_microvm(a->image, extra))
		a->args.machine = "microvm";
	return boot_until_recorded(a, err);
}

int uni_run_qemu(struct uni_run_options *o, const char *path, const struct uni_bootable *image,
	char **extra, struct uni_err *err)
{
	_cleanup_free_ char *output = NULL, *console = NULL;
	int rc = uni_run_name_outputs(o, o->disk != NULL ? o->disk : path, &output, &console, err);
	struct attempt a = { .o = o,
		.image = image,
		.args = { .image = path,
			.disk = o->disk,
			.accel = o->accel,
			.machine = o->machine,
			.cpu = o->cpu,
			.append = o->append,
			.console = console,
			.program = o->qemu,
			.mem_bytes = o->mem,
			.vcpus = o->vcpus,
			.extra = extra } };

	if (rc != 0)
		return rc;
	if (o->symbols == NULL && uni_symbols_kind_of(path) != UNI_SYMBOLS_ELF)
		return uni_err_set(err, UNI_EFORMAT,
			"%s is no ELF image, so its functions have no names: give the ELF file "
			"that it was made of with -e",
			path);
	if (uni_qemu_wants_paused(extra))
		return uni_err_set(err, UNI_EUSAGE,
			"-S starts the guest paused, and there would be nothing to record: start "
			"QEMU yourself, and take `uniscope record`");
	if (uni_qemu_names_accel(extra))
		return uni_err_set(err, UNI_EUSAGE,
			"how QEMU runs the guest is uniscope's own option: give --accel kvm or "
			"--accel tcg instead, before --");
	rc = o->disk == NULL ? uni_qemu_check_memory(image, path, o->mem, extra, err) : 0;
	rc = rc == 0 ? boot_with(&a, extra, err) : rc;
	uni_image_destroy(a.names);
	return rc;
}
