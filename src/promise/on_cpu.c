/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the host ran a guest at least, by looks at its counts that come late. */
#include "base/checked.h"
#include "promise/model_priv.h"
#include "promise/query_priv.h"

#define LATE_NS	 10000000 /* a tick of the slowest host: its counts are so old */
#define QUICK_NS 1000000  /* a look takes no longer */

int uni_promise_builder_on_cpu(
	struct uni_promise_builder *b, const struct uni_promise_on_cpu *look, uint64_t error_ns)
{
	struct uni_promise_model *m = &b->m;
	struct uni_promise_on_cpu add = *look;

	m->on_cpu_error = error_ns;
	add.late = 0;
	if (m->on_cpu.nr != 0) {
		const struct uni_promise_on_cpu *last = &m->on_cpu.v[m->on_cpu.nr - 1];

		if (look->ns <= last->ns || look->on_ns < last->on_ns ||
			look->stolen_ns < last->stolen_ns)
			return 0;
		add.late = last->late;
		if (look->on_ns - last->on_ns > LATE_NS + QUICK_NS &&
			look->on_ns - last->on_ns - LATE_NS - QUICK_NS > look->ns - last->ns)
			add.late++;
	}
	return uni_vec_push(&m->on_cpu, add) ? 0 : -UNI_ENOMEM;
}

static uint64_t less_or_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The first look at `ns` or later. */
static size_t first_at(const struct uni_promise_model *m, uint64_t ns)
{
	size_t lo = 0, hi = m->on_cpu.nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->on_cpu.v[mid].ns < ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The CPU time between two looks, less the part that may be outside of [from, to). */
static uint64_t outside_between(const struct uni_promise_on_cpu *a,
	const struct uni_promise_on_cpu *b, uint64_t from, uint64_t to)
{
	uint64_t on = b->on_ns - a->on_ns,
		 outside = less_or_zero(from, less_or_zero(a->ns, LATE_NS));

	if (__builtin_add_overflow(
		    outside, less_or_zero(b->ns, less_or_zero(to, QUICK_NS)), &outside) ||
		__builtin_add_overflow(outside, b->stolen_ns - a->stolen_ns, &outside))
		return 0;
	return uni_min(less_or_zero(on, outside), to - from);
}

uint64_t uni_promise_on_cpu_ns(const struct uni_promise_model *m, uint64_t from, uint64_t to)
{
	size_t first, last;
	uint64_t best = 0;

	if (__builtin_add_overflow(from, m->on_cpu_error, &from) || to < m->on_cpu_error)
		return 0;
	to -= m->on_cpu_error;
	if (from >= to)
		return 0;
	first = first_at(m, from);
	last = first_at(m, to);
	/* For a short time the looks right outside are more exact; for one in which it slept, those
	 * inside. */
	for (size_t i = first - (first != 0); i <= first && i < m->on_cpu.nr; i++) {
		for (size_t k = last - (last != 0); k <= last && k < m->on_cpu.nr; k++) {
			/* A count that caught up was too old before. */
			if (i < k && m->on_cpu.v[i].late == m->on_cpu.v[k].late)
				best = uni_max(best, outside_between(&m->on_cpu.v[i],
							     &m->on_cpu.v[k], from, to));
		}
	}
	return best;
}
