/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/walk_stops.h"

#include <stdlib.h>

#include "base/checked.h"
#include "trace/walk_packets.h"
#include "trace/walk_threads.h"

/* Hardly any packet has one: a look at its words is much quicker than to follow its records. */
static bool may_stop(const struct uni_trace_packet *p)
{
	const uint64_t *words = (const uint64_t *)(const void *)p->head;

	for (size_t i = UNI_TRACE_SUB_HEAD / 8; i < p->content / 8; i++) {
		if (words[i] >> 32 == UNI_TRACE_STOPS)
			return true;
	}
	return false;
}

static bool find_in(struct uni_walk *w, unsigned cpu, const struct uni_trace_packet *p)
{
	struct uni_trace_cursor at = uni_trace_records(&w->in->info, p->head, p->content);
	struct uni_trace_record rec;

	while (uni_trace_next(&at, &rec)) {
		if (uni_walk_is_stop(&rec) &&
			!uni_vec_push(&w->stops, rec.time + w->cpu[cpu].offset))
			return false;
	}
	return true;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool uni_walk_stops_find(struct uni_walk *w)
{
	if (w->stops_known || w->nr_cpus == 1)
		return true;
	w->stops_known = true;
	for (unsigned cpu = 0; cpu < w->nr_cpus; cpu++) {
		struct uni_trace_packet p = { 0 };
		uint64_t ignored = 0;

		while (uni_trace_packet(w->in, cpu, p.next, NULL, &p, &ignored) != 0) {
			if (may_stop(&p) && !find_in(w, cpu, &p))
				return false;
		}
	}
	if (w->stops.nr != 0)
		qsort(w->stops.v, w->stops.nr, sizeof(*w->stops.v), by_time);
	return true;
}

uint64_t uni_walk_stops_next(const struct uni_walk *w)
{
	uint64_t next = w->next_stop < w->stops.nr ? w->stops.v[w->next_stop] : UNI_WALK_NEVER;

	return uni_min(next, w->stop.until);
}

void uni_walk_stops_pass(struct uni_walk *w, uint64_t time)
{
	while (w->next_stop < w->stops.nr && w->stops.v[w->next_stop] <= time)
		w->next_stop++;
	if (w->stop.by != NULL && w->stop.until <= time)
		uni_walk_stop(w);
}

void uni_walk_stop_comes(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time)
{
	if (w->nr_cpus == 1 || w->stop.by != NULL)
		return;
	w->stop.by = c;
	w->stop.time = time;
	w->stop.until = time + uni_min((uint64_t)UNI_WALK_STOP_SLACK, UNI_WALK_NEVER - 1 - time);
}

void uni_walk_stop(struct uni_walk *w)
{
	/* Not before events that were reported already. */
	uint64_t now = uni_max(w->stop.time, uni_min(w->end, w->stop.until));

	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		struct uni_walk_cpu *c = &w->cpu[i];
		uint64_t time = uni_max(now, uni_walk_time_of(c));

		if (c == w->stop.by || !c->begun)
			continue;
		uni_walk_cut(w, c, 1, time, UNI_CALL_CUT | UNI_WALK_RAN);
		uni_walk_forget(w, c, time);
	}
	w->stop.by = NULL;
	w->stop.until = UNI_WALK_NEVER;
}
