/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/confine.h"
#include "base/io.h"
#include "base/privilege.h"
#include "app/cmd.h"
#include "app/exact.h"
#include "app/follow.h"
#include "app/guests.h"
#include "app/images.h"
#include "app/record.h"
#include "app/resolve.h"
#include "app/term.h"
#include "app/workload.h"

#define AGAIN_NS (200 * UNI_NSEC_PER_MSEC)

static struct {
	struct uni_record_args rec;
	struct uni_opt_list images; /* -e: what the guest runs, then programs that it loads */
	const char *qmp;
	double wait;
	bool all, follow;
	struct uni_workload workload;
} o;

static const struct uni_opt *list_record_options(void)
{
	static const struct uni_opt table[] = {
		UNI_IMAGE_OPTION(o.images, UNI_IMAGE_RUNNING),
		{ 'a', "all", UNI_OPT_FLAG, &o.all, NULL,
			"every guest on this host that can be attached, in one session", NULL,
			NULL },
		{ 0, "follow", UNI_OPT_FLAG, &o.follow, NULL,
			"when the VMM ends, go on with the next VMM that has a "
			"guest of this name. The cause may be a restart, a "
			"restored snapshot, or an upgrade of the VMM. The gap is "
			"marked",
			NULL, NULL },
		UNI_RECORD_OPTIONS(o.rec),
		{ 0, "wait", UNI_OPT_DOUBLE, &o.wait, "SECONDS",
			"keep trying for this time while the guest still boots "
			"(default 0)",
			NULL, NULL },
		{ 0, "qmp", UNI_OPT_STR, &o.qmp, "PATH",
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },
		UNI_OPT_END,
	};

	o = (__typeof__(o)){ .rec = UNI_RECORD_DEFAULTS };
	return table;
}

/* A copy of memory or a thread's number belongs to one process and means nothing in the next. */
static int check_follow(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const char *name = ctx->nr_operands == 1 ? ctx->operands[0] : "";

	if (o.all || name[0] == '\0' || strchr(name, ':') != NULL ||
		name[strspn(name, "0123456789")] == '\0')
		return uni_err_set(err, UNI_EUSAGE,
			"--follow needs one guest's name (`uniscope ls`), "
			"because a pid or a target names one process");
	if (o.rec.watch.items.nr != 0 || o.rec.save_replay != NULL || o.rec.threads)
		return uni_err_set(err, UNI_EUSAGE,
			"--follow cannot be combined with --watch, --save-replay "
			"or --threads");
	return 0;
}

/* A command ends the recording, unless -d does so before. */
static int choose_command(char *const *rest, struct uni_err *err)
{
	if (rest == NULL)
		return 0;
	if (rest[0] == NULL)
		return uni_err_set(
			err, UNI_EUSAGE, "give the command to run behind --, or leave it out");
	if (o.follow)
		return uni_err_set(err, UNI_EUSAGE,
			"--follow cannot be combined with a command: what it asked of a guest "
			"that is gone is not known");
	o.rec.workload = &o.workload;
	if (!o.rec.duration_given)
		o.rec.duration = 0;
	return 0;
}

static int check_record_operands(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	int rc = 0;

	if (o.all ? ctx->nr_operands != 0 : ctx->nr_operands == 0)
		return uni_err_set(err, UNI_EUSAGE,
			"usage: uniscope record [OPTIONS] TARGET... (or --all, without one)");
	if (o.rec.save_replay != NULL && (o.all || ctx->nr_operands > 1))
		return uni_err_set(err, UNI_EUSAGE, "--save-replay is for one guest");
	if (o.follow)
		rc = check_follow(ctx, err);
	if (rc == 0)
		rc = choose_command(ctx->rest, err);
	if (rc != 0)
		return rc;
	if (o.wait < 0 || o.wait > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--wait must be between 0 and 10000000 s");
	return uni_record_check_args(&o.rec, err);
}

/* Did the VMM end while we attached? Not every target has its process' number. */
static bool vmm_ended(const struct uni_guests *all, int seen)
{
	int pid = all->last_pid > 0 ? all->last_pid : seen;

	return pid > 0 && uni_process_is_ending(pid);
}

/*
 * With --follow, a VMM that ends while we attach to its guest is followed by the next one, too. As
 * for later ones, whatever hinders us may pass.
 */
static int open_guests(
	struct uni_guests *all, const struct uni_guests_args *args, struct uni_err *err)
{
	const struct timespec nap = uni_ns_timespec(AGAIN_NS);
	uint64_t begin_ns = uni_now_ns(), length_ns = (uint64_t)(o.rec.duration * 1e9);
	struct uni_hindrance hindrance = { 0 };
	int seen = o.follow ? uni_guest_pid(args->targets[0]) : 0;
	int rc = uni_guests_open(all, args, err);

	if (rc == 0 || !o.follow || !vmm_ended(all, seen))
		return rc;
	if (!o.rec.quiet)
		uni_note("the VMM of %s, pid %d, has ended: waiting for its next one",
			args->targets[0], all->last_pid > 0 ? all->last_pid : seen);
	while (rc != 0 && (length_ns == 0 || uni_now_ns() - begin_ns < length_ns)) {
		if (!o.rec.quiet)
			uni_hindrance_tell(&hindrance, args->targets[0], rc, err);
		(void)nanosleep(&nap, NULL);
		uni_guests_close(all);
		*all = (struct uni_guests){ 0 };
		*err = (struct uni_err){ 0 };
		rc = uni_guests_open(all, args, err);
	}
	return rc;
}

/* Exact counts take the place of samples, unless samples or more than they have are asked for. */
static bool may_be_exact(const struct uni_cmd_ctx *ctx)
{
	return ctx->nr_operands == 1 && !o.all && !o.follow && o.rec.method == NULL &&
	       !o.rec.frequency_given && o.rec.workload == NULL && o.rec.exits == NULL &&
	       !o.rec.threads && !o.rec.no_pause && o.rec.watch.items.nr == 0 &&
	       o.rec.save_replay == NULL && !o.rec.aggregate;
}

static int run_record(const struct uni_cmd_ctx *ctx, struct uni_err *err)
{
	const struct uni_guests_args args = { .targets = ctx->operands,
		.nr = ctx->nr_operands,
		.all = o.all,
		.attach = { .image = uni_images_first(&o.images),
			.qmp = o.qmp,
			.method = o.rec.method,
			.no_pause = o.rec.no_pause,
			.exits = o.rec.exits != NULL,
			.threads = o.rec.threads,
			.search = uni_search_of(&o.rec.debug_dirs),
			.sysroot = &o.rec.sysroot,
			.inside_ok = true,
			.may_give_up = !o.follow,
			.stopped = o.rec.save_replay != NULL || o.rec.watch.items.nr != 0,
			.wait_ns = (uint64_t)(o.wait * 1e9),
			.no_image_ok = o.all,
			.accept_image = o.rec.accept_image,
			.unwind = o.rec.unwind } };
	struct uni_guests all = { 0 };
	struct uni_attach_args again;
	int rc = check_record_operands(ctx, err), pid = 0;
	char counts[4096];

	if (rc == 0 && may_be_exact(ctx))
		pid = uni_exact_find(ctx->operands[0], counts, sizeof(counts));
	if (pid != 0)
		return uni_exit_of(uni_exact_record(
			pid, counts, uni_images_first(&o.images), ctx->operands[0], &o.rec, err));
	/* Its default name is below the current folder. */
	uni_confine_output(o.rec.output != NULL ? o.rec.output : "session");
	uni_confine_output(o.rec.save_replay);
	if (rc == 0)
		rc = uni_images_others(&o.images, &o.rec.sysroot, err);
	if (rc == 0)
		rc = uni_workload_prepare(&o.workload, ctx->rest, err);
	if (rc == 0)
		rc = uni_privilege_limit(err);
	if (rc == 0)
		rc = open_guests(&all, &args, err);
	again = args.attach;
	again.target = ctx->nr_operands != 0 ? ctx->operands[0] : NULL;
	again.wait_ns = 0;
	again.shared = NULL;
	o.rec.follow = o.follow ? &again : NULL;
	if (rc == 0)
		rc = uni_record_guests(all.open.v, all.open.nr, &o.rec, NULL, err);
	uni_guests_close(&all);
	(void)uni_workload_finish(&o.workload, NULL); /* if nothing was recorded */
	/* A named target that cannot be recorded is a failure; --all names none. */
	if (rc == 0 && all.nr_failed != 0 && !o.all)
		return UNI_EXIT_FAILED;
	return uni_exit_of(rc);
}

const struct uni_cmd uni_cmd_record = {
	.name = "record",
	.operands = "TARGET... [-- COMMAND...]",
	.summary = "sample the call chains of a running guest into a session",
	.details = "Attaches to the guest, takes the call chain of each vCPU at regular "
		   "times, and writes a\n"
		   "session folder. The guest runs on, whatever happens to uniscope. The "
		   "recording ends at\n"
		   "Ctrl-C, or with the guest. Several guests are recorded at once into one "
		   "session, each\n"
		   "separately. A message names a guest that cannot be attached, and the "
		   "others go on.\n"
		   "With COMMAND, for example a load generator, the recording begins before it and "
		   "ends with it.\n"
		   "`uniscope diff` then compares the time of the whole command.\n"
		   "A QEMU with the option of `uniscope plugin --print` gives its exact counts in "
		   "place of samples.",
	.examples = "  uniscope record kvm:pid=4121 -d 30\n"
		    "  uniscope record gdb:unix=/run/q.sock -e app.elf -F 499\n"
		    "  uniscope record web1 -o web1.uniscope\n"
		    "  uniscope record web1 --follow -d 0\n"
		    "  uniscope record web1 --exits -F 0 -d 5\n"
		    "  uniscope record web1 -o old-1.uniscope -- ab -n 10000 http://10.0.0.2/\n"
		    "  uniscope record --all -F 99 -d 60",
	.min_operands = 0,
	.max_operands = SIZE_MAX,
	.starts_others = true,
	.takes_rest = true,
	.options = list_record_options,
	.run = run_record,
};
