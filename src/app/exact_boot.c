/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts a guest that we boot. With rights to lose, it takes several processes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/apart.h"
#include "app/boot.h"
#include "app/exact_priv.h"
#include "app/signals.h"
#include "app/term.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/privilege.h"

/* While QEMU is ended: looks at it, and of the process that ends it. */
#define STOP_NS (1 * UNI_NSEC_PER_MSEC)
#define IDLE_NS (10 * UNI_NSEC_PER_MSEC)

/* The plugin needs a table of functions, and addresses. */
static int prepare_images(struct uni_exact_run *run, struct uni_err *err)
{
	int rc = uni_exact_load_images(run, err);

	if (rc == 0)
		rc = uni_exact_table_of(run, err);
	return rc == 0 ? uni_exact_places(run->args, run->image, &run->at, err) : rc;
}

/* Waits until the guest ends, the time is over, or the user stops it. */
static int wait_for(struct uni_exact_run *run, struct uni_boot *boot, struct uni_err *err)
{
	const double seconds = run->args->rec->duration;
	uint64_t took = 0, nap_ns;
	int rc = 0;

	run->begin_ns = uni_now_ns();
	while (rc == 0 && !uni_boot_ended(boot)) {
		struct timespec nap;

		took = uni_now_ns() - run->begin_ns;
		run->by_you = atomic_load(uni_signals_stop());
		run->over = run->by_you || (seconds > 0 && (double)took >= seconds * 1e9);
		if (run->over)
			break;
		if (!run->args->rec->quiet)
			uni_progress("counting for %.1f s (until the guest ends; Ctrl-C ends it)",
				(double)took / 1e9);
		rc = uni_exact_take_calls(run, &nap_ns, err);
		nap = uni_ns_timespec(nap_ns);
		(void)nanosleep(&nap, NULL);
	}
	if (!run->args->rec->quiet)
		uni_progress_end();
	run->took_s = (double)took / 1e9;
	if (run->over)
		(void)snprintf(run->end, sizeof(run->end), "ended");
	else
		uni_boot_tell(boot, run->end, sizeof(run->end));
	return rc;
}

static int start_qemu(struct uni_exact_run *run, struct uni_err *err)
{
	struct uni_qemu_args args = run->args->qemu;
	_cleanup_free_ char *option =
		uni_exact_option(run->args, &run->at, run->counts, run->table, err);
	_cleanup_free_ char *icount =
		option != NULL && run->args->repeatable ? uni_exact_icount(run->args, err) : NULL;
	_cleanup_free_ char **more = uni_exact_repeatable(args.extra, icount);
	int rc;

	if (option == NULL || (icount == NULL && run->args->repeatable))
		return err->code != 0 ? -(int)err->code : -UNI_ENOMEM;
	if (more == NULL)
		return uni_err_nomem(err);
	if (run->args->repeatable) {
		args.disk_replays = run->args->inputs != NULL;
		uni_exact_note_inputs(&args);
		args.extra = more;
	}
	args.plugin = option;
	/* Threads would add to one number at once; newer versions of QEMU have one for each. */
	args.accel = run->args->mode == UNI_EXACT_COUNTS ? "tcg,thread=single" : "tcg";
	rc = uni_qemu_start(&args, &run->q, err);
	if (rc != 0)
		return rc;
	if (!run->args->rec->quiet)
		uni_note("booted %s under QEMU with tcg on %s, console in %s",
			args.disk != NULL ? args.disk : args.image, run->q.machine, args.console);
	return uni_privilege_limit(err); /* it runs */
}

/* Its counts are complete afterwards. */
static void stop_qemu(struct uni_exact_run *run)
{
	const struct timespec nap = uni_ns_timespec(STOP_NS);

	if (run->shared == NULL) {
		uni_qemu_stop(&run->q);
		return;
	}
	atomic_store(&run->shared->stop, true);
	while (!atomic_load(&run->shared->stopped) && getppid() == run->parent)
		(void)nanosleep(&nap, NULL);
}

static int run_counted(struct uni_exact_run *run, struct uni_err *err)
{
	const struct uni_qemu_args *args = &run->args->qemu;
	const char *slash = strrchr(args->image, '/');
	struct uni_boot b = { .q = &run->q,
		.image = run->image,
		.segment = uni_image_segment(run->image, 0),
		.nr_segments = uni_image_nr_segments(run->image),
		.name = slash != NULL ? slash + 1 : args->image,
		.console = args->console,
		.quiet = run->args->rec->quiet };
	int rc = 0;

	if (run->args->mode == UNI_EXACT_TRACE)
		rc = uni_exact_begin_session(run, (uint32_t)args->vcpus, err);
	if (rc == 0)
		rc = uni_boot_begin(&b, err);
	if (rc == 0)
		rc = wait_for(run, &b, err);
	run->end_ns = uni_now_ns();
	stop_qemu(run);
	return rc;
}

/* Gets QEMU's counts after it has ended. */
static int count_instructions(
	struct uni_exact_run *run, struct uni_exact **ret, struct uni_err *err)
{
	int rc = run_counted(run, err), rc2;

	/* The guest may reach the end address before the first look at QEMU. */
	if (rc != 0 && (rc != -UNI_EGONE || run->args->end_at == NULL))
		return rc;
	rc2 = uni_exact_take(run->counts, ret, rc == 0 ? err : NULL);
	if (rc2 == 0 && uni_exact_state(*ret) == UNI_EXACT_REACHED)
		(void)snprintf(run->end, sizeof(run->end), "reached %s", run->args->end_at);
	else if (rc != 0)
		return rc;
	return rc2;
}

static int count_and_finish(struct uni_exact_run *run, struct uni_err *err)
{
	struct uni_exact *e = NULL;
	int rc = count_instructions(run, &e, err);

	if (rc == 0)
		rc = uni_exact_finish(run, e, err);
	return uni_exact_release(run, e, rc, err);
}

static int prepare_bare(void *ctx, struct uni_err *err)
{
	struct uni_exact_run *run = ctx;
	int rc = uni_privilege_drop(err);

	if (rc == 0)
		rc = prepare_images(run, err);
	run->shared->at = run->at;
	return rc;
}

static int count_bare(void *ctx, struct uni_err *err)
{
	struct uni_exact_run *run = ctx;
	int rc = uni_privilege_drop(err);

	run->q.fate = &run->shared->fate;
	if (rc == 0)
		rc = uni_exact_load_images(run, err);
	return rc == 0 ? count_and_finish(run, err) : rc;
}

static void look_after_qemu(void *ctx)
{
	struct uni_exact_run *run = ctx;

	uni_child_tell(&run->q.pid, &run->shared->fate);
	if (!atomic_load(&run->shared->stop) || atomic_load(&run->shared->stopped))
		return;
	uni_qemu_stop(&run->q);
	atomic_store(&run->shared->stopped, true);
}

static int count_guest(struct uni_exact_run *run, struct uni_err *err)
{
	struct uni_signals signals;
	int rc;

	uni_signals_begin(&signals);
	rc = start_qemu(run, err);
	if (rc == 0 && run->shared == NULL)
		rc = count_and_finish(run, err);
	else if (rc == 0)
		rc = uni_apart_run(&(struct uni_apart){ .work = count_bare,
					   .idle = look_after_qemu,
					   .nap_ns = IDLE_NS,
					   .ctx = run,
					   .what = "count" },
			err);
	uni_qemu_stop(&run->q);
	uni_signals_end(&signals);
	return rc;
}

/* With rights to lose, images and counts are read by processes without. This one has those to start
 * QEMU, and to end it. */
static int run_apart(struct uni_exact_run *run, struct uni_err *err)
{
	int rc;

	run->parent = getpid();
	run->shared = uni_apart_share(sizeof(*run->shared));
	if (run->shared == NULL)
		return uni_err_nomem(err);
	uni_confine_output(run->args->rec->output);
	uni_confine_output(run->table);
	rc = uni_apart_run(
		&(struct uni_apart){ .work = prepare_bare, .ctx = run, .what = "read the image" },
		err);
	run->at = run->shared->at;
	if (rc == 0)
		rc = count_guest(run, err);
	uni_apart_unshare(run->shared, sizeof(*run->shared));
	return rc;
}

static int run_here(struct uni_exact_run *run, struct uni_err *err)
{
	int rc = prepare_images(run, err);

	if (rc == 0)
		return count_guest(run, err);
	return uni_exact_release(run, NULL, rc, err);
}

int uni_exact_run(const struct uni_exact_args *args, struct uni_err *err)
{
	struct uni_exact_run run = { .args = args };
	int rc = uni_scratch_make(&run.scratch, err);

	if (rc != 0)
		return rc;
	(void)snprintf(run.table, sizeof(run.table), "%s/functions", run.scratch.path);
	(void)snprintf(run.counts, sizeof(run.counts), "%s/exact", run.scratch.path);
	rc = uni_privilege_has() ? run_apart(&run, err) : run_here(&run, err);
	uni_scratch_remove(&run.scratch);
	return rc;
}
