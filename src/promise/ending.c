/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "promise/model_priv.h"
#include "promise/query.h"

void uni_promise_builder_end(struct uni_promise_builder *b, uint64_t time)
{
	if (b->m.begin != UINT64_MAX && time > b->now)
		b->m.end = b->now = time;
}

void uni_promise_builder_lost(struct uni_promise_builder *b, uint64_t total, bool at_most)
{
	b->m.lost_at_most = at_most;
	if (total <= b->m.lost)
		return;
	b->m.lost = total;
	b->m.gaps++;
}

/* An ended promise's code may go on without further events: then its waits end when their value
 * came, or at once. */
static void end_late(struct uni_promise_wait *w)
{
	w->after_end = true;
	w->given_up = w->ready == UNI_PROMISE_OPEN;
	w->end = w->given_up ? w->begin : w->ready;
}

void uni_promise_end_waits(struct uni_promise_model *m, uint32_t who)
{
	const struct uni_promise *heir = &m->all.v[uni_promise_heir(m, who)];
	struct uni_promise *p = &m->all.v[who];
	uint64_t since = heir->end;

	if (heir->fate == UNI_FATE_BECAME || heir->fate == UNI_FATE_OPEN)
		return;
	for (uint32_t i = p->first_wait; i != UNI_PROMISE_NONE; i = m->waits.v[i].next) {
		struct uni_promise_wait *w = &m->waits.v[i];

		if (w->end != UNI_PROMISE_OPEN)
			break; /* all older ones have ended, too */
		p->nr_open--;
		/* Its own end ended all waits there were. */
		if (p->fate != UNI_FATE_BECAME || w->begin > heir->end) {
			end_late(w);
			continue;
		}
		since = w->begin;
		w->given_up = w->ready == UNI_PROMISE_OPEN;
		w->end = w->given_up || w->ready < heir->end ? heir->end : w->ready;
	}
	p->wait_ns += heir->end - since;
}

uint64_t uni_promise_open_wait_ns(const struct uni_promise_model *m, const struct uni_promise *p)
{
	uint64_t since = m->end;

	for (uint32_t i = p->first_wait;
		i != UNI_PROMISE_NONE && m->waits.v[i].end == UNI_PROMISE_OPEN;
		i = m->waits.v[i].next)
		since = m->waits.v[i].begin;
	return uni_promise_waited(p, since, m->end);
}

bool uni_promise_is_any_told(const struct uni_promise_model *m)
{
	for (size_t i = 0; i < m->all.nr; i++) {
		if (m->all.v[i].told)
			return true;
	}
	return false;
}

size_t uni_promise_unknown(
	const struct uni_promise_model *m, char ret[UNI_PROMISE_UNKNOWNS][UNI_PROMISE_UNKNOWN])
{
	size_t nr = 0;

	if (uni_promise_begin_unknown(m) && m->begin_told)
		(void)snprintf(ret[nr++], UNI_PROMISE_UNKNOWN,
			"%" PRIu64 " wait%s of what was open when the trace began", m->begin_missed,
			uni_plural(m->begin_missed));
	else if (uni_promise_begin_unknown(m))
		(void)snprintf(ret[nr++], UNI_PROMISE_UNKNOWN,
			"what %swaited already when the trace began, and for what",
			uni_promise_is_any_told(m) ? "else " : "");
	if (m->end_unnamed != 0)
		(void)snprintf(ret[nr++], UNI_PROMISE_UNKNOWN,
			"what %" PRIu64 " thread%s for at the end of the trace", m->end_unnamed,
			m->end_unnamed == 1 ? " waits" : "s wait");
	if (!m->end_told && m->waits.nr == 0)
		(void)snprintf(ret[nr++], UNI_PROMISE_UNKNOWN,
			"what waits at the end: the trace tells of no waits");
	if (m->lost != 0 || m->gaps != 0)
		(void)snprintf(ret[nr++], UNI_PROMISE_UNKNOWN, "what the missing events told");
	return nr;
}
