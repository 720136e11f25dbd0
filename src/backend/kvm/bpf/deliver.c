/* SPDX-License-Identifier: BSD-2-Clause */
/* From the kernel side's records and counters to samples. */
#include <stdlib.h>
#include <string.h>

#include "arch/frame.h"
#include "arch/stop.h"
#include "base/checked.h"
#include "base/clock.h"
#include "backend/kvm/bpf/stream.h"

_Static_assert(UNI_BPF_GUEST == (int)UNI_VCPU_RUNNING && UNI_BPF_HALTED == (int)UNI_VCPU_HALTED &&
		       UNI_BPF_KVM == (int)UNI_VCPU_KVM && UNI_BPF_VMM == (int)UNI_VCPU_VMM &&
		       UNI_BPF_STOLEN == (int)UNI_VCPU_STOLEN,
	"both sides mean the same states");

static bool is_entry(const struct uni_kvm_stream *s, uint64_t pc)
{
	for (size_t i = 0; i < s->entries.nr; i++) {
		if (uni_range_has(s->entries.v[i].start, s->entries.v[i].size, pc))
			return true;
	}
	return false;
}

/* May a chain that ends because rbp is 0 be complete? */
static bool is_end(const struct uni_kvm_stream *s, const uint64_t *pc, uint16_t nr)
{
	uint64_t callee = nr < 2 ? 0 : nr == 2 ? pc[0] : pc[nr - 2] - 1;

	return nr != 0 && uni_hints_is_end(&s->hints, callee, nr == 1 ? pc[0] : pc[nr - 1] - 1);
}

static bool is_first(const struct uni_kvm_stream *s, const uint64_t *pc, uint16_t nr)
{
	return nr != 0 && uni_hints_is_first(&s->hints, nr == 1 ? pc[0] : pc[nr - 1] - 1);
}

/* A vCPU that waits for its start-up interrupt: nobody called that. */
static bool at_reset(const uint64_t *pc, uint16_t nr)
{
	return nr == 1 && pc[0] == 0xfff0;
}

/* Nobody called an entry point: frames beyond it are not part of the chain. */
static uint16_t cut_beyond_entry(
	const struct uni_kvm_stream *s, const uint64_t *pc, uint16_t nr, uint8_t *stop)
{
	for (uint16_t i = 0; i < nr && s->entries.nr != 0; i++) {
		if (!is_entry(s, i == 0 ? pc[0] : pc[i] - 1))
			continue;
		*stop = UNI_STOP_ROOT;
		return (uint16_t)(i + 1);
	}
	if (*stop == UNI_BPF_STOP_FP_0)
		*stop = is_end(s, pc, nr) || at_reset(pc, nr) ? UNI_STOP_ROOT : UNI_STOP_BADPTR;
	if (*stop == UNI_BPF_STOP_RA_0)
		*stop = is_first(s, pc, nr) ? UNI_STOP_ROOT : UNI_STOP_BADPC;
	return nr;
}

static bool is_exact(const struct uni_kvm_chain *c, uint16_t i)
{
	bool found = i == 0;

	for (size_t k = 0; k < uni_array_len(c->exact); k++)
		found |= c->exact[k] == i;
	return found;
}

static uint16_t find_guess(const struct uni_kvm_stream *s, const struct uni_kvm_chain *c)
{
	for (uint16_t i = 0; s->taken.places.nr != 0 && i + 1 < c->nr; i++) {
		if (uni_kvm_taken_is_guess(
			    &s->taken, c->pc[i] - (is_exact(c, i) ? 0 : 1), c->pc[i + 1]))
			return (uint16_t)(i + 1);
	}
	return 0;
}

void uni_kvm_stream_mark(struct uni_kvm_stream *s, const struct uni_kvm_chain *c, bool on)
{
	if (c != NULL && c->gap && c->nr > UNI_CHAIN_INNER)
		s->flags[UNI_CHAIN_INNER] = on ? UNI_FRAME_GAP : 0;
	for (size_t i = 0; c != NULL && i < uni_array_len(c->exact) && c->exact[i] != 0; i++)
		s->flags[c->exact[i]] = on ? UNI_FRAME_EXACT : 0;
	for (uint16_t i = c != NULL ? c->guess : 0; i != 0 && i < c->nr; i++)
		s->flags[i] = on ? s->flags[i] | UNI_FRAME_GUESS : 0;
}

static void hand_over(struct uni_kvm_stream *s, uint32_t vcpu, uint32_t state,
	const struct uni_kvm_chain *c, uint64_t t_ns, uint64_t weight)
{
	const struct uni_stream_sample sample = {
		.t_ns = t_ns,
		.weight = weight,
		.vcpu = vcpu,
		.stop = c != NULL ? c->stop : UNI_STOP_NOREGS,
		.state = state == UNI_BPF_VMM_IDLE ? UNI_VCPU_HALTED : (uint8_t)state,
		.vmm = state == UNI_BPF_VMM_IDLE,
		.nr = c != NULL ? c->nr : 0,
		.pc = c != NULL ? c->pc : NULL,
		.flags = s->flags,
	};

	if (weight == 0)
		return;
	s->delivered += weight;
	uni_kvm_stream_mark(s, c, true);
	s->sink->sample(s->sink->ctx, &sample);
	uni_kvm_stream_mark(s, c, false);
}

/* Converts time off the CPU to samples, one for each period; the rest is kept for the next time. */
static void hand_over_time(struct uni_kvm_stream *s, uint32_t vcpu, uint32_t state,
	const struct uni_kvm_chain *c, uint64_t t_ns, uint64_t ns)
{
	uint64_t *carry;

	if (vcpu >= s->nr_vcpus || ns == 0)
		return;
	carry = &s->vcpu[vcpu].carry[state];
	ns += *carry;
	*carry = ns % s->period_ns;
	hand_over(s, vcpu, state, c, t_ns, ns / s->period_ns);
}

const struct uni_kvm_chain *uni_kvm_stream_chain(struct uni_kvm_stream *s, uint64_t number)
{
	if (number >= s->chains.nr || s->chains.v[number].pc == NULL)
		return NULL;
	return &s->chains.v[number];
}

static uint16_t nr_frames(const struct uni_bpf_rec *r)
{
	return (uint16_t)(r->nr & ~UNI_BPF_GAP);
}

static void define_chain(struct uni_kvm_stream *s, const struct uni_bpf_rec *r, const uint64_t *pc)
{
	struct uni_kvm_chain *c;
	uint16_t nr = nr_frames(r);

	if (r->chain >= s->bpf->guest[s->guest].max_chains)
		return;
	while (s->chains.nr <= r->chain) {
		if (!uni_vec_push(&s->chains, (struct uni_kvm_chain){ 0 }))
			return;
	}
	c = &s->chains.v[r->chain];
	if (c->pc != NULL)
		return;
	c->pc = malloc(nr * sizeof(*pc) + 1);
	if (c->pc == NULL)
		return;
	memcpy(c->pc, pc, nr * sizeof(*pc));
	c->gap = nr != r->nr;
	c->stop = r->stop;
	c->vcpu = r->number;
	memcpy(c->exact, r->exact, sizeof(c->exact));
	c->nr = cut_beyond_entry(s, c->pc, nr, &c->stop);
	c->guess = find_guess(s, c);
}

uint32_t uni_kvm_stream_define(
	struct uni_kvm_stream *s, uint32_t vcpu, const uint64_t *pc, uint16_t nr, uint8_t stop)
{
	struct uni_bpf_guest *g = &s->bpf->guest[s->guest];
	struct uni_bpf_rec r = { .number = vcpu, .nr = nr, .stop = stop };

	/* Programs may be assigning numbers at the same time. */
	r.chain = __atomic_fetch_add(&g->nr_chains, 1, __ATOMIC_RELAXED);
	define_chain(s, &r, pc);
	return uni_kvm_stream_chain(s, r.chain) != NULL ? r.chain : UNI_BPF_NONE;
}

static void inline_sample(struct uni_kvm_stream *s, const struct uni_bpf_rec *r, uint64_t *pc)
{
	struct uni_kvm_chain c = { .pc = pc, .stop = r->stop, .gap = nr_frames(r) != r->nr };

	memcpy(c.exact, r->exact, sizeof(c.exact));
	c.nr = cut_beyond_entry(s, pc, nr_frames(r), &c.stop);
	c.guess = find_guess(s, &c);
	hand_over(s, r->number, r->state, &c, r->t_ns, 1);
}

int uni_kvm_stream_record(void *ctx, void *data, size_t size)
{
	struct uni_kvm_stream *s = ctx;
	const struct uni_bpf_rec *r = data;
	uint64_t pc[UNI_BPF_FRAMES];
	struct uni_bpf_off off;

	if (size < sizeof(*r) || s->sink == NULL)
		return 0;
	if (r->type == UNI_BPF_SAMPLE) {
		hand_over(s, r->number, r->state, uni_kvm_stream_chain(s, r->chain), r->t_ns, 1);
		return 0;
	}
	if (r->type == UNI_BPF_OFF && size >= sizeof(*r) + sizeof(off)) {
		memcpy(&off, r + 1, sizeof(off));
		hand_over_time(s, r->number, r->state, uni_kvm_stream_chain(s, r->chain), r->t_ns,
			off.idle_ns);
		hand_over_time(s, r->number, UNI_BPF_STOLEN, uni_kvm_stream_chain(s, r->chain),
			r->t_ns + off.idle_ns, off.stolen_ns);
		return 0;
	}
	if (nr_frames(r) > UNI_BPF_FRAMES || size < sizeof(*r) + nr_frames(r) * sizeof(pc[0]))
		return 0;
	memcpy(pc, r + 1, nr_frames(r) * sizeof(pc[0]));
	if (r->type == UNI_BPF_CHAIN)
		define_chain(s, r, pc);
	else if (r->type == UNI_BPF_INLINE)
		inline_sample(s, r, pc);
	return 0;
}

static bool is_time(uint32_t state)
{
	return state == UNI_BPF_HALTED || state == UNI_BPF_STOLEN || state == UNI_BPF_VMM_IDLE;
}

void uni_kvm_stream_counts(struct uni_kvm_stream *s)
{
	uint64_t now = uni_now_ns();

	for (size_t i = 0; i < s->chains.nr; i++) {
		struct uni_kvm_chain *c = &s->chains.v[i];
		const uint64_t *counts = s->counts + i * UNI_BPF_STATES;

		for (uint32_t state = 0; c->pc != NULL && state < UNI_BPF_STATES; state++) {
			uint64_t n = __atomic_load_n(&counts[state], __ATOMIC_RELAXED);
			uint64_t more = n - c->seen[state];

			c->seen[state] = n;
			if (more == 0)
				continue;
			if (is_time(state))
				hand_over_time(s, c->vcpu, state, c, now, more);
			else
				hand_over(s, c->vcpu, state, c, now, more);
		}
	}
}

void uni_kvm_stream_open_ends(struct uni_kvm_stream *s)
{
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		struct uni_kvm_stream_vcpu *v = &s->vcpu[i];
		const struct uni_bpf_vcpu *m = &s->bpf->vcpu[v->index];
		const struct uni_kvm_chain *c = uni_kvm_stream_chain(s, m->out_chain);
		uint32_t state = m->out_state == UNI_BPF_STOLEN ? UNI_BPF_HALTED : m->out_state;

		uint64_t t_ns = s->cfg.ordered ? m->out_ns : uni_now_ns();

		hand_over_time(s, i, state % UNI_BPF_STATES, c, t_ns, v->end_idle);
		hand_over_time(s, i, UNI_BPF_STOLEN, c, t_ns, v->end_stolen);
	}
}
