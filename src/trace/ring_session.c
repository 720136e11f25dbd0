/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring outlives the sessions that are recorded into it. This finds the records of one session. */
#include <string.h>

#include "trace/ring_priv.h"

void uni_ring_only(struct uni_ring *r, uint32_t session)
{
	r->one_session = r->info.tells_sessions;
	r->session = (uint16_t)session;
	for (unsigned i = 0; i < r->info.nr_cpus; i++) {
		r->cpu[i].in_session = false;
		r->cpu[i].from = (struct uni_ring_from){ .found = false };
	}
}

const struct uni_ring_from *uni_ring_from(const struct uni_ring *r, unsigned cpu)
{
	return &r->cpu[cpu].from;
}

bool uni_ring_has(const struct uni_ring *r, unsigned cpu)
{
	return !r->one_session || r->cpu[cpu].in_session;
}

/* Numbers wrap: those half a round ahead are newer. */
static bool is_older(const struct uni_ring *r, uint64_t told)
{
	return (int16_t)(UNI_TRACE_SESSION_OF_SUB(told) - r->session) < 0;
}

size_t uni_ring_cut_at(struct uni_ring *r, const struct uni_trace_cursor *at, size_t content)
{
	struct uni_trace_sub *s = &r->copy.head;
	const uint64_t *first =
		(const uint64_t *)(const void *)(r->copy.bytes + UNI_TRACE_SUB_HEAD);
	size_t words = (size_t)(at->at - first);

	s->extra_before += uni_ring_extra_words(r, first, at->at);
	memmove(r->copy.bytes + UNI_TRACE_SUB_HEAD, at->at,
		content - UNI_TRACE_SUB_HEAD - words * 8);
	s->words_before += words;
	s->ts_begin = at->now;
	return content - words * 8;
}

/* The whole of the copy is older. */
static void leave_out(struct uni_ring *r, struct uni_ring_cpu *c, size_t content)
{
	c->next_words = r->copy.head.words_before + (content - UNI_TRACE_SUB_HEAD) / 8;
	c->stats.guest_lost = r->copy.head.lost;
	c->stats.lapped = c->stats.torn = c->stats.lapped_words = 0;
}

/* The session begins with the record that comes next; `time`: when. */
static size_t begin_with(struct uni_ring *r, struct uni_ring_cpu *c,
	const struct uni_trace_cursor *at, uint64_t told, uint64_t time, size_t content)
{
	struct uni_trace_sub *s = &r->copy.head;

	content = uni_ring_cut_at(r, at, content);
	s->gaps = told;
	s->ts_begin = time;
	c->in_session = true;
	c->next_words = s->words_before;
	c->stats.lapped = c->stats.torn = c->stats.lapped_words = 0;
	c->from = (struct uni_ring_from){ .found = true,
		.seq = s->begin_seq,
		.words = s->words_before,
		.extra = s->extra_before,
		.lost = c->stats.guest_lost,
		.time = time };
	return content;
}

size_t uni_ring_cut_session(struct uni_ring *r, struct uni_ring_cpu *c, size_t content)
{
	const struct uni_trace_sub *s = &r->copy.head;
	struct uni_trace_cursor at = uni_trace_records(&r->info, s, content), before = at;
	struct uni_trace_record record;

	if (!r->one_session || c->in_session)
		return content;
	if (!is_older(r, s->gaps)) {
		/* If nothing is missing, the packet before was the last one of older sessions. */
		if (c->next_words != 0 && s->words_before == c->next_words)
			return begin_with(r, c, &at, s->gaps, s->ts_begin, content);
		c->in_session = true;
		return content;
	}
	while (uni_trace_next(&at, &record)) {
		if (record.kind == UNI_TRACE_KIND_SYNC &&
			!is_older(r, uni_trace_sync_told(&record)))
			return begin_with(r, c, &before, uni_trace_sync_told(&record),
				record.words[0], content);
		before = at;
	}
	leave_out(r, c, content);
	return UNI_TRACE_SUB_HEAD;
}
