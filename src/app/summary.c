/* SPDX-License-Identifier: BSD-2-Clause */
#include "app/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "app/pace.h"
#include "app/quality.h"
#include "app/term.h"
#include "backend/spec.h"
#include "backend/target.h"

#define VCPU_LINES 8 /* more vCPUs than this are summed up */

static bool may_sleep(const char *target)
{
	const struct uni_target_ops *ops;
	struct uni_spec spec;
	struct uni_err err = { 0 };

	if (uni_spec_parse(target, &spec, &err) != 0)
		return false;
	ops = uni_target_backend(spec.scheme);
	return ops != NULL && ops->may_sleep;
}

static void format_us(char *out, size_t cap, uint64_t ns)
{
	if (ns < 10 * UNI_NSEC_PER_MSEC)
		(void)snprintf(out, cap, "%.1f us", (double)ns / 1e3);
	else
		(void)snprintf(out, cap, "%.1f ms", (double)ns / 1e6);
}

static void tell_pauses(const char *of, const char *sep, const struct uni_record_meta *m,
	const struct uni_record_stats *st)
{
	double wall = uni_quality_seconds(st);
	char p50[32], p99[32], max[32];

	if (uni_quality_never_stopped(m, st))
		uni_note("%s%spauses none: the guest was never stopped", of, sep);
	if (st->pause.nr == 0 || wall <= 0)
		return;
	format_us(p50, sizeof(p50), st->pause.p50_ns);
	format_us(p99, sizeof(p99), st->pause.p99_ns);
	format_us(max, sizeof(max), st->pause.max_ns);
	uni_note(
		"%s%sguest paused %s per %s at the median (p99 %s, max %s), %.2f %% of the time in "
		"all",
		of, sep, p50, uni_quality_streamed(m) ? "look" : "sample", p99, max,
		(double)st->pause.sum_ns / 1e7 / wall);
}

/* perf events copy some of one stack: uniscope reads the rest of a deeper one afterwards. */
static void tell_guesses(const char *of, const char *sep, const struct uni_record_meta *m,
	const struct uni_record_stats *st)
{
	bool copied = uni_quality_is_unseen(m);

	if (st->guessed == 0)
		return;
	uni_note("%s%s%" PRIu64 " chain%s frames that were %sfound by searching the stack, and may "
		 "be wrong (%.2f %%)%s",
		of, sep, st->guessed, st->guessed == 1 ? " has" : "s have",
		copied ? "read after the sample or " : "",
		uni_quality_share(st->guessed, st->weight),
		copied ? ": perf events copy 32 KiB of one stack, from its pointer on. With "
			 "via=stop all of it is read in time"
		       : "");
}

static void tell_samples(const char *of, const char *sep, const struct uni_record_meta *m,
	const struct uni_record_stats *st)
{
	double complete = uni_quality_share(st->stop[UNI_STOP_ROOT], st->weight);
	/* A guest that samples itself has rings for more CPUs than may run: see tell_cost(). */
	uint32_t nr = st->silent < m->nr_vcpus ? m->nr_vcpus - st->silent : m->nr_vcpus;
	const struct uni_sample_filter on_cpu = { .on_cpu = true };
	char missed[96], taken[96] = "", chains[96] = "", text[UNI_QUALITY_METHOD];

	if (uni_quality_streamed(m))
		(void)snprintf(missed, sizeof(missed), "%" PRIu64 " lost", st->lost);
	else
		(void)snprintf(missed, sizeof(missed), "%" PRIu64 " late, %" PRIu64 " skipped",
			st->late, st->skipped);
	/* As the report says it. */
	if (!uni_quality_streamed(m) && st->weight > st->samples && st->skipped != 0)
		(void)snprintf(taken, sizeof(taken),
			"%" PRIu64 " taken, which stand for skipped deadlines, too; ", st->samples);
	/* No chain, no share; and none of a guest that stands still. */
	if (st->weight != 0 && !uni_quality_stands_still(st, &on_cpu))
		(void)snprintf(chains, sizeof(chains),
			", %" PRIu64 " chain%s cut short (%.2f %% complete)", st->truncated,
			uni_plural(st->truncated), complete);
	uni_note("%s%s%" PRIu64 " sample%s in %.1f s from %" PRIu32 " vCPU%s, %s%s%s", of, sep,
		st->weight, uni_plural(st->weight), uni_quality_seconds(st), nr, uni_plural(nr),
		taken, missed, chains);
	if (st->weight == 0 && uni_quality_seconds(st) * m->frequency < 2)
		uni_note("%s%sthat was too short for a sample at %g Hz", of, sep, m->frequency);
	else if (st->weight == 0 && m->left_off == 0 && may_sleep(m->target))
		uni_note("%s%sthe process ran on a CPU too little for a sample, if at all: "
			 "`uniscope stacks %s` "
			 "shows where it waits",
			of, sep, m->target);
	if (uni_quality_doubt(text, m, st, &on_cpu) != UNI_DOUBT_NONE)
		uni_note("%s%s%s", of, sep, text);
	if (uni_quality_short_lists(text, st))
		uni_note("%s%s%s", of, sep, text);
	if (uni_pace_looks(text, m, st, &on_cpu))
		uni_note("%s%s%s", of, sep, text);
	tell_guesses(of, sep, m, st);
	if (st->callers != 0)
		uni_note("%s%s[kernel] is divided among its callers by %" PRIu64
			 " look%s: an estimate",
			of, sep, st->callers, uni_plural(st->callers));
	if (uni_pace_limited(text, sizeof(text), m, st))
		uni_note("%s%s%s", of, sep, text);
}

static void tell_exits(const char *of, const char *sep, const struct uni_record_meta *m,
	const struct uni_record_stats *st)
{
	if (m->exits_every == 0)
		return;
	uni_note("%s%s%" PRIu64 " VM exits, %" PRIu64 " lost: see `report --exits`", of, sep,
		st->exits, st->exits_lost);
}

static void tell_times(const char *of, const char *sep, const struct uni_record_stats *st)
{
	struct uni_vcpu_times all = uni_quality_all_vcpus(st);
	char where[UNI_QUALITY_TEXT];

	if (st->nr_times > VCPU_LINES) {
		uni_quality_where(where, &all);
		uni_note("%s%s%" PRIu32 " vCPUs: %s", of, sep, st->nr_times, where);
		return;
	}
	for (uint32_t v = 0; v < st->nr_times; v++) {
		uni_quality_where(where, &st->times[v]);
		uni_note("%s%svCPU %" PRIu32 ": %s", of, sep, v, where);
	}
}

/* Reports further costs for the guest, and the actual number of samples. */
static void tell_cost(const char *of, const char *sep, const struct uni_record_stats *st)
{
	double wall = uni_quality_seconds(st);

	if (st->weight > st->samples)
		uni_note("%s%s%" PRIu64 " sample%s taken: of ticks that came late some stand "
			 "for several",
			of, sep, st->samples, st->samples == 1 ? " was" : "s were");
	if (st->silent != 0)
		uni_note("%s%s%" PRIu32 " more of its CPUs had no timer ticks, and so no samples",
			of, sep, st->silent);
	if (wall > 0)
		uni_note("%s%sthe guest spent %.2f %% of one CPU handing them over by its port", of,
			sep, (double)st->serve_ns / 1e7 / wall);
}

void uni_summary_guest(const char *of, const struct uni_record_meta *m,
	const struct uni_record_stats *st, enum uni_sampler_end end, const char *how)
{
	const char *sep = of[0] != '\0' ? ": " : "";
	char method[UNI_QUALITY_METHOD];
	double host_us = uni_quality_host_us(st);

	if (end == UNI_END_GONE)
		uni_note("%s%s%s" UNI_SUMMARY_KEPT, of, sep,
			how[0] != '\0' ? how : "the guest ended");
	/* Without samples there is nothing to say of them. */
	if (!uni_quality_exits_only(m))
		tell_samples(of, sep, m, st);
	tell_exits(of, sep, m, st);
	uni_quality_method(method, m);
	if (host_us >= 0 && !uni_quality_exits_only(m))
		uni_note("%s%s%s, %.2f us of the %s's time each", of, sep, method, host_us,
			uni_quality_inside(m) ? "guest" : "host");
	else if (uni_quality_streamed(m) || m->why[0] != '\0')
		uni_note("%s%s%s", of, sep, method);
	if (uni_quality_inside(m))
		tell_cost(of, sep, st);
	tell_pauses(of, sep, m, st);
	tell_times(of, sep, st);
}

void uni_summary_doubts(const struct uni_recording *rec, const struct uni_sample_filter *shown)
{
	for (uint32_t i = 0; i < uni_recording_nr_guests(rec); i++) {
		const struct uni_recorded_guest g = uni_recording_guest(rec, i);
		char text[UNI_QUALITY_METHOD], name[UNI_GUEST_NAME_MAX] = "";
		enum uni_doubt doubt;

		if (!uni_only_passes(shown->guest, i))
			continue;
		if (g.meta->stale[0] != '\0')
			uni_note("NOT EXACTLY THAT IMAGE: %s", g.meta->stale);
		if (uni_quality_exits_only(g.meta))
			continue;
		doubt = uni_quality_doubt(text, g.meta, g.shown, shown);
		if (doubt != UNI_DOUBT_NO_PROFILE && doubt != UNI_DOUBT_UNSURE)
			continue;
		if (uni_recording_nr_guests(rec) > 1)
			uni_recording_guest_name(rec, i, name);
		uni_note("%s%s%s: %s", name, name[0] != '\0' ? ": " : "",
			doubt == UNI_DOUBT_UNSURE ? "UNSURE" : "NO PROFILE", text);
	}
}

#define UNSURE_NAMES 5 /* the rest is a number */

static int compare_own(const void *a, const void *b)
{
	const struct uni_frame *const *x = a, *const *y = b;

	return ((*x)->own < (*y)->own) - ((*x)->own > (*y)->own);
}

void uni_summary_unsure(const struct uni_profile *p)
{
	size_t all = uni_profile_nr_frames(p), nr = 0;
	_cleanup_free_ const struct uni_frame **f =
		calloc(all + 1, sizeof(const struct uni_frame *));
	_cleanup_strbuf_ struct uni_strbuf text;

	uni_strbuf_init(&text);
	for (uint32_t i = 0; f != NULL && i < all; i++) {
		if (uni_frame_is_unsure(uni_profile_get_frame(p, i)))
			f[nr++] = uni_profile_get_frame(p, i);
	}
	if (nr == 0)
		return;
	qsort(f, nr, sizeof(const struct uni_frame *), compare_own);
	for (size_t i = 0; i < uni_min(nr, (size_t)UNSURE_NAMES); i++)
		uni_strbuf_addf(&text, "%s%s (%.0f %%)", i != 0 ? ", " : "",
			uni_profile_str(p, f[i]->name), 100.0 * f[i]->unsure / f[i]->own);
	if (nr > UNSURE_NAMES)
		uni_strbuf_addf(&text, " and %zu more", nr - UNSURE_NAMES);
	if (!uni_strbuf_failed(&text))
		uni_note("UNSURE: only where chains end is in doubt, and not who called. So many "
			 "of the "
			 "samples of these functions may be of their callers or of their callees: "
			 "%s",
			text.s);
}
