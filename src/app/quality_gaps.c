/* SPDX-License-Identifier: BSD-2-Clause */
/* A report's lines about the times in which the guest did not run, and the parts between them. */
#include "app/quality.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/text.h"

static void put_part(struct uni_sink *out, uint32_t number, uint64_t weight, uint64_t pauses,
	const char way[UNI_QUALITY_METHOD])
{
	uni_sink_printf(out, "part %-5" PRIu32 " %" PRIu64 " sample%s, %" PRIu64 " pause%s: %s\n",
		number, weight, uni_plural(weight), pauses, uni_plural(pauses), way);
}

/* All but what is counted in the parts behind it. */
static void put_first_part(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	uint64_t weight = g->stats->weight, pauses = g->stats->pause.nr;
	char way[UNI_QUALITY_METHOD];
	bool any = false;

	for (uint32_t i = 0; i < g->meta->nr_gap; i++) {
		any = any || g->meta->gap[i].method[0] != '\0';
		weight -= uni_min(weight, g->meta->gap[i].weight);
		pauses -= uni_min(pauses, g->meta->gap[i].pauses);
	}
	if (!any)
		return;
	uni_quality_way(way, g->meta->method, g->meta->counts, g->meta->why);
	put_part(out, 1, weight, pauses, way);
}

static void put_restore(
	struct uni_sink *out, const struct uni_recorded_guest *g, const struct uni_record_gap *gap)
{
	const uint64_t t0 = g->stats->begin_ns;

	uni_sink_printf(out,
		"gap        between %.1f and %.1f s after the begin: a snapshot was restored, "
		"which "
		"set the guest's clock back by %.1f s\n",
		(double)(uni_max(gap->begin_ns, t0) - t0) / 1e9,
		(double)(uni_max(gap->end_ns, t0) - t0) / 1e9, (double)gap->back_ns / 1e9);
}

static void put_held(
	struct uni_sink *out, const struct uni_recorded_guest *g, const struct uni_record_gap *gap)
{
	uint64_t begin_ns = uni_max(gap->begin_ns, g->stats->begin_ns);

	uni_sink_printf(out, "gap        %.1f s long, %.1f s after the begin: %s\n",
		(double)(uni_max(gap->end_ns, begin_ns) - begin_ns) / 1e9,
		(double)(begin_ns - g->stats->begin_ns) / 1e9,
		gap->held == UNI_HELD_SIGNAL ? "a signal (SIGSTOP) had stopped its VMM"
		: gap->pid <= 0		     ? "somebody had stopped the domain"
					     : "its VMM had paused the guest");
}

void uni_quality_put_gaps(struct uni_sink *out, const struct uni_recorded_guest *g)
{
	char way[UNI_QUALITY_METHOD];
	uint32_t part = 1;

	put_first_part(out, g);
	for (uint32_t i = 0; i < g->meta->nr_gap; i++) {
		const struct uni_record_gap *gap = &g->meta->gap[i];
		uint64_t begin_ns = uni_max(gap->begin_ns, g->stats->begin_ns);

		if (gap->back_ns != 0)
			put_restore(out, g, gap);
		else if (gap->held != UNI_HELD_NOT)
			put_held(out, g, gap);
		if (!uni_record_gap_is_part(gap))
			continue;
		part++;
		uni_sink_printf(out, "gap        %.1f s long, %.1f s after the begin: ",
			(double)(uni_max(gap->end_ns, begin_ns) - begin_ns) / 1e9,
			(double)(begin_ns - g->stats->begin_ns) / 1e9);
		if (gap->pid > 0)
			uni_sink_printf(out, "its VMM had ended; pid %d had it then\n", gap->pid);
		else
			uni_sink_printf(out, "the domain had ended; a new one was it then\n");
		if (gap->method[0] == '\0')
			continue;
		uni_quality_way(way, gap->method, g->meta->counts, gap->why);
		put_part(out, part, gap->weight, gap->pauses, way);
	}
}
