/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/diff_run.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "app/call_profile.h"
#include "app/timeline.h"
#include "backend/method.h"
#include "recording/exact.h"
#include "recording/sjson.h"

int uni_diff_per_parse(const char *text, struct uni_diff_per *ret, struct uni_err *err)
{
	*ret = (struct uni_diff_per){ 0 };
	if (text == NULL)
		return 0;
	if (strcmp(text, "run") == 0)
		ret->kind = UNI_DIFF_PER_RUN;
	else if (strcmp(text, "call") == 0)
		ret->kind = UNI_DIFF_PER_EACH;
	else if (strncmp(text, "call ", 5) == 0)
		ret->kind = UNI_DIFF_PER_CALL;
	else if (strncmp(text, "exit ", 5) == 0)
		ret->kind = UNI_DIFF_PER_EXIT;
	ret->glob =
		ret->kind == UNI_DIFF_PER_CALL || ret->kind == UNI_DIFF_PER_EXIT ? text + 5 : NULL;
	if (ret->kind != UNI_DIFF_PER_NONE && (ret->glob == NULL || ret->glob[0] != '\0'))
		return 0;
	return uni_err_set(err, UNI_EUSAGE,
		"--per '%s': it is 'run', 'call' (each function by its own calls), 'call GLOB' or "
		"'exit GLOB' (such as 'exit io out 0x3f8')",
		text);
}

struct collecting {
	struct uni_diff_read *r;
	uint64_t from_ns, to_ns; /* of the command that was recorded, if that is compared */
	bool count;
};

static int collect_node(struct collecting *c, uint32_t node, double value, uint64_t t_ns)
{
	const struct uni_diff_entry e = { .node = node, .value = value, .t_ns = t_ns };

	if (t_ns < c->from_ns || t_ns > c->to_ns)
		return 0;
	return uni_vec_push(&c->r->entries, e) ? 0 : -UNI_ENOMEM;
}

static int collect_sample(void *ctx, const struct uni_sample *s, uint32_t node)
{
	return collect_node(ctx, node, (double)s->weight, s->t_ns);
}

static int collect_exit(void *ctx, const struct uni_stream_exit *e, uint32_t node)
{
	return collect_node(ctx, node, (double)e->weight, e->t_ns);
}

static int collect_imported(void *ctx, uint32_t node, double value, uint64_t t_ns)
{
	return collect_node(ctx, node, value, t_ns);
}

static int collect_call(void *ctx, const struct uni_call_event *e, uint32_t node)
{
	struct collecting *c = ctx;

	return collect_node(c, node, c->count ? 1 : (double)e->self, e->ns);
}

/* Entries become work if their innermost frame matches. */
static int take_work(
	struct uni_diff_read *r, const struct uni_profile *p, const char *glob, struct uni_err *err)
{
	size_t nr = uni_profile_nr_frames(p);
	_cleanup_free_ bool *wanted = calloc(nr + 1, sizeof(*wanted));

	if (wanted == NULL)
		return uni_err_nomem(err);
	for (size_t i = 0; i < nr; i++)
		wanted[i] = fnmatch(glob,
				    uni_profile_str(p, uni_profile_get_frame(p, (uint32_t)i)->name),
				    0) == 0;
	for (size_t i = 0; i < r->entries.nr; i++) {
		const struct uni_diff_entry *e = &r->entries.v[i];
		const struct uni_diff_work w = { .t_ns = e->t_ns, .units = e->value };

		if (e->node != UNI_NODE_ROOT && wanted[uni_profile_node(p, e->node)->frame] &&
			!uni_vec_push(&r->work, w))
			return uni_err_nomem(err);
	}
	return 0;
}

static int read_calls(const struct uni_source_args *args, bool count, struct uni_diff_read *r,
	struct uni_profile **ret, struct uni_err *err)
{
	struct collecting c = { .r = r, .to_ns = UINT64_MAX, .count = count };
	const struct uni_profile_calls_watch watch = { .ctx = &c, .added = collect_call };
	struct uni_profile_calls added = { 0 };
	struct uni_call_source *s = NULL;
	int rc = uni_call_source_open(args, &s, err);
	if (rc == 0)
		rc = uni_call_profile_make(
			uni_call_source_get(s), count, false, &watch, ret, &added, err);
	if (rc == 0)
		uni_call_source_note(s);
	uni_call_source_close(s);
	return rc;
}

/* The number of calls, of exits: entries of 1 each, and then those that match. */
static int read_work(const struct uni_source_args *args, const struct uni_diff_per *per,
	struct uni_diff_read *r, struct uni_err *err)
{
	struct collecting c = { .r = r, .to_ns = UINT64_MAX };
	const struct uni_build_watch watch = { .ctx = &c, .exit = collect_exit };
	_cleanup_free_ char *glob = NULL;
	struct uni_profile *p = NULL;
	struct uni_source s = { 0 };
	int rc;

	if (per->kind == UNI_DIFF_PER_CALL) {
		glob = strdup(per->glob);
		rc = read_calls(args, true, r, &p, err);
	} else {
		struct uni_source_args exits = *args;

		exits.exits = "count";
		exits.build.watch = &watch;
		if (asprintf(&glob, "[[]exit %s]", per->glob) < 0)
			glob = NULL;
		rc = uni_source_open(&exits, &s, err);
		p = s.profile;
		s.profile = NULL;
	}
	if (rc == 0)
		rc = glob != NULL ? take_work(r, p, glob, err) : uni_err_nomem(err);
	r->entries.nr = 0;
	uni_profile_destroy(p);
	if (rc == 0)
		uni_source_close(&s);
	if (rc == 0 && r->work.nr == 0)
		return uni_err_set(err, UNI_ENOENT, "%s has no %s '%s' to compare by", args->path,
			per->kind == UNI_DIFF_PER_CALL ? "call of a function" : "VM exit",
			per->glob);
	return rc;
}

#define PERIOD_MIN  1e4 /* ns: 100 kHz */
#define SAMPLES_MAX 1e8 /* at 1 kHz, more than a day */

static double gcd_of(double a, double b)
{
	while (b != 0) {
		double rest = fmod(a, b);

		a = b;
		b = rest;
	}
	return a;
}

static bool is_time_unit(const char *unit)
{
	static const char *const units[] = { "samples", "ns", "us", "ms", "s" };

	for (size_t i = 0; i < uni_array_len(units); i++) {
		if (strcmp(unit, units[i]) == 0)
			return true;
	}
	return false;
}

/*
 * The number of samples behind values without times. Values in nanoseconds are multiples of the
 * period of the profiler. 0: there is no such period. Files without a unit, such as folded stacks,
 * may hold samples or nanoseconds: a large period, or a sum that no recording has, tells.
 */
static double count_samples(const struct uni_profile *p)
{
	bool unit = strcmp(uni_profile_unit(p), "samples") != 0;
	double period = 0, sum = uni_profile_total(p);

	for (size_t i = 0; i < uni_profile_nr_nodes(p); i++) {
		double self = uni_profile_node(p, (uint32_t)i)->self;

		if (self != floor(self) || fabs(self) > 0x1p53)
			return unit ? 0 : sum;
		period = gcd_of(fabs(self), period);
	}
	if (!unit && period < PERIOD_MIN)
		return sum < SAMPLES_MAX ? sum : 0;
	/* Bytes and events are often multiples of a small number. */
	if (unit && !is_time_unit(uni_profile_unit(p)) && period < PERIOD_MIN)
		return 0;
	/* With one stack or none, any number would be the period. */
	return period > 1 && uni_profile_nr_nodes(p) > 2 && sum / period > 1 ? sum / period : 0;
}

static double seconds_of(const struct uni_source *s, const struct uni_part *part)
{
	const struct uni_record_stats *st = s->rec != NULL ? uni_recording_stats(s->rec) : NULL;
	uint64_t from, to;

	if (st == NULL)
		return 0;
	uni_part_window(part, st->begin_ns, &from, &to);
	from = uni_max(from, st->begin_ns);
	to = to != 0 ? uni_min(to, st->end_ns) : st->end_ns;
	return to > from ? (double)(to - from) / 1e9 : 0;
}

/*
 * Seconds that a weight of 1 stands for. Periods in which no sample was taken or kept count as
 * those in which one was. A tick may have two samples of a vCPU, for what it did and for waiting.
 */
static double sample_seconds(const struct uni_source *s)
{
	const struct uni_record_meta *m = uni_recording_meta(s->rec);
	const struct uni_record_stats *st = uni_recording_stats(s->rec);
	double ticks = (double)st->ticks, kept = (double)st->weight, each = (double)st->samples;
	double scale = m->frequency > 0 ? 1 / m->frequency : 0;

	if (!m->threads)
		each = uni_min(each, ticks * m->nr_vcpus);
	if (ticks > 0 && each > 0 && kept > 0)
		scale *= (ticks + (double)st->skipped) / ticks * (each / kept);
	if (kept > 0)
		scale *= (kept + (double)st->lost) / kept;
	return scale;
}

/* All guests of the session: their samples are not of all time. */
static bool is_on_cpu_alone(const struct uni_source *s)
{
	uint32_t nr = s->rec != NULL ? uni_recording_nr_guests(s->rec) : 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct uni_recorded_guest g = uni_recording_guest(s->rec, i);

		if ((uni_method_flags(g.meta->method) & UNI_METHOD_ON_CPU) == 0)
			return false;
	}
	return nr != 0;
}

static int check_read(const struct uni_diff_read *r, const struct uni_source_args *args,
	const struct uni_diff_of *of, const struct uni_diff_per *per, struct uni_err *err)
{
	const struct uni_profile *p = r->run.p;

	if (!(uni_profile_total(p) > 0) || (r->run.entry != NULL && r->run.nr == 0))
		return uni_err_set(err, UNI_ENOENT, "%s holds nothing of %s to compare", args->path,
			of->whole);
	if (of->all_time && r->calls == NULL && is_on_cpu_alone(&r->s))
		return uni_err_set(err, UNI_ENOTSUP,
			"%s has samples of time on a CPU alone, as perf takes them of a process. "
			"--of wall needs a guest of kvm:, gdb: or xen:",
			args->path);
	if (per->kind == UNI_DIFF_PER_EACH && r->calls == NULL)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: --per call needs a function trace (`trace record`), and this is none",
			args->path);
	if (per->kind == UNI_DIFF_PER_NONE || of->exits != NULL || of->calls || r->calls != NULL ||
		r->run.scale > 0)
		return 0;
	return uni_err_set(err, UNI_ENOTSUP,
		"%s: --per needs sessions whose rate of samples is known, and this is none",
		args->path);
}

bool uni_diff_run_work(const char *path, struct uni_record_work *ret)
{
	struct uni_session s;

	if (uni_session_load(path, &s, NULL) != 0)
		return false;
	*ret = s.guest[0]->meta.work;
	uni_session_free_parsed(&s);
	return ret->command[0] != '\0';
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = ((const struct uni_diff_entry *)a)->t_ns;
	uint64_t y = ((const struct uni_diff_entry *)b)->t_ns;

	return (x > y) - (x < y);
}

/* perf sorts by time, but for what is joined from several files. False: not all have a time. */
static bool sort_imported(struct uni_diff_read *r)
{
	if (r->s.rec != NULL || r->entries.nr == 0 || r->entries.nr != r->s.stats.stacks)
		return false;
	qsort(r->entries.v, r->entries.nr, sizeof(r->entries.v[0]), compare_times);
	return true;
}

/* How busy the host was while the guests were traced. A clock of instructions stands meanwhile. */
static void take_host(struct uni_diff_read *r)
{
	const struct uni_recording *rec = r->s.rec;
	uint32_t nr = rec != NULL ? uni_recording_nr_guests(rec) : 0;

	r->host_known = nr != 0;
	for (uint32_t i = 0; i < nr; i++) {
		const struct uni_record_trace *t = &uni_recording_guest(rec, i).meta->trace;
		bool counts = uni_exact_is_there(uni_recording_path(rec), i);

		if (t->nr_cpus == 0)
			continue;
		r->host_known =
			r->host_known && (counts || t->host_on_ns != 0 || t->host_ready_ns != 0);
		r->host_on += counts ? 1 : (double)t->host_on_ns;
		r->host_ready += (double)t->host_ready_ns;
	}
}

static int read_values(const struct uni_source_args *args, const struct uni_diff_of *of,
	const struct uni_diff_per *per, struct uni_diff_read *r, struct uni_err *err)
{
	struct collecting c = { .r = r, .to_ns = UINT64_MAX };
	const struct uni_build_watch watch = { .ctx = &c,
		.sample = collect_sample,
		.exit = collect_exit,
		.imported = collect_imported };
	struct uni_source_args samples = *args;
	struct uni_record_work work;
	bool timed;
	int rc;

	/* If a command was recorded, its time alone counts. */
	if (per->kind == UNI_DIFF_PER_RUN && uni_diff_run_work(args->path, &work)) {
		c.from_ns = work.begin_ns;
		c.to_ns = work.end_ns;
	}
	samples.build.watch = &watch;
	rc = of->calls ? 0 : uni_source_open(&samples, &r->s, err);
	if (rc == 0 && (of->calls || uni_source_is_trace(&r->s)))
		rc = read_calls(args, of->calls, r, &r->calls, err);
	if (rc != 0)
		return rc;
	if (r->calls != NULL)
		take_host(r);
	timed = r->calls != NULL ||
		(r->s.rec != NULL && !uni_recording_meta(r->s.rec)->aggregate) || sort_imported(r);
	r->run.p = r->calls != NULL ? r->calls : r->s.profile;
	if (timed) {
		r->run.entry = r->entries.v;
		r->run.nr = r->entries.nr;
	}
	r->exact = r->calls == NULL && r->s.rec != NULL &&
		   uni_exact_is_there(uni_recording_path(r->s.rec), 0);
	if (timed)
		r->run.samples = (double)r->entries.nr;
	else if (!r->exact)
		r->run.samples = r->s.stats.samples > 0 && uni_diff_run_is_time(r)
					 ? r->s.stats.samples
					 : count_samples(r->run.p);
	r->seconds = seconds_of(&r->s, &args->part);
	if (per->kind == UNI_DIFF_PER_NONE)
		return 0;
	if (r->calls != NULL)
		r->run.scale = of->calls ? 1 : 1e-9;
	else if (r->exact)
		r->run.scale = 1;
	else if (of->exits == NULL && r->s.rec != NULL)
		r->run.scale = sample_seconds(&r->s);
	return 0;
}

bool uni_diff_run_is_time(const struct uni_diff_read *r)
{
	return is_time_unit(uni_profile_unit(r->run.p));
}

int uni_diff_run_read(const struct uni_source_args *args, const struct uni_diff_of *of,
	const struct uni_diff_per *per, struct uni_diff_read *r, struct uni_err *err)
{
	const struct uni_diff_work whole = { .units = 1 };
	int rc = 0;

	*r = (struct uni_diff_read){ 0 };
	if (per->kind == UNI_DIFF_PER_CALL || per->kind == UNI_DIFF_PER_EXIT)
		rc = read_work(args, per, r, err);
	else if (per->kind == UNI_DIFF_PER_RUN && !uni_vec_push(&r->work, whole))
		rc = uni_err_nomem(err);
	if (rc == 0)
		rc = read_values(args, of, per, r, err);
	r->run.each = per->kind == UNI_DIFF_PER_EACH;
	r->run.work = r->work.v;
	r->run.nr_work = r->work.nr;
	return rc == 0 ? check_read(r, args, of, per, err) : rc;
}

void uni_diff_run_close(struct uni_diff_read *r)
{
	if (r->s.profile != NULL || r->s.rec != NULL)
		uni_source_close(&r->s);
	uni_profile_destroy(r->calls);
	uni_vec_free(&r->entries);
	uni_vec_free(&r->work);
}
