/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/walk_packets.h"

#include "base/checked.h"
#include "trace/record.h"
#include "trace/walk_threads.h"

void uni_walk_forget(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t time)
{
	w->losses++;
	if (!w->thread[c->thread].known)
		return;
	uni_walk_unknown_thread(w, c);
	if (w->ops->switched != NULL)
		w->ops->switched(w, c, time);
}

void uni_walk_lose(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t count, uint64_t time)
{
	uni_walk_cut(w, c, 1, uni_walk_time_of(c), UNI_CALL_CUT);
	if (uni_only_passes(w->filter.cpu, (uint64_t)(c - w->cpu)))
		w->stats.lost += count;
	if (w->ops->other != NULL)
		w->ops->other(w, c, time, UNI_CALL_LOST, count, c->thread);
	uni_walk_forget(w, c, time);
}

void uni_walk_gap(struct uni_walk *w, struct uni_walk_cpu *c, uint64_t gaps)
{
	c->gaps = gaps;
	uni_walk_cut(w, c, 1, uni_walk_time_of(c), UNI_CALL_CUT);
}

/* Which thread runs where is known still, for switches are recorded whatever is traced. */
void uni_walk_gap_told(struct uni_walk *w, uint64_t gaps, uint64_t time)
{
	bool first = w->gaps == 0;

	if (w->gaps == gaps)
		return;
	w->gaps = gaps;
	if (first)
		return;
	w->losses++;
	for (uint32_t i = 0; i < w->nr_cpus; i++) {
		struct uni_walk_cpu *c = &w->cpu[i];

		if (c->begun && c->gaps != gaps)
			uni_walk_cut(w, c, 1, uni_max(time, uni_walk_time_of(c)), UNI_CALL_CUT);
	}
}

static void next_packet(struct uni_walk *w, struct uni_walk_cpu *c)
{
	unsigned cpu = (unsigned)(c - w->cpu);
	struct uni_trace_packet p;

	if (c->begun && c->packet.lost != 0) {
		uni_walk_lose(w, c, c->packet.lost, uni_walk_time_of(c));
		c->packet.lost = 0;
		return;
	}
	if (uni_trace_packet(w->in, cpu, c->packet.next, c->begun ? &c->packet : NULL, &p,
		    &w->stats.damaged) == 0) {
		c->packet.next = w->in->cpu[cpu].size;
		c->at = c->end = NULL;
		return;
	}
	if (c->begun && uni_walk_is_gap(c, uni_trace_sub_gaps(p.head))) {
		uni_walk_gap(w, c, uni_trace_sub_gaps(p.head));
		return;
	}
	if (c->begun && p.head->ts_begin + c->offset < uni_walk_time_of(c)) {
		/* The counter jumped back: a new epoch. Time does not advance until the counter is
		 * past the old value. */
		c->offset = uni_walk_time_of(c) - p.head->ts_begin;
		w->stats.epochs++;
	}
	if (p.lapped != 0)
		uni_walk_lose(w, c, p.lapped, p.head->ts_begin + c->offset);
	if (uni_trace_sub_gaps(p.head) != 0)
		c->gaps = uni_trace_sub_gaps(p.head);
	if (!c->begun && c->gaps != 0)
		w->gaps = uni_min(w->gaps - 1, c->gaps - 1) + 1;
	c->packet = p;
	c->begun = true;
	c->now = p.head->ts_begin;
	c->at = (const uint64_t *)(const void *)p.head;
	c->end = c->at + p.content / 8;
	c->at += UNI_TRACE_SUB_HEAD / 8;
}

/* A loss cuts calls on other CPUs, too, and so does a gap: it has to wait for its turn. */
static bool loss_comes(const struct uni_walk *w, const struct uni_walk_cpu *c, uint64_t *time_ret)
{
	struct uni_trace_packet p;
	uint64_t ignored = 0;

	if (!c->begun || w->nr_cpus == 1)
		return false;
	*time_ret = uni_walk_time_of(c);
	if (c->packet.lost != 0)
		return true;
	if (uni_trace_packet(
		    w->in, (unsigned)(c - w->cpu), c->packet.next, &c->packet, &p, &ignored) == 0 ||
		(p.lapped == 0 && !uni_walk_is_gap(c, uni_trace_sub_gaps(p.head))))
		return false;
	if (uni_walk_is_gap(c, uni_trace_sub_gaps(p.head)))
		return true;
	*time_ret = uni_max(p.head->ts_begin + c->offset, *time_ret);
	return true;
}

/* Time of the record at c->at. The time before it may be long ago: a record of the complete time
 * shows it. */
static uint64_t next_time(const struct uni_walk *w, const struct uni_walk_cpu *c)
{
	uint64_t time = c->now + (uint32_t)((uint32_t)*c->at - (uint32_t)c->now);

	if (w->in->info.kinds[*c->at >> 32 & 15] == UNI_TRACE_KIND_SYNC && c->end - c->at > 2)
		time = uni_max(time, c->at[1]);
	return time + c->offset;
}

void uni_walk_peek(struct uni_walk *w, struct uni_walk_cpu *c)
{
	size_t left = w->in->cpu[c - w->cpu].size;

	if (c->losing && c->at != c->end) {
		uni_walk_gap(w, c, uni_walk_gaps_at(w, c));
		c->losing = false;
	}
	while (c->at == c->end && (c->packet.next < left || c->packet.lost != 0)) {
		if (!c->losing && loss_comes(w, c, &c->next)) {
			c->losing = true;
			return;
		}
		c->losing = false;
		next_packet(w, c);
	}
	if (c->at == c->end) {
		c->next = UNI_WALK_NEVER;
		return;
	}
	c->next = next_time(w, c);
	c->losing = w->nr_cpus > 1 && uni_walk_is_gap(c, uni_walk_gaps_at(w, c));
	if (c->losing)
		c->next = uni_walk_time_of(c);
	w->begin = uni_min(w->begin, c->next);
}
