/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a vCPU spent its wall time. Time off the CPU is exact, from the scheduler's own counts; the
 * samples divide the rest. Without a sample, it is not divided.
 */
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "backend/kvm/bpf/exits.h"

static uint64_t subtract_to_zero(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* The time since the thread left the CPU that the kernel side has not settled yet. */
static void pending_times(const struct uni_kvm_stream *s, const struct uni_bpf_vcpu *m,
	const struct uni_bpf_item *item, uint64_t *idle_ret, uint64_t *stolen_ret)
{
	uint64_t off = s->bpf->guest[s->guest].clock_off, out = m->out_clock, now, away, waited;

	*idle_ret = *stolen_ret = 0;
	if (out == 0 || item == NULL)
		return;
	if (off == 0)
		off = item->vcpu.now_ns - item->vcpu.clock;
	now = item->vcpu.now_ns - off; /* in the scheduler's clock */
	if (out == 1)
		out = m->out_ns - off;
	waited = subtract_to_zero(item->vcpu.delay, m->out_delay);
	if (item->vcpu.on_cpu != 0 && item->vcpu.arrival > out) {
		away = item->vcpu.arrival - out;
	} else {
		away = subtract_to_zero(now, out);
		if (item->vcpu.on_rq != 0 && item->vcpu.queued != 0)
			waited += subtract_to_zero(now, uni_max(item->vcpu.queued, out));
	}
	if (m->out_state == UNI_BPF_STOLEN)
		waited = away;
	*stolen_ret = uni_min(waited, away);
	*idle_ret = away - *stolen_ret;
}

/* `near`: where it is likely to be. */
static const struct uni_bpf_item *item_of(
	const struct uni_kvm_scan *scan, uint32_t id, uint32_t near)
{
	if (near < scan->nr_vcpus && scan->vcpu[near].id == id)
		return &scan->vcpu[near];
	for (uint32_t i = 0; i < scan->nr_vcpus; i++) {
		if (scan->vcpu[i].id == id)
			return &scan->vcpu[i];
	}
	return NULL;
}

void uni_kvm_stream_close_times(struct uni_kvm_stream *s)
{
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		struct uni_kvm_stream_vcpu *v = &s->vcpu[i];
		const struct uni_bpf_vcpu *m = &s->bpf->vcpu[v->index];

		if (v->since_ns != 0)
			pending_times(
				s, m, item_of(&s->scan, m->id, i), &v->end_idle, &v->end_stolen);
	}
}

/* A look sees all vCPUs: those that are asked for in rising order share one. */
static void look_now(struct uni_kvm_stream *s, uint32_t vcpu)
{
	if (s->seen_ns == 0 || vcpu <= s->seen_for) {
		s->seen_ok = uni_kvm_scan(s->bpf, s->pid, &s->scan, NULL) == 0;
		s->seen_ns = uni_now_ns();
	}
	s->seen_for = vcpu;
}

int uni_kvm_stream_times(struct uni_kvm_stream *s, uint32_t vcpu, struct uni_vcpu_times *ret)
{
	const struct uni_kvm_stream_vcpu *v = &s->vcpu[vcpu];
	const struct uni_bpf_vcpu *m;
	uint64_t wall, on, idle, stolen, n, end = s->stop_ns;

	memset(ret, 0, sizeof(*ret));
	if (vcpu >= s->nr_vcpus || v->since_ns == 0)
		return -UNI_ENOENT;
	m = &s->bpf->vcpu[v->index];
	idle = v->end_idle;
	stolen = v->end_stolen;
	if (s->running) {
		look_now(s, vcpu);
		if (s->seen_ok)
			pending_times(s, m, item_of(&s->scan, m->id, vcpu), &idle, &stolen);
		end = s->seen_ns;
	}
	wall = subtract_to_zero(end, v->since_ns);
	ret->idle_ns = uni_min(m->idle_ns + idle, wall);
	ret->stolen_ns = uni_min(m->stolen_ns + stolen, wall - ret->idle_ns);
	on = wall - ret->idle_ns - ret->stolen_ns;
	n = m->samples[UNI_BPF_GUEST] + m->samples[UNI_BPF_KVM] + m->samples[UNI_BPF_VMM];
	if (n != 0) {
		ret->kvm_ns = (uint64_t)((double)on * (double)m->samples[UNI_BPF_KVM] / (double)n);
		ret->vmm_ns = (uint64_t)((double)on * (double)m->samples[UNI_BPF_VMM] / (double)n);
		ret->guest_ns = subtract_to_zero(on, ret->kvm_ns + ret->vmm_ns);
	} else {
		ret->unsampled_ns = on;
	}
	ret->exits = uni_kvm_exits_of(s, vcpu);
	ret->split = (s->bpf->guest[s->guest].flags & UNI_BPF_SPLIT) != 0;
	return 0;
}
