/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/record.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/follow.h"
#include "app/inside.h"
#include "app/quality.h"
#include "app/signals.h"
#include "app/summary.h"
#include "app/term.h"
#include "app/threads.h"
#include "app/watches.h"
#include "app/workload.h"
#include "sampling/sampler.h"
#include "recording/folder.h"
#include "backend/replay/writer.h"

#define PROGRESS_NS (150 * UNI_NSEC_PER_MSEC)
#define HALTED_NS   (500 * UNI_NSEC_PER_MSEC) /* more than a moment */
#define SETTLE_NS   (3 * UNI_NSEC_PER_SEC)    /* a vCPU gets a CPU of the host by then */

/* One guest of the run; its callbacks get this, each from the thread that samples it. */
struct part {
	struct run *run;
	struct uni_guest *g;
	uint32_t number;	       /* in the session */
	char name[UNI_GUEST_NAME_MAX]; /* "" when it is the only one */
	struct uni_watches watches;
	struct uni_model *model;     /* of its threads; NULL: none */
	struct uni_lookout *lookout; /* for images that it loads later; NULL: none */
	struct uni_record_meta meta;
	struct uni_standing standing;
	bool left; /* another VMM has it now */
	atomic_uint_least64_t samples, missed;
};

struct run {
	const struct uni_record_args *args;
	struct uni_recorder *rec;
	pthread_rwlock_t gate; /* read: a guest is held; written: the process may be stopped */
	atomic_uint_least64_t next_progress_ns;
	struct uni_follow *follow;     /* NULL: without --follow */
	uint64_t before_ns, before_nr; /* of the run's parts so far: how long, how many samples */
	size_t nr;
	struct uni_sampler_job *job; /* nr, as the parts */
	struct part *part;
};

static void on_thread(void *ctx, const struct uni_record_thread *t)
{
	struct part *part = ctx;

	(void)uni_recorder_thread(part->run->rec, part->number, t);
}

static void on_exit_seen(void *ctx, const struct uni_stream_exit *e)
{
	struct part *part = ctx;

	uni_recorder_exit(part->run->rec, e);
}

/* It has a place now, and is the guest's and the session's from now on. */
static void on_image(void *ctx, const struct uni_located *image)
{
	const char *path = uni_image_path(image->image);
	struct part *part = ctx;
	struct uni_err err = { 0 };
	int rc = uni_guest_add_image(part->g, image, &err);

	if (rc == 0)
		rc = uni_recorder_add_more(
			part->run->rec, part->number, image->image, image->bias, &err);
	if (rc != 0)
		uni_note("an image that the guest has loaded is left out: %s", err.msg);
	else if (!part->run->args->quiet)
		uni_note("the guest has loaded %s (bias 0x%" PRIx64 ")", path, image->bias);
}

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct part *part = ctx;

	uni_signals_suspend(&part->run->gate);
	uni_recorder_sample(part->run->rec, s);
	uni_standing_saw(&part->standing, s);
	uni_guest_saw(part->g, s, on_image, part);
}

/* One thread at a time, and none more often than an eye can follow. */
static bool may_show(struct run *run)
{
	uint64_t now_ns = uni_now_ns(), next_ns = atomic_load(&run->next_progress_ns);

	return now_ns >= next_ns && atomic_compare_exchange_strong(
					    &run->next_progress_ns, &next_ns, now_ns + PROGRESS_NS);
}

/* False: the guest has ended, and the run with it. */
static bool look_after(const struct part *part)
{
	const struct uni_record_args *args = part->run->args;

	if (args->ended == NULL || !args->ended(args->ctx, uni_target_settled(part->g->t, 0)))
		return true;
	uni_signals_ask_to_stop();
	return false;
}

static bool is_awake(void *ctx)
{
	const struct part *part = ctx;
	const struct uni_record_args *args = part->run->args;

	return look_after(part) && (args->awake == NULL || args->awake(args->ctx));
}

static bool has_left(void *ctx)
{
	return ((const struct part *)ctx)->left;
}

static void on_begin(void *ctx)
{
	const struct part *part = ctx;

	uni_workload_go(part->run->args->workload);
}

static void note_restores(struct part *part)
{
	uni_follow_restores(part->g, part->name, part->run->args->quiet, &part->meta);
}

static void on_progress(void *ctx, const struct uni_record_stats *st, uint64_t elapsed_ns)
{
	struct part *part = ctx;
	struct run *run = part->run;
	uint64_t samples = run->before_nr, missed = 0;
	char guests[32] = "", length[32] = "";

	uni_signals_suspend(&run->gate);
	atomic_store(&part->samples, st->weight);
	atomic_store(&part->missed, st->skipped + st->lost);
	(void)look_after(part);
	note_restores(part);
	uni_standing_look(&part->standing);
	if (run->follow != NULL && uni_follow_has_moved(run->follow, &part->standing))
		part->left = true;
	if (run->args->quiet || !may_show(run))
		return;
	for (size_t i = 0; i < run->nr; i++) {
		samples += atomic_load(&run->part[i].samples);
		missed += atomic_load(&run->part[i].missed);
	}
	if (run->nr > 1)
		(void)snprintf(guests, sizeof(guests), " of %zu guests", run->nr);
	if (run->args->duration > 0)
		(void)snprintf(length, sizeof(length), " / %.0f", run->args->duration);
	uni_progress("recording %.1f%s s, %" PRIu64 " sample%s%s, %" PRIu64 " skipped or lost%s",
		(double)(run->before_ns + elapsed_ns) / 1e9, length, samples, uni_plural(samples),
		guests, missed, run->args->duration > 0 ? "" : " (Ctrl-C ends it)");
}

/* An error if it is the only guest; with several guests the others are kept. */
static int check_seen(const struct run *run, struct uni_err *err)
{
	for (size_t i = 0; run->args->exits_every != 0 && i < run->nr; i++) {
		const struct uni_guest *g = run->part[i].g;
		const char *why = "they need a kvm: target";

		if (g->info.why[0] != '\0')
			why = g->info.why;
		else if ((uni_method_flags(g->t->ops->stream_method) & UNI_METHOD_KERNEL) != 0)
			why = "it was asked to be stopped for each sample (via=, --method), and "
			      "only the sampler in the host's kernel sees them";

		if (uni_record_sees_exits(g))
			continue;
		if (run->nr == 1)
			return uni_err_set(err, UNI_ENOTSUP, "%s: its VM exits cannot be seen: %s",
				g->spec.text, why);
		uni_note("%s: its VM exits cannot be seen: %s", run->part[i].name, why);
	}
	return 0;
}

/* The session with all its guests, and their names' symbols. */
static int begin_session(struct run *run, const char *path, struct uni_err *err)
{
	int rc =
		uni_recorder_create(path, &run->part[0].meta, run->args->overwrite, &run->rec, err);
	uint32_t number = 0;

	for (size_t i = 0; rc == 0 && i < run->nr; i++) {
		struct part *part = &run->part[i];

		if (i != 0)
			rc = uni_recorder_add_guest(run->rec, &part->meta, &number, err);
		if (rc == 0)
			rc = uni_record_add_symbols(run->rec, number, part->g, err);
		run->job[i].cfg.guest = part->number = number;
	}
	return rc;
}

static void fill_job(struct run *run, size_t i)
{
	const struct uni_record_args *args = run->args;
	struct part *part = &run->part[i];

	part->left = false;
	if (!args->quiet)
		uni_standing_note_dead(part->g);
	part->standing = (struct uni_standing){ .g = part->g,
		.name = part->name,
		.meta = &part->meta,
		.quiet = args->quiet || args->awake != NULL,
		.awake = args->awake,
		.ctx = args->ctx };
	run->job[i].t = part->g->t;
	run->job[i].cfg = (struct uni_sampler_cfg){ .frequency = args->frequency,
		.duration_ns = (uint64_t)(args->duration * 1e9),
		.jitter = !args->no_jitter,
		.counts = args->aggregate,
		.exits_every = part->meta.exits_every,
		.on_exit = on_exit_seen,
		.model = part->model,
		.threads = args->threads && part->model != NULL,
		.on_thread = on_thread,
		.lookout = part->lookout,
		.unwinder = &part->g->unwinder,
		.watch = part->watches.watch,
		.nr_watch = part->watches.nr,
		.stop = uni_signals_stop(),
		.gate = &run->gate,
		.on_sample = on_sample,
		.on_begin = on_begin,
		.on_progress = on_progress,
		.awake = args->ended != NULL ? is_awake : NULL,
		.left = has_left,
		.ctx = part };
	uni_pace_apply(&args->pace, &run->job[i].cfg);
}

/* A run is good if one guest was recorded; problems of others are reported. */
static int result_of(const struct run *run, struct uni_err *err)
{
	size_t nr_good = 0;

	for (size_t i = 0; i < run->nr; i++)
		nr_good += run->job[i].rc == 0;
	for (size_t i = 0; i < run->nr; i++) {
		const struct uni_sampler_job *job = &run->job[i];

		if (job->rc == 0)
			continue;
		if (nr_good == 0)
			return uni_err_set(err, (enum uni_errcode) - job->rc, "%s", job->err.msg);
		uni_note("%s: %s", run->part[i].name, job->err.msg);
	}
	return 0;
}

static int end_session(struct run *run, struct uni_err *err)
{
	struct uni_guest_result result[UNI_GUEST_MAX];

	for (size_t i = 0; i < run->nr; i++)
		result[i] = (struct uni_guest_result){ .stats = &run->job[i].stats,
			.watch = run->part[i].watches.watch,
			.nr_watch = run->part[i].watches.nr,
			.failed = run->job[i].rc != 0 ? run->job[i].err.msg : NULL,
			.gap = run->part[i].meta.gap,
			.nr_gap = run->part[i].meta.nr_gap,
			.work = run->args->workload != NULL ? &run->args->workload->work : NULL };
	return uni_recorder_close(run->rec, result, run->nr, err);
}

static bool has_samples(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->nr; i++)
		sum += run->job[i].stats.samples + run->job[i].stats.exits;
	return sum != 0;
}

/* For `run`, QEMU's monitor knows more. */
static bool has_halted(const struct run *run, size_t i)
{
	return run->args->ended == NULL && run->job[i].halted_ns >= HALTED_NS;
}

static void say_halted(const struct run *run, size_t i)
{
	const char *of = run->part[i].name;

	if (has_halted(run, i))
		uni_note("%s%sthe guest has halted for good: for the last %.1f s its interrupts "
			 "were off, so that none wakes it",
			of, of[0] != '\0' ? ": " : "", (double)run->job[i].halted_ns / 1e9);
}

static void summarize_guests(const struct run *run, const char *path)
{
	for (size_t i = 0; i < run->nr; i++) {
		const struct uni_sampler_job *job = &run->job[i];
		struct uni_record_meta *m = &run->part[i].meta;
		struct uni_target_info info;

		/* Some may have been plugged in. */
		m->nr_vcpus = uni_max(m->nr_vcpus, job->stats.nr_times);
		if (job->rc != 0)
			continue;
		job->t->ops->info(job->t, &info);
		uni_summary_guest(run->part[i].name, m, &job->stats, job->end, info.ended);
		say_halted(run, i);
	}
	uni_note("wrote %s: try `uniscope report %s`", path, path);
}

/* Printed even with --quiet: why there are no more samples, and which ones are no profile. */
static void say_worst(const struct run *run)
{
	const struct uni_sample_filter on_cpu = { .on_cpu = true };
	char doubt[UNI_QUALITY_METHOD];
	struct uni_target_info info;

	for (size_t i = 0; i < run->nr; i++) {
		const struct uni_sampler_job *job = &run->job[i];

		if (job->rc != 0)
			continue;
		job->t->ops->info(job->t, &info);
		if (!has_halted(run, i) && uni_quality_doubt(doubt, &run->part[i].meta, &job->stats,
						   &on_cpu) == UNI_DOUBT_NO_PROFILE)
			uni_note("%s", doubt);
		say_halted(run, i);
		/* `serve` shows the last line. */
		if (job->end == UNI_END_GONE && info.ended[0] != '\0')
			uni_note("%s" UNI_SUMMARY_KEPT, info.ended);
	}
}

/* A guest with that name again is the same one to the session. */
static void follow_on(struct run *run)
{
	const uint64_t begin_ns =
		uni_now_ns() - run->job[0].stats.end_ns + run->job[0].stats.begin_ns;
	struct uni_sampler_job *job = &run->job[0];
	struct part *part = &run->part[0];

	while (job->end == UNI_END_GONE && !atomic_load(uni_signals_stop()) &&
		uni_follow_again(run->follow, part->g,
			uni_standing_since(&part->standing, job->stats.end_ns))) {
		struct uni_record_stats before = job->stats;
		uint64_t now_ns = uni_now_ns();

		run->before_ns = now_ns - begin_ns;
		run->before_nr = before.weight;
		part->g = run->follow->now;
		uni_model_close(part->model);
		uni_lookout_destroy(part->lookout);
		part->model = NULL;
		part->lookout = NULL;
		*job = (struct uni_sampler_job){ 0 };
		fill_job(run, 0);
		job->cfg.guest = part->number;
		if (job->cfg.duration_ns != 0)
			job->cfg.duration_ns =
				run->follow->until_ns > now_ns ? run->follow->until_ns - now_ns : 1;
		uni_sampler_run_all(job, 1);
		note_restores(part);
		if (job->rc != 0) {
			/* It has gone again, before anything could be seen of it. */
			uni_note("%s: %s", run->follow->how.target, job->err.msg);
			job->rc = 0;
			job->end = UNI_END_GONE;
			uni_record_stats_deinit(&job->stats);
			job->stats = (struct uni_record_stats){ .end_ns = uni_now_ns() };
		}
		uni_follow_count(run->follow, &job->stats);
		uni_record_stats_go_on(&before, &job->stats);
		uni_record_stats_deinit(&job->stats);
		job->stats = before;
	}
}

static int sample_and_write(struct run *run, const char *path, struct uni_err *err)
{
	const struct uni_record_args *args = run->args;
	int rc2, rc = begin_session(run, path, err);
	bool drop;

	if (rc == 0) {
		uni_sampler_run_all(run->job, run->nr);
		for (size_t i = 0; i < run->nr; i++)
			note_restores(&run->part[i]);
		/* QEMU will be asked how the guest ended. */
		if (args->ended != NULL)
			(void)args->ended(
				args->ctx, uni_target_settled(run->part[0].g->t, SETTLE_NS));
		if (run->follow != NULL && run->job[0].rc == 0)
			follow_on(run);
		for (size_t i = 0; i < run->nr; i++)
			uni_standing_end(&run->part[i].standing, run->job[i].stats.end_ns);
		if (!args->quiet)
			uni_progress_end();
		rc = result_of(run, err);
	}
	rc2 = uni_workload_finish(args->workload, rc == 0 ? err : NULL);
	if (rc == 0 && args->gone != NULL && run->job[0].end == UNI_END_GONE)
		args->gone(args->ctx);
	if (rc == 0 && rc2 == 0 && args->judge != NULL)
		rc2 = args->judge(args->ctx, &run->job[0].stats, err);
	drop = rc == 0 && rc2 != 0;
	rc = rc == 0 ? rc2 : rc;
	rc2 = run->rec != NULL ? end_session(run, rc == 0 ? err : NULL) : 0;
	if (rc == 0)
		rc = rc2;
	for (size_t i = 0; rc == 0 && i < run->nr; i++)
		uni_record_add_places(run->part[i].g, args, path);
	if (args->save_replay != NULL) {
		rc2 = uni_record_tee_end(run->part[0].g, args, rc == 0 ? err : NULL);
		rc = rc != 0 ? rc : rc2;
	}
	/* If a guest was gone before its first sample or exit, there is nothing to keep. */
	if (rc != 0 && run->rec != NULL && (drop || !has_samples(run)))
		uni_sdir_remove(path);
	if (rc == 0 && !args->quiet)
		summarize_guests(run, path);
	else if (rc == 0)
		say_worst(run);
	return rc;
}

static int sample_with_follow(struct run *run, const char *path, struct uni_err *err)
{
	uint64_t length_ns = (uint64_t)(run->args->duration * 1e9);
	struct uni_follow follow = { .until_ns = UINT64_MAX,
		.quiet = run->args->quiet,
		.in_kernel = run->args->aggregate || run->args->exits_every != 0 };
	int rc;

	if (run->args->follow == NULL)
		return sample_and_write(run, path, err);
	follow.how = *run->args->follow;
	follow.meta = &run->part[0].meta;
	if (length_ns != 0)
		follow.until_ns = uni_now_ns() + length_ns;
	run->follow = &follow;
	rc = sample_and_write(run, path, err);
	run->follow = NULL;
	uni_follow_deinit(&follow);
	return rc;
}

static int with_signals(struct run *run, const char *path, struct uni_err *err)
{
	struct uni_signals signals;
	int rc;

	uni_signals_begin(&signals);
	rc = sample_with_follow(run, path, err);
	uni_signals_end(&signals);
	return rc;
}

static int find_watches(struct run *run, struct part *part, struct uni_err *err)
{
	int rc = uni_watches_find(part->g, &run->args->watch, &part->watches, err);

	if (rc == 0 || run->nr == 1)
		return rc;
	uni_note("%s: nothing is watched: %s", part->name, err->msg);
	*err = (struct uni_err){ 0 };
	return 0;
}

/* A request that fails is an error if there is one guest, and a note if there are several. */
static int find_threads(struct run *run, struct part *part, struct uni_err *err)
{
	const struct uni_image_search search = uni_search_of(&run->args->debug_dirs);
	int rc = uni_guest_threads(part->g, &search, run->args->threads, &part->model, err);

	if (rc == 0 || run->nr == 1)
		return rc;
	uni_note("%s: only its vCPUs are sampled: %s", part->name, err->msg);
	*err = (struct uni_err){ 0 };
	return 0;
}

/* The same for counting in the kernel: a guest that is paused gives single samples. */
static int check_counts(const struct run *run, struct uni_err *err)
{
	for (size_t i = 0; run->args->aggregate && i < run->nr; i++) {
		const struct uni_guest *g = run->part[i].g;
		const char *why = g->info.why[0] != '\0' ? g->info.why : "it needs a kvm: target";

		if ((uni_method_flags(uni_sampler_method(g->t)) & UNI_METHOD_KERNEL) != 0)
			continue;
		if (run->nr == 1)
			return uni_err_set(err, UNI_ENOTSUP,
				"%s: --aggregate counts in the host's kernel, which cannot sample "
				"it: %s",
				g->spec.text, why);
		uni_note("%s: its samples are not aggregated: %s", run->part[i].name, why);
	}
	return 0;
}

/* Refuses options that need the guest's memory. */
static int check_inside(const struct run *run, struct uni_err *err)
{
	const char *what = run->args->watch.items.nr != 0   ? "--watch"
			   : run->args->save_replay != NULL ? "--save-replay"
							    : NULL;

	for (size_t i = 0; what != NULL && i < run->nr; i++) {
		const struct uni_guest *g = run->part[i].g;

		if (g->t->ops->caps(g->t) & UNI_CAP_INSIDE)
			return uni_err_set(err, UNI_ENOTSUP, "%s: the memory of %s cannot be read",
				what, g->spec.text);
	}
	return 0;
}

static int prepare_run(struct run *run, struct uni_err *err)
{
	int rc = check_inside(run, err);

	for (size_t i = 0; rc == 0 && i < run->nr; i++)
		rc = find_watches(run, &run->part[i], err);
	for (size_t i = 0; rc == 0 && i < run->nr; i++)
		rc = find_threads(run, &run->part[i], err);
	for (size_t i = 0; rc == 0 && run->args->save_replay == NULL && i < run->nr; i++)
		rc = uni_guest_lookout(
			run->part[i].g, on_image, &run->part[i], &run->part[i].lookout, err);
	if (rc == 0 && run->args->save_replay != NULL)
		rc = uni_record_tee_begin(run->part[0].g, run->args->save_replay, err);
	if (rc == 0)
		rc = check_seen(run, err);
	if (rc == 0)
		rc = check_counts(run, err);
	for (size_t i = 0; rc == 0 && i < run->nr; i++) {
		uni_record_fill_meta(run->part[i].g, run->args, &run->part[i].meta);
		uni_guest_say_threads(
			run->part[i].g, run->part[i].model, run->args->threads, &run->part[i].meta);
		fill_job(run, i);
	}
	return rc;
}

int uni_record_guests(struct uni_guest *const *g, size_t nr, const struct uni_record_args *args,
	char **path_ret, struct uni_err *err)
{
	_cleanup_free_ char *path =
		args->output != NULL ? strdup(args->output) : uni_record_default_output(g[0], nr);
	_cleanup_free_ struct uni_sampler_job *job = calloc(nr, sizeof(*job));
	_cleanup_free_ struct part *part = calloc(nr, sizeof(*part));
	struct run run = { .args = args, .nr = nr, .job = job, .part = part };
	int rc;

	if (path == NULL || job == NULL || part == NULL)
		return uni_err_nomem(err);
	uni_signals_init_gate(&run.gate);
	for (size_t i = 0; i < nr; i++) {
		part[i].run = &run;
		part[i].g = g[i];
		if (nr > 1)
			uni_record_name_guest(g, nr, i, part[i].name);
	}
	rc = prepare_run(&run, err);
	if (rc == 0)
		rc = with_signals(&run, path, err);
	for (size_t i = 0; i < nr; i++) {
		uni_watches_deinit(&part[i].watches);
		uni_model_close(part[i].model);
		uni_lookout_destroy(part[i].lookout);
		uni_record_stats_deinit(&job[i].stats);
	}
	(void)pthread_rwlock_destroy(&run.gate);
	if (rc == 0 && path_ret != NULL)
		*path_ret = uni_take(path);
	return rc;
}
