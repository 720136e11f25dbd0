/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples that the guest takes of itself (uniscope/sample.h), from its rings. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/stream/stream.h"

#define LOOK_NS	  UNI_NSEC_PER_SEC /* time between looks at the counters and the clock */
#define LOOKS	  5
#define HZ_MIN	  UNI_NSEC_PER_MSEC /* a slower counter is not used */
#define STACK_MAX 2		    /* words at the stack pointer, in a record */

static struct uni_stream_target *stream_of(struct uni_target *base)
{
	return (struct uni_stream_target *)base;
}

static int read_guest(void *ctx, const struct uni_link_range *r, size_t nr)
{
	struct uni_stream_target *t = ctx;

	return uni_link_read_all(&t->link, r, nr);
}

int uni_stream_tsc(
	struct uni_target *base, uint64_t *ret, uint64_t *from_ns_ret, uint64_t *to_ns_ret)
{
	struct uni_stream_target *t = stream_of(base);
	uint64_t from = uni_now_ns();
	struct uni_stream_stats_body st;
	int rc = uni_link_ask_for(&t->link, UNI_STREAM_STATS, NULL, 0, &st, sizeof(st));

	if (rc != 0)
		return rc;
	*ret = st.now;
	t->s.served = st.cycles;
	*from_ns_ret = from;
	*to_ns_ret = uni_now_ns();
	return 0;
}

/* Reads the guest's counter together with our clock; of several looks, keeps the most exact one. */
static int look_at_clock(struct uni_stream_target *t, unsigned looks, struct uni_link_clock *ret)
{
	uint64_t best = UINT64_MAX;

	for (unsigned i = 0; i < looks; i++) {
		uint64_t tsc, from, to;
		int rc = uni_stream_tsc(&t->base, &tsc, &from, &to);

		if (rc != 0)
			return rc;
		if (i != 0 && to - from >= best)
			continue;
		best = to - from;
		*ret = (struct uni_link_clock){
			.tsc = tsc, .ns = from + best / 2, .off_ns = best / 2
		};
	}
	return 0;
}

/* If the guest does not know its counter's frequency, two looks give it. */
static void learn_hz(struct uni_stream_sampling *s, const struct uni_link_clock *now)
{
	uint64_t ns = now->ns - s->first.ns;

	if (s->hz == 0 && now->tsc > s->first.tsc && ns >= LOOK_NS / 2)
		s->hz = uni_max(
			(uint64_t)((__uint128_t)(now->tsc - s->first.tsc) * UNI_NSEC_PER_SEC / ns),
			HZ_MIN);
}

static uint64_t ns_of(const struct uni_stream_sampling *s, uint64_t tsc)
{
	uint64_t hz = s->hz != 0 ? s->hz : UNI_NSEC_PER_SEC;
	bool before = tsc < s->clock.tsc;
	uint64_t apart = before ? s->clock.tsc - tsc : tsc - s->clock.tsc;
	__uint128_t ns = (__uint128_t)apart * UNI_NSEC_PER_SEC / hz;

	if (before)
		return ns > s->clock.ns ? 0 : s->clock.ns - (uint64_t)ns;
	return ns > UINT64_MAX - s->clock.ns ? UINT64_MAX : s->clock.ns + (uint64_t)ns;
}

static uint8_t stop_of(uint64_t last)
{
	switch (last & UNI_TRACE_SAMPLE_END) {
	case UNI_TRACE_SAMPLE_OUTERMOST:
		return UNI_STOP_ROOT;
	case UNI_TRACE_SAMPLE_DEPTH:
		return UNI_STOP_LIMIT;
	default:
		return UNI_STOP_BADPTR;
	}
}

/* A chain, and the two words at the stack pointer. */
static void put_chain(struct uni_stream_raw *raw, const struct uni_ring_sample *s)
{
	raw->stack = (const uint8_t *)&s->word[3];
	raw->stack_size = STACK_MAX * 8;
	raw->pc = s->word + UNI_TRACE_SAMPLE_HEAD;
	raw->nr = (uint16_t)(s->nr_words - UNI_TRACE_SAMPLE_HEAD - 1);
	raw->stop = stop_of(s->word[s->nr_words - 1]);
	raw->regs.pc = raw->pc[0];
}

static void put_stack(struct uni_stream_raw *raw, const struct uni_ring_sample *s)
{
	raw->stack = (const uint8_t *)&s->word[UNI_TRACE_SAMPLE_STACK];
	raw->stack_size = (s->nr_words - UNI_TRACE_SAMPLE_STACK - 1) * 8;
	raw->regs.pc = s->word[3];
}

/* The numbers of the registers that class STACKS has, from its fifth word on (x86_64). */
static const uint8_t saved[] = { 3, 12, 13, 14, 15 };

/* Two stacks, and registers that rows may need. */
static void put_stacks(struct uni_stream_raw *raw, const struct uni_ring_sample *s)
{
	const uint64_t *copy = s->word + UNI_TRACE_SAMPLE_STACKS;
	uint64_t bytes = (s->nr_words - UNI_TRACE_SAMPLE_STACKS - 1) * 8u,
		 first = uni_min(s->word[UNI_TRACE_SAMPLE_STACKS - 1] & ~7ull, bytes);

	raw->stack = (const uint8_t *)copy;
	raw->stack_size = (size_t)first;
	raw->other = raw->stack + first;
	raw->other_size = (size_t)(bytes - first);
	raw->other_sp = s->word[UNI_TRACE_SAMPLE_STACKS - 2];
	raw->regs.pc = s->word[3];
	for (size_t i = 0; i < uni_array_len(saved); i++)
		uni_regs_set(&raw->regs, saved[i], s->word[4 + i]);
}

static void on_sample(void *ctx, const struct uni_ring_sample *s)
{
	struct uni_stream_target *t = ctx;
	uint64_t last = s->word[s->nr_words - 1], weight = UNI_TRACE_SAMPLE_WEIGHT(last);
	struct uni_stream_raw raw = { .t_ns = uni_min(ns_of(&t->s, s->tsc), uni_now_ns()),
		.weight = uni_max(weight, 1u),
		.vcpu = s->cpu,
		.alone = true,
		.thread = s->word[0] };

	raw.t_ns = uni_max(raw.t_ns, t->s.last_ns[s->cpu]);
	t->s.last_ns[s->cpu] = raw.t_ns;
	raw.regs.state = last & UNI_TRACE_SAMPLE_IDLE ? UNI_VCPU_HALTED : UNI_VCPU_RUNNING;
	if (s->class == UNI_TRACE_CLASS_SAMPLE_STACKS)
		put_stacks(&raw, s);
	else if (s->class == UNI_TRACE_CLASS_SAMPLE_STACK)
		put_stack(&raw, s);
	else
		put_chain(&raw, s);
	raw.regs.sp = s->word[1];
	uni_regs_set(&raw.regs, t->base.arch->sp_reg, s->word[1]);
	uni_regs_set(&raw.regs, t->base.arch->fp_reg, s->word[2]);
	raw.regs.pc_valid = raw.regs.sp_valid = true;
	t->s.stats.samples += raw.weight;
	t->s.records++;
	if (t->s.sink != NULL && t->s.sink->raw != NULL)
		t->s.sink->raw(t->s.sink->ctx, &raw);
}

/* Sums over all CPUs. */
static int read_samplers(struct uni_stream_target *t, bool first, struct uni_trace_sampler *ret)
{
	struct uni_trace_sampler sum = { 0 }, one = { 0 };
	int rc = 0;

	t->s.silent = 0;
	for (uint32_t i = 0; rc == 0 && i < t->about.nr_cpus; i++) {
		rc = uni_link_read(
			&t->link, t->about.samplers + i * sizeof(one), &one, sizeof(one));
		if (first)
			t->s.first_ticks[i] = one.ticks;
		t->s.silent += one.ticks == t->s.first_ticks[i];
		sum.samples += one.samples;
		sum.cycles += one.cycles;
		sum.lost += one.lost;
		sum.max_cycles = uni_max(sum.max_cycles, one.max_cycles);
		sum.tick_hz = i == 0 ? one.tick_hz : sum.tick_hz;
	}
	if (rc == 0)
		*ret = sum;
	return rc;
}

static uint64_t cycles_ns(const struct uni_stream_sampling *s, uint64_t cycles)
{
	return (uint64_t)((__uint128_t)cycles * UNI_NSEC_PER_SEC / uni_max(s->hz, HZ_MIN));
}

/* Reads the guest's counts; samples that it counts and that did not arrive are lost. */
static int look_at_counts(struct uni_stream_target *t)
{
	struct uni_stream_sampling *s = &t->s;
	struct uni_link_clock now;
	uint64_t made;
	int rc = look_at_clock(t, 1, &now);

	if (rc == 0)
		rc = read_samplers(t, false, &s->last);
	if (rc != 0)
		return rc;
	learn_hz(s, &now);
	/* An older look is used until the clocks may have drifted apart further. */
	if (now.off_ns <= s->clock.off_ns + (now.ns - s->clock.ns) / 10000)
		s->clock = now;
	made = s->last.samples - s->base.samples;
	s->stats.host_runs = made;
	s->stats.host_ns = cycles_ns(s, s->last.cycles - s->base.cycles);
	s->stats.silent = s->silent;
	s->stats.serve_ns = cycles_ns(s, s->served - s->serving);
	s->next_look_ns = uni_now_ns() + LOOK_NS;
	return 0;
}

static int begin_sampling(struct uni_stream_target *t, uint32_t hz)
{
	struct uni_stream_sampling *s = &t->s;
	struct uni_trace_head head;
	int rc = uni_link_read(&t->link, t->about.head, &head, sizeof(head));

	if (rc != 0)
		return rc;
	s->rings.read = read_guest;
	s->rings.sample = on_sample;
	s->rings.ctx = t;
	s->hz = head.tsc_hz >= HZ_MIN ? head.tsc_hz : 0;
	rc = look_at_clock(t, LOOKS, &s->first);
	s->clock = s->first;
	s->serving = s->served;
	if (rc == 0)
		rc = uni_rings_open(&s->rings, t->about.head);
	if (rc == 0)
		rc = read_samplers(t, true, &s->base);
	if (rc == 0)
		rc = uni_stream_set_word(
			t, t->about.head + offsetof(struct uni_trace_head, control.sample_hz), hz);
	s->stats.begin_ns = uni_now_ns();
	return rc;
}

int uni_stream_samples_start(struct uni_target *base, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err)
{
	struct uni_stream_target *t = stream_of(base);
	int rc;

	(void)hints;
	if (t->about.samplers == 0)
		return uni_err_set(err, UNI_ENOTSUP,
			"%s: the guest does not sample itself: it has to call uni_sample_init() "
			"and uni_sample_tick() (" UNI_GUEST_README ")",
			t->link.line.text);
	memset(&t->s, 0, sizeof(t->s));
	rc = begin_sampling(t, (uint32_t)uni_max(lround(cfg->frequency), 1l));
	if (rc == -UNI_EGONE)
		return uni_err_set(err, UNI_EGONE, "%s: %s", t->link.line.text, t->link.ended);
	if (rc != 0)
		return uni_err_set(err, (enum uni_errcode) - rc,
			"%s: the guest's sampler cannot be started: %s", t->link.line.text,
			uni_strerror(rc));
	t->s.on = true;
	return 0;
}

int uni_stream_samples_read(struct uni_target *base, const struct uni_stream_sink *sink)
{
	struct uni_stream_target *t = stream_of(base);
	int rc;

	t->s.sink = sink;
	rc = uni_rings_poll(&t->s.rings);
	t->s.sink = NULL;
	if (rc == 0 && (!t->s.on || uni_now_ns() >= t->s.next_look_ns))
		rc = look_at_counts(t);
	return rc;
}

void uni_stream_samples_stats(struct uni_target *base, struct uni_stream_stats *ret)
{
	const struct uni_stream_sampling *s = &stream_of(base)->s;

	*ret = s->stats;
	/* While it runs, some samples are always on their way. */
	if (!s->on && s->stats.host_runs > s->records)
		ret->lost = s->stats.host_runs - s->records;
}

int uni_stream_samples_stop(struct uni_target *base)
{
	struct uni_stream_target *t = stream_of(base);

	if (!t->s.on)
		return 0;
	t->s.on = false;
	return uni_stream_set_word(
		t, t->about.head + offsetof(struct uni_trace_head, control.sample_hz), 0);
}
