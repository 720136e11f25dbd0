/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/checked.h"
#include "promise/model_priv.h"

uint32_t uni_promise_heir(const struct uni_promise_model *m, uint32_t who)
{
	while (m->all.v[who].heir != who)
		who = m->all.v[who].heir;
	return who;
}

/* Chains are as long as a program's loops, and each of their links is asked for. */
uint32_t uni_promise_meant(struct uni_promise_model *m, uint32_t who)
{
	if (who == UNI_PROMISE_NONE)
		return who;
	while (m->all.v[who].heir != who) {
		struct uni_promise *p = &m->all.v[who];

		p->heir = m->all.v[p->heir].heir;
		who = p->heir;
	}
	return who;
}

/* It has no code of its own that could be seen to work for its end. */
static bool is_passive(const struct uni_promise *p)
{
	return p->nr_runs == 0 && p->nr_waits == 0;
}

/* The promise that resolved one connection probably resolves the next one, too. */
static void mark_settlers(struct uni_promise_model *m)
{
	for (uint32_t i = 0; i < m->all.nr; i++) {
		const struct uni_promise *p = &m->all.v[i],
					 *heir = &m->all.v[uni_promise_heir(m, i)];
		bool owed =
			p->creator == UNI_PROMISE_NONE ? m->nobody_owes : m->all.v[p->creator].owes;

		if (owed && p->should_resolve && heir->fate != UNI_FATE_OPEN &&
			heir->resolver != UNI_PROMISE_NONE)
			m->all.v[heir->resolver].settles = true;
	}
}

void uni_promise_mark_needed(struct uni_promise_model *m)
{
	for (uint32_t i = 0; i < m->all.nr; i++) {
		struct uni_promise *p = &m->all.v[uni_promise_heir(m, i)];

		if (!m->all.v[i].should_resolve || p->fate != UNI_FATE_OPEN)
			continue;
		p->must_end = true;
		if (!is_passive(p))
			continue;
		if (p->creator == UNI_PROMISE_NONE) {
			m->nobody_owes = true;
			continue;
		}
		m->all.v[p->creator].owes = true;
		m->all.v[p->creator].owes_since =
			uni_max(m->all.v[p->creator].owes_since, p->begin);
	}
	mark_settlers(m);
	for (size_t i = 0; i < m->waits.nr; i++) {
		const struct uni_promise_wait *w = &m->waits.v[i];

		if (w->ready == UNI_PROMISE_OPEN && w->end == UNI_PROMISE_OPEN)
			m->all.v[uni_promise_heir(m, w->on)].awaited = true;
	}
}
