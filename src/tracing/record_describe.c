/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about a recording of calls, for the session's description. */
#include <stdio.h>

#include "base/checked.h"
#include "tracing/record.h"

bool uni_trecord_runs(const struct uni_trecord_cfg *cfg)
{
	struct uni_target_info info;

	cfg->t->ops->info(cfg->t, &info);
	return (cfg->t->ops->caps(cfg->t) & (UNI_CAP_DEAD | UNI_CAP_STILL)) == 0 &&
	       info.rest[0] == '\0' && !info.stopped;
}

/* By offset, or by records whose writing was observed, at a known rate. */
static bool is_known(const struct uni_record_clock *c, uint64_t guest_hz)
{
	return c->error_ns != UINT64_MAX || (c->ns != 0 && guest_hz != 0);
}

/* Either may be NULL, or unknown. */
static bool is_better(const struct uni_record_clock *c, const struct uni_record_clock *than)
{
	if (c == NULL || (c->error_ns == UINT64_MAX && c->ns == 0))
		return false;
	return than == NULL || (than->error_ns == UINT64_MAX && c->error_ns != UINT64_MAX) ||
	       (than->error_ns == UINT64_MAX && than->ns == 0);
}

void uni_trecord_describe(const struct uni_trecord_cfg *cfg, struct uni_record_trace *ret)
{
	const struct uni_ring *ring = uni_tracer_ring(cfg->tracer);
	uint32_t nr = uni_min(uni_ring_info(ring)->nr_cpus, ret->nr_cpus);
	const struct uni_record_clock *known = NULL;

	uni_tclock_settle(cfg->clock);
	for (uint32_t i = 0; i < nr; i++) {
		struct uni_record_trace_cpu *c = &ret->cpu[i];
		const struct uni_ring_stats *st = uni_ring_stats(ring, i);

		uni_tstream_stats(cfg->out, i, c);
		c->lapped = st->lapped;
		c->torn = st->torn;
		c->after_freeze = st->after_freeze;
		uni_tclock_result(cfg->clock, uni_ring_info(ring), i, &c->clock);
		if (is_better(&c->clock, known))
			known = &c->clock;
	}
	/* Usually the counters of one machine are one counter: this helps CPUs with too few
	 * records. */
	for (uint32_t i = 0; i < nr; i++) {
		struct uni_record_clock *c = &ret->cpu[i].clock;

		if (is_better(known, c)) {
			*c = *known;
			c->error_ns = UINT64_MAX;
			(void)snprintf(c->source, sizeof(c->source), "other-cpu");
		}
	}
	if (cfg->host != NULL) {
		ret->on_cpu = cfg->host->all;
		ret->host_on_ns = cfg->host->sum.on_ns;
		ret->host_ready_ns = cfg->host->sum.ready_ns;
	}
	if (nr != 0 && !is_known(&ret->cpu[0].clock, ret->info.tsc_hz))
		ret->end_ns = 0;
}
