/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/tracing_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "app/record.h"
#include "app/scratch.h"
#include "app/signals.h"
#include "app/summary.h"
#include "app/term.h"
#include "app/threads.h"
#include "recording/bundle.h"
#include "recording/recording.h"
#include "recording/folder.h"
#include "tracing/record.h"

struct run {
	struct uni_tracing *t;
	const struct uni_tracing_session *s;
	struct uni_record_meta meta;
	struct uni_tclock clock;
	struct uni_thost host;
	struct uni_recorder *rec;
	struct uni_model *model; /* of its threads; NULL: none is known */
	struct uni_trecord_cfg cfg;
	struct uni_trace_done done;
	struct uni_record_stats stats;
	enum uni_trecord_end end;
	uint64_t pause_ns;  /* of the last look */
	uint64_t unseen_ns; /* of a guest that ended: uni_trecord_run() */
	bool on;	    /* we switched functions on */
};

static void on_progress(void *ctx, const struct uni_trecord_state *st)
{
	const struct run *r = ctx;
	char length[32] = "";

	if (r->s->quiet || r->s->watcher != NULL)
		return;
	if (r->s->duration > 0)
		(void)snprintf(length, sizeof(length), " / %.0f", r->s->duration);
	uni_progress("tracing %.1f%s s, %" PRIu64 " event%s, %" PRIu64 " lost%s",
		(double)st->elapsed_ns / 1e9, length, st->events, uni_plural(st->events), st->lost,
		r->s->duration > 0 ? "" : " (Ctrl-C ends it)");
}

/* A reader of the growing session has them, too. Closing tries again, and reports the error. */
static void on_names(void *ctx)
{
	struct run *r = ctx;
	size_t nr = 0;

	if (uni_tnames_record(r->cfg.names, r->rec, 0, &nr) == 0 && nr != 0)
		(void)uni_recorder_save(r->rec, NULL);
}

static int fill_meta(struct run *r, struct uni_err *err)
{
	static const struct uni_record_args none = { 0 };
	const struct uni_tracing_session *s = r->s;
	struct uni_record_trace *trace = &r->meta.trace;
	int rc;

	uni_record_fill_meta(&r->t->g, &none, &r->meta);
	r->meta.method[0] = '\0';
	r->meta.why[0] = '\0';
	rc = uni_tracer_describe(r->t->tracer, trace, err);
	trace->snapshot = s->snapshot;
	if (s->choice != NULL) {
		(void)snprintf(trace->mode, sizeof(trace->mode), "%s", s->choice->mode);
		(void)snprintf(trace->filter, sizeof(trace->filter), "%s", s->choice->text);
		(void)snprintf(trace->only, sizeof(trace->only), "%s", s->choice->only);
	}
	for (uint32_t i = 0; i < trace->nr_cpus; i++)
		uni_tclock_result(&r->clock, &trace->info, i, &trace->cpu[i].clock);
	return rc;
}

/* Threads without a name still differ by their numbers: missing names are no failure. Those that
 * the guest tells the tracer of have them in the rings. */
static void find_names(struct run *r)
{
	const struct uni_image_search none = { 0 };
	struct uni_err err = { 0 };

	if (uni_guest_model(&r->t->g, &none, &r->model, &err) == 0 &&
		uni_model_has_stacks(r->model))
		(void)uni_tnames_create(
			r->t->g.t, &r->t->g.unwinder, r->model, &r->cfg.names, &err);
}

static void name_wait(void *ctx, const struct uni_guest_thread *t, char *ret, size_t cap)
{
	const struct run *r = ctx;

	uni_thread_waits_for(&r->t->g, t, ret, cap);
}

static int begin_trace_session(struct run *r, const char *path, struct uni_err *err)
{
	int rc;

	rc = uni_tclock_open(&r->clock, r->t->g.info.pid,
		uni_ring_info(uni_tracer_ring(r->t->tracer))->nr_cpus, NULL, err);
	if (rc == 0)
		rc = fill_meta(r, err);
	if (rc == 0)
		rc = uni_recorder_create(path, &r->meta, r->s->overwrite, &r->rec, err);
	if (rc == 0 && r->t->g.image != NULL)
		rc = uni_recorder_add_image(r->rec, 0, r->t->g.image, err);
	for (size_t i = 0; rc == 0 && i < r->t->g.nr_more; i++)
		rc = uni_recorder_add_more(
			r->rec, 0, r->t->g.more[i].image, r->t->g.more[i].bias, err);
	if (rc == 0)
		rc = uni_recorder_trace(r->rec, 0, &r->cfg.out, err);
	if (rc != 0)
		return rc;
	r->cfg.t = r->t->g.t;
	r->cfg.tracer = r->t->tracer;
	r->cfg.clock = &r->clock;
	r->cfg.host = &r->host;
	r->cfg.duration_ns = (uint64_t)(r->s->duration * 1e9);
	find_names(r);
	r->cfg.stop = uni_signals_stop();
	r->cfg.whole = r->s->snapshot;
	r->cfg.names_each_ns = (uint64_t)(r->s->names * 1e9);
	r->cfg.on_names = on_names;
	r->cfg.on_progress = on_progress;
	r->cfg.ctx = r;
	r->cfg.watcher = r->s->watcher;
	r->cfg.namer = (struct uni_topen_namer){ name_wait, r };
	r->cfg.promises = r->s->choice != NULL && r->s->choice->c.promises;
	return 0;
}

/* Only threads are asked for, and the guest tells of them already. Then its rings hold how they
 * came to wait, and nothing is changed in it. A guest's own table says better which are open. */
static bool tells_already(const struct run *r)
{
	const struct uni_trace_choice *c = r->s->choice != NULL ? &r->s->choice->c : NULL;
	struct uni_trace_control control;

	return c != NULL && uni_trace_choice_is_threads(c) && r->s->watcher == NULL &&
	       !uni_ring_info(uni_tracer_ring(r->t->tracer))->keeps_promises &&
	       uni_tracer_control(r->t->tracer, &control) == 0 &&
	       (control.promises & UNI_TRACE_PROMISES_TELL) != 0;
}

static int switch_on(struct run *r, struct uni_err *err)
{
	int rc;

	if (r->s->choice == NULL)
		return 0;
	if (r->cfg.held)
		return uni_tracer_newest(r->t->tracer, err);
	rc = uni_tracer_set(r->t->tracer, &r->s->choice->c, &r->done, err);
	r->on = rc == 0;
	if (rc == 0 && !r->s->quiet)
		uni_tracing_say(&r->done);
	r->meta.trace.nr_functions = r->done.nr_functions;
	r->meta.trace.nr_sites = r->done.nr_sites;
	return rc;
}

/* Before the last look, so that it sees everything. */
static void switch_off(struct run *r)
{
	struct uni_trace_done done;
	struct uni_err err = { 0 };

	if (!r->on || r->s->keep || r->end == UNI_TRECORD_GONE || r->end == UNI_TRECORD_LOST)
		return;
	r->on = false;
	if (uni_tracer_set(r->t->tracer, NULL, &done, &err) != 0)
		uni_note("the guest is still traced (uniscope trace stop ends it): %s", err.msg);
}

static void mark_end(struct run *r)
{
	if (r->end != UNI_TRECORD_GONE && uni_trecord_runs(&r->cfg))
		r->meta.trace.end_ns = uni_now_ns();
}

static int stream_calls(struct run *r, struct uni_err *err)
{
	int rc;

	r->cfg.held = tells_already(r);
	rc = uni_trecord_begin(&r->cfg, err);
	if (rc == 0)
		rc = switch_on(r, err);
	if (rc == 0)
		rc = uni_trecord_run(&r->cfg, &r->end, &r->unseen_ns, err);
	if (!r->s->quiet)
		uni_progress_end();
	mark_end(r);
	switch_off(r);
	return rc;
}

static int take_trace(struct run *r, struct uni_err *err)
{
	int rc = 0;

	if (r->s->snapshot && !r->s->all_sessions)
		rc = uni_tracer_newest(r->t->tracer, err);
	if (rc != 0)
		return rc;
	if (r->s->snapshot)
		uni_trecord_look(&r->cfg);
	r->stats.begin_ns = uni_now_ns();
	if (!r->s->snapshot)
		rc = stream_calls(r, err);
	else
		mark_end(r);
	if (rc == 0 && r->end != UNI_TRECORD_GONE)
		rc = uni_trecord_end(&r->cfg, &r->pause_ns, err);
	r->stats.end_ns = uni_now_ns();
	return rc;
}

static int finish_session(struct run *r, struct uni_err *err)
{
	const struct uni_guest_result result = { .stats = &r->stats };
	int e = uni_tstream_errno(r->cfg.out), rc, rc2;
	size_t nr;

	if (r->cfg.names != NULL)
		(void)uni_tnames_record(r->cfg.names, r->rec, 0, &nr);
	uni_trecord_describe(&r->cfg, &r->meta.trace);
	rc = uni_recorder_set_trace(r->rec, 0, &r->meta.trace, err);
	rc2 = uni_recorder_close(r->rec, &result, 1, rc == 0 ? err : NULL);
	r->rec = NULL;
	rc = rc != 0 ? rc : rc2;
	if (rc == 0 && e != 0)
		rc = uni_err_set(err, UNI_EIO,
			"some data could not be written: %s; the missing part "
			"counts as lost",
			strerror(-e));
	return rc;
}

static void say_frequency(const struct uni_record_trace *t)
{
	uint64_t hz = t->cpu[0].clock.hz, says = t->info.tsc_hz;

	if (says != 0 && (hz > says + says / 100 || hz < says - says / 100))
		uni_note("the guest states a wrong frequency of its counter, %.1f "
			 "MHz: %.1f MHz is used",
			(double)says / 1e6, (double)hz / 1e6);
}

/* Reports the largest bound of all CPUs with a known clock, or the number of those without. */
static void say_clock(const struct uni_record_trace *t)
{
	uint64_t most = 0;
	uint32_t unknown = 0, nr = 0;

	for (uint32_t i = 0; i < t->nr_cpus; i++) {
		uint64_t error = t->cpu[i].clock.error_ns;

		if (t->cpu[i].events == 0 && t->cpu[i].others == 0)
			continue;
		nr++;
		if (error == UINT64_MAX)
			unknown++;
		else
			most = uni_max(most, error);
	}
	if (nr == 0)
		return;
	if (unknown == nr)
		uni_note("times are the guest's own: the relation of its counter to this "
			 "host's clock is not known");
	else if (unknown == 0)
		uni_note("times are this host's to within %.1f us", (double)most / 1e3);
	else
		uni_note("times of %u of %u CPUs are this host's to within %.1f "
			 "us. The others gave too little data: their counters are "
			 "taken for the same one",
			nr - unknown, nr, (double)most / 1e3);
	say_frequency(t);
}

static void say_end(const struct run *r)
{
	struct uni_target_info info;

	r->cfg.t->ops->info(r->cfg.t, &info);
	uni_note("%s; what it recorded in the %.1f s before that was noticed may be missing",
		info.ended[0] != '\0' ? info.ended : "the guest ended", (double)r->unseen_ns / 1e9);
}

/* Also with --quiet. */
static void say_why(const struct run *r)
{
	struct uni_target_info info;

	r->cfg.t->ops->info(r->cfg.t, &info);
	if (info.ended[0] != '\0')
		uni_note("%s" UNI_SUMMARY_KEPT, info.ended);
}

static void say_missing(const struct run *r)
{
	struct uni_target_info info;

	r->t->g.t->ops->info(r->t->g.t, &info);
	if (info.missing_bytes != 0)
		uni_note("the core is cut off: %" PRIu64 " KiB of the guest's memory are missing, "
			 "and with them what the rings held there",
			info.missing_bytes >> 10);
}

/* The command that shows the recording. */
static const char *next_query(const struct run *r)
{
	const struct uni_choice *choice = r->s->choice;
	struct uni_trace_control control;
	bool threads = choice != NULL ? choice->c.promises
				      : uni_tracer_control(r->t->tracer, &control) == 0 &&
						control.promises != 0;
	bool calls = false, told = false;

	for (uint32_t i = 0; i < r->meta.trace.nr_cpus; i++) {
		calls = calls || r->meta.trace.cpu[i].events != 0;
		told = told || r->meta.trace.cpu[i].told != 0;
	}
	threads = threads && told;
	if (!threads && (calls || choice != NULL))
		return "report";
	return choice != NULL && r->done.nr_functions != 0 ? "report` or `uniscope trace findings"
							   : "findings";
}

/* "26598 events (calls and returns) and 461 others of 1 CPU, 0 lost". */
static void say_counts(const struct run *r, struct uni_strbuf *b)
{
	const struct uni_record_trace *t = &r->meta.trace;
	struct uni_record_trace_cpu sum = { 0 };
	unsigned nr = 0;

	for (uint32_t i = 0; i < t->nr_cpus; i++) {
		sum.events += t->cpu[i].events;
		sum.others += t->cpu[i].others;
		sum.told += t->cpu[i].told;
		sum.lost += t->cpu[i].lost;
		sum.after_freeze += t->cpu[i].after_freeze;
		sum.lost_words += t->cpu[i].lost_words;
		sum.lost_extra += t->cpu[i].lost_extra;
		nr += t->cpu[i].events + t->cpu[i].others != 0;
	}
	if (r->done.threads && r->done.nr_functions == 0 && sum.events == 0) {
		uni_strbuf_addf(
			b, "%" PRIu64 " event%s of threads", sum.told, uni_plural(sum.told));
		sum.others -= uni_min(sum.told, sum.others);
	} else {
		uni_strbuf_addf(b, "%" PRIu64 " event%s (calls and returns)", sum.events,
			uni_plural(sum.events));
	}
	if (sum.others != 0)
		uni_strbuf_addf(b, " and %" PRIu64 " other%s", sum.others, uni_plural(sum.others));
	if (nr != 0)
		uni_strbuf_addf(b, " of %u CPU%s", nr, nr != 1 ? "s" : "");
	uni_strbuf_addf(b, ", %s%" PRIu64 " %s", uni_record_trace_lost_at_most(t) ? "at most " : "",
		uni_record_trace_lost(&sum),
		r->s->snapshot ? "older ones were overwritten or found no room" : "lost");
	if (sum.after_freeze != 0)
		uni_strbuf_addf(b, ", %" PRIu64 " came after the freeze", sum.after_freeze);
}

/* A ring of this kind goes on with nothing that the host may write. */
static void say_full(const struct run *r)
{
	const struct uni_record_trace *t = &r->meta.trace;
	uint64_t lost = 0;

	for (uint32_t i = 0; i < t->nr_cpus; i++)
		lost += t->cpu[i].lost;
	if (lost != 0 && t->info.ring_mode == UNI_TRACE_STOP)
		uni_note("the guest's ring is full, and has stopped "
			 "(UNI_TRACE_STOP): it records no more until the guest "
			 "boots again");
}

/* No CPU has a record. */
static bool is_empty_trace(const struct run *r)
{
	uint64_t words = 0;

	for (uint32_t i = 0; i < r->meta.trace.nr_cpus; i++)
		words += r->meta.trace.cpu[i].words;
	return words == 0;
}

/* Reports whether a snapshot has data of older sessions, or has left it out. */
static void say_sessions(const struct run *r)
{
	const struct uni_record_trace *t = &r->meta.trace;

	if (!r->s->snapshot || r->s->all_sessions)
		return;
	if (!t->info.tells_sessions)
		uni_note("the guest's older tracer does not number its sessions: the "
			 "content of its rings from earlier sessions is included");
	else if (is_empty_trace(r))
		uni_note("nothing was recorded since the newest start; --all-sessions "
			 "also saves what earlier sessions left in the rings");
}

static void summarize_trace(const struct run *r, const char *path)
{
	_cleanup_strbuf_ struct uni_strbuf counts;

	uni_strbuf_init(&counts);
	if (r->end == UNI_TRECORD_GONE)
		say_end(r);
	say_counts(r, &counts);
	/* A file stood all the time. */
	if (r->pause_ns != 0)
		uni_strbuf_addf(&counts, "; %s stopped for %.0f us at the end",
			r->cfg.t->ops->caps(r->cfg.t) & UNI_CAP_INSIDE ? "its rings were"
								       : "the guest was",
			(double)r->pause_ns / 1e3);
	uni_note("%s", counts.s);
	say_full(r);
	say_sessions(r);
	say_clock(&r->meta.trace);
	if (r->s->write == NULL)
		uni_note("wrote %s: try `uniscope trace %s %s`", path, next_query(r), path);
}

/* Is only the way to the guest lost? Then its code is as it was made. */
static int tell_lost(const struct run *r, struct uni_err *err)
{
	int rc = r->cfg.t->ops->lost(r->cfg.t, err);

	if (rc != 0 && r->on && !r->s->keep)
		uni_note("the guest is still traced: `uniscope trace stop` ends it");
	return rc;
}

static int write_it(struct run *r, const char *path, struct uni_err *err)
{
	int rc = r->s->choice != NULL && !r->s->snapshot
			 ? uni_tracer_check(r->t->tracer, &r->s->choice->c, err)
			 : 0,
	    rc2;

	/* Before there is a folder, or another session is replaced by nothing. */
	if (rc == 0)
		rc = begin_trace_session(r, path, err);
	if (rc == 0)
		rc = take_trace(r, err);
	if (r->rec == NULL)
		return rc;
	say_missing(r);
	/* The data is closed properly also after a failure. */
	rc2 = r->cfg.out != NULL ? finish_session(r, rc == 0 ? err : NULL)
				 : uni_recorder_close(r->rec, NULL, 0, NULL);
	if (rc != 0 && is_empty_trace(r))
		uni_sdir_remove(path);
	if (rc == 0)
		rc = rc2;
	if (rc == 0 && r->end == UNI_TRECORD_GONE && r->cfg.t->ops->lost != NULL)
		rc = tell_lost(r, err);
	if (rc == 0 && !r->s->quiet)
		summarize_trace(r, path);
	else if (rc == 0 && r->end == UNI_TRECORD_GONE)
		say_why(r);
	if (rc == 0 && r->end == UNI_TRECORD_LOST)
		rc = uni_err_set(err, UNI_EBUSY,
			"ended after %.1f s: somebody else changed what is traced (uniscope trace "
			"stop?); what was recorded is kept",
			(double)(r->stats.end_ns - r->stats.begin_ns) / 1e9);
	return rc;
}

static int run_it(struct uni_tracing *t, const struct uni_tracing_session *s, const char *path,
	struct uni_err *err)
{
	_cleanup_free_ struct run *r = calloc(1, sizeof(*r));
	struct uni_signals signals;
	int rc;

	if (r == NULL)
		return uni_err_nomem(err);
	r->t = t;
	r->s = s;
	uni_signals_begin(&signals);
	rc = write_it(r, path, err);
	uni_signals_end(&signals);
	uni_tnames_destroy(r->cfg.names);
	uni_model_close(r->model);
	uni_tclock_close(&r->clock);
	uni_record_trace_deinit(&r->meta.trace);
	return rc;
}

/* The whole session into the stream that was asked for. */
static int write_bundle(const char *path, const char *name, const char *to, struct uni_err *err)
{
	struct uni_sink *out;
	int rc = uni_sink_open_file(to, &out, err);

	if (rc != 0)
		return rc;
	rc = uni_bundle_write(path, name, out, err);
	if (rc == 0)
		return uni_sink_close(out, err);
	uni_sink_abort(out);
	return rc;
}

/* In one stream: recorded into a folder for a while. */
static int write_stream(struct uni_tracing *t, const struct uni_tracing_session *s,
	const char *name, struct uni_err *err)
{
	struct uni_scratch scratch;
	_cleanup_strbuf_ struct uni_strbuf path;
	int rc;

	uni_strbuf_init(&path);
	if (s->output != NULL || s->overwrite)
		return uni_err_set(err, UNI_EUSAGE,
			"--write makes a stream of the session, --output and --overwrite a folder");
	if (strcmp(s->write, "-") == 0 && isatty(STDOUT_FILENO))
		return uni_err_set(err, UNI_EUSAGE,
			"--write - is for a pipe or a file: standard output is a terminal");
	rc = uni_scratch_make(&scratch, err);
	if (rc != 0)
		return rc;
	uni_strbuf_addf(&path, "%s/%s", scratch.path, name);
	if (uni_strbuf_failed(&path))
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = run_it(t, s, path.s, err);
	if (rc == 0)
		rc = write_bundle(path.s, name, s->write, err);
	uni_scratch_remove(&scratch);
	return rc;
}

int uni_tracing_write(
	struct uni_tracing *t, const struct uni_tracing_session *s, struct uni_err *err)
{
	_cleanup_free_ char *path =
		s->output != NULL ? strdup(s->output) : uni_record_default_output(&t->g, 1);

	if (path == NULL)
		return uni_err_nomem(err);
	return s->write != NULL ? write_stream(t, s, path, err) : run_it(t, s, path, err);
}
