/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/record.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/self.h"
#include "cli/term.h"
#include "config.h"
#include "session/places.h"
#include "session/sampler.h"
#include "target/replay/writer.h"

#define MAX_WATCH	16
#define MAX_WATCH_BYTES (1u << 20)

/* Set by the handler; the sampler looks at it between samples. The one piece of process state. */
static atomic_bool interrupted, suspended;

static void on_signal(int sig)
{
	atomic_store(sig == SIGTSTP ? &suspended : &interrupted, true);
}

/* Ctrl-Z takes effect here, between samples: a guest must not stand still with us. */
static void suspend_if_asked(void)
{
	if (atomic_exchange(&suspended, false))
		(void)raise(SIGSTOP);
}

struct run {
	struct uni_recorder *rec;
	bool quiet;
	double duration;
};

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct run *run = ctx;

	suspend_if_asked();
	uni_recorder_sample(run->rec, s);
}

static void on_progress(void *ctx, const struct uni_record_stats *st, uint64_t elapsed_ns)
{
	struct run *run = ctx;

	suspend_if_asked();
	if (run->quiet)
		return;
	if (run->duration > 0)
		uni_progress("recording %.1f / %.0f s, %" PRIu64 " samples, %" PRIu64 " skipped",
			(double)elapsed_ns / 1e9, run->duration, st->samples, st->skipped);
	else
		uni_progress("recording %.1f s, %" PRIu64 " samples, %" PRIu64
			     " skipped (Ctrl-C ends it)",
			(double)elapsed_ns / 1e9, st->samples, st->skipped);
}

int uni_record_check_args(const struct uni_record_args *args, struct uni_err *err)
{
	if (!(args->frequency > 0) || args->frequency > 100000)
		return uni_err_set(
			err, UNI_EUSAGE, "--frequency must be above 0 and at most 100000 Hz");
	if (args->duration < 0 || args->duration > 1e7)
		return uni_err_set(err, UNI_EUSAGE, "--duration must be between 0 and 10000000 s");
	if (args->watch.items.nr > MAX_WATCH)
		return uni_err_set(err, UNI_EUSAGE, "at most %d --watch", MAX_WATCH);
	return 0;
}

/* "SYMBOL" or "SYMBOL:BYTES" to an address and a size. */
static int parse_watch(
	const struct uni_guest *g, const char *text, struct uni_watch *w, struct uni_err *err)
{
	const char *colon = strrchr(text, ':');
	size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);
	uint64_t addr, size;

	memset(w, 0, sizeof(*w));
	if (g->image == NULL)
		return uni_err_set(err, UNI_EUSAGE, "--watch needs an image (-e) to find %s", text);
	if (len >= sizeof(w->name))
		return uni_err_set(err, UNI_EUSAGE, "--watch %s: the name is too long", text);
	memcpy(w->name, text, len);
	if (uni_image_find(g->image, w->name, &addr, &size) != 0)
		return uni_err_set(err, UNI_ENOENT, "--watch: %s has no symbol %s",
			uni_image_symbol_path(g->image), w->name);
	if (colon != NULL && !uni_parse_size(colon + 1, &size))
		return uni_err_set(err, UNI_EUSAGE, "--watch %s: not a number of bytes", text);
	if (size == 0 || size > MAX_WATCH_BYTES)
		return uni_err_set(err, UNI_EUSAGE,
			"--watch %s: %" PRIu64 " bytes; give 1 to %u as SYMBOL:BYTES", text, size,
			MAX_WATCH_BYTES);
	w->gva = addr + g->bias;
	w->size = (uint32_t)size;
	return 0;
}

char *uni_session_name(const char *base)
{
	char name[128], path[160];
	size_t len;

	(void)snprintf(name, sizeof(name), "%s", base[0] != '\0' ? base : "guest");
	for (char *p = name; *p != '\0'; p++) {
		if (*p == '/' || *p == ' ')
			*p = '_';
	}
	len = strlen(name);
	if (len > 4 && strcmp(name + len - 4, ".elf") == 0)
		name[len - 4] = '\0';
	(void)snprintf(path, sizeof(path), "%s.uniscope", name);
	for (unsigned n = 2; access(path, F_OK) == 0 && n < 100000; n++)
		(void)snprintf(path, sizeof(path), "%s-%u.uniscope", name, n);
	return strdup(path);
}

static char *default_output(const struct uni_guest *g)
{
	const char *base = g->info.name;

	if (base[0] == '\0' && g->image != NULL) {
		const char *slash = strrchr(uni_image_path(g->image), '/');

		base = slash != NULL ? slash + 1 : uni_image_path(g->image);
	}
	return uni_session_name(base);
}

static void fill_meta(
	const struct uni_guest *g, const struct uni_record_args *args, struct uni_record_meta *meta)
{
	memset(meta, 0, sizeof(*meta));
	(void)uni_text_clean(
		meta->target, sizeof(meta->target), g->spec.text, strlen(g->spec.text));
	meta->info = g->info;
	(void)snprintf(meta->arch, sizeof(meta->arch), "%s", g->t->arch->name);
	if (g->image != NULL) {
		(void)snprintf(
			meta->image_path, sizeof(meta->image_path), "%s", uni_image_path(g->image));
		(void)snprintf(
			meta->image_id, sizeof(meta->image_id), "%s", uni_image_id(g->image));
	}
	meta->bias = g->bias;
	meta->nr_vcpus = (uint32_t)g->t->ops->nr_vcpus(g->t);
	meta->frequency = args->frequency;
	meta->realtime_offset_ns = uni_realtime_ns() - uni_now_ns();
	(void)snprintf(
		meta->uniscope_version, sizeof(meta->uniscope_version), "%s", UNISCOPE_VERSION);
	uni_self_command(meta->command, sizeof(meta->command));
}

static void us(char *out, size_t cap, uint64_t ns)
{
	if (ns < 10 * UNI_NSEC_PER_MSEC)
		(void)snprintf(out, cap, "%.1f us", (double)ns / 1e3);
	else
		(void)snprintf(out, cap, "%.1f ms", (double)ns / 1e6);
}

static void summary(const struct uni_guest *g, const struct uni_record_stats *st,
	enum uni_sampler_end end, const char *path)
{
	double wall = (double)(st->end_ns - st->begin_ns) / 1e9;
	char p50[32], p99[32], max[32];

	if (end == UNI_END_GONE)
		uni_note("the guest ended; what was collected until then is kept");
	uni_note("%" PRIu64 " samples in %.1f s from %d vCPU%s, %" PRIu64 " late, %" PRIu64
		 " skipped, %" PRIu64 " chains cut short",
		st->samples, wall, g->t->ops->nr_vcpus(g->t),
		g->t->ops->nr_vcpus(g->t) == 1 ? "" : "s", st->late, st->skipped, st->truncated);
	if (st->throttled != 0)
		uni_note("%" PRIu64
			 " of the skipped would have kept the guest paused for more than "
			 "10 %% of the time: lower --frequency",
			st->throttled);
	if (st->pause.nr != 0 && wall > 0) {
		us(p50, sizeof(p50), st->pause.p50_ns);
		us(p99, sizeof(p99), st->pause.p99_ns);
		us(max, sizeof(max), st->pause.max_ns);
		uni_note(
			"guest paused %s per sample at the median (p99 %s, max %s), %.2f %% of the "
			"time in all",
			p50, p99, max, (double)st->pause.sum_ns / 1e7 / wall);
	}
	uni_note("wrote %s: try `uniscope report %s`", path, path);
}

/* From now on everything that is read from the guest is also kept for a replay file. */
static int tee_begin(struct uni_guest *g, const char *path, struct uni_err *err)
{
	struct uni_target *inner = g->t;

	g->t = NULL; /* owned by the tee, also when it fails */
	return uni_replay_tee(inner, path, &g->t, err);
}

static int tee_end(struct uni_guest *g, const struct uni_record_args *args, struct uni_err *err)
{
	struct uni_replay_saved saved = { 0 };
	int rc = uni_replay_tee_finish(g->t, &saved, err);

	if (rc == 0 && !args->quiet)
		uni_note("saved %" PRIu64 " snapshots (%" PRIu64 " kB) in %s%s", saved.snapshots,
			saved.bytes / 1024, args->save_replay,
			saved.lost_snapshots + saved.lost_blocks != 0
				? ", not all: it is full, or memory could not be read"
				: "");
	return rc;
}

/* What the source says about the addresses goes with the session, if the image has debug data. */
static void add_places(
	const struct uni_guest *g, const struct uni_record_args *args, const char *path)
{
	const struct uni_image_search search = uni_search_of(&args->debug_dirs);
	struct uni_err err = { 0 };
	const char *note = NULL;
	int rc = uni_session_add_places(path, g->image, &search, &note, &err);

	if (rc != 0 && rc != -UNI_ENOENT)
		uni_note("no lines and inlined functions in %s: %s", path, err.msg);
	else if (note != NULL)
		uni_note("%s: %s", uni_image_path(g->image), note);
}

static int sample_and_write(struct uni_guest *g, const struct uni_record_args *args,
	const struct uni_record_meta *meta, const char *path, struct uni_watch *watch,
	struct uni_err *err)
{
	struct run run = { .quiet = args->quiet, .duration = args->duration };
	struct uni_sampler_cfg cfg = { .frequency = args->frequency,
		.duration_ns = (uint64_t)(args->duration * 1e9),
		.max_duty = 0.10,
		.jitter = !args->no_jitter,
		.hurry = true,
		.unwinder = &g->unwinder,
		.watch = watch,
		.nr_watch = args->watch.items.nr,
		.stop = &interrupted,
		.on_sample = on_sample,
		.on_progress = on_progress,
		.ctx = &run };
	enum uni_sampler_end end = UNI_END_DURATION;
	struct uni_record_stats st = { 0 };
	const struct uni_guest_result result = {
		.stats = &st, .watch = watch, .nr_watch = cfg.nr_watch
	};
	int rc = uni_recorder_create(path, meta, args->overwrite, &run.rec, err), rc2;

	if (rc != 0)
		return rc;
	if (g->symtab != NULL)
		rc = uni_recorder_add_symtab(run.rec, 0, g->symtab, err);
	else if (g->image != NULL)
		rc = uni_recorder_add_image(run.rec, 0, g->image, err);
	if (rc == 0)
		rc = uni_sampler_run(g->t, &cfg, &st, &end, err);
	if (!args->quiet)
		uni_progress_end();
	rc2 = uni_recorder_close(run.rec, &result, 1, rc == 0 ? err : NULL);
	if (rc == 0)
		rc = rc2;
	if (rc == 0 && g->image != NULL && g->symtab == NULL)
		add_places(g, args, path);
	if (args->save_replay != NULL) {
		rc2 = tee_end(g, args, rc == 0 ? err : NULL);
		rc = rc != 0 ? rc : rc2;
	}
	if (rc == 0 && !args->quiet)
		summary(g, &st, end, path);
	return rc;
}

int uni_record_guest(struct uni_guest *g, const struct uni_record_args *args, char **path_ret,
	struct uni_err *err)
{
	_cleanup_free_ char *path = args->output != NULL ? strdup(args->output) : default_output(g);
	_cleanup_free_ struct uni_record_meta *meta = calloc(1, sizeof(*meta));
	/* A closed terminal ends the recording as cleanly as Ctrl-C. */
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGTSTP };
	struct sigaction sa = { .sa_handler = on_signal }, old[uni_array_len(signals)];
	struct uni_watch watch[MAX_WATCH];
	int rc = 0;

	memset(watch, 0, sizeof(watch));
	if (path == NULL || meta == NULL)
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	for (size_t i = 0; rc == 0 && i < args->watch.items.nr; i++)
		rc = parse_watch(g, args->watch.items.v[i], &watch[i], err);
	if (rc == 0 && args->save_replay != NULL)
		rc = tee_begin(g, args->save_replay, err);
	if (rc != 0)
		return rc;
	fill_meta(g, args, meta);
	atomic_store(&interrupted, false);
	atomic_store(&suspended, false);
	for (size_t i = 0; i < uni_array_len(signals); i++)
		(void)sigaction(signals[i], &sa, &old[i]);
	rc = sample_and_write(g, args, meta, path, watch, err);
	for (size_t i = 0; i < uni_array_len(signals); i++)
		(void)sigaction(signals[i], &old[i], NULL);
	for (size_t i = 0; i < MAX_WATCH; i++) {
		free(watch[i].first);
		free(watch[i].last);
	}
	if (rc == 0 && path_ret != NULL)
		*path_ret = uni_take(path);
	return rc;
}
