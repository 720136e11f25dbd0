/* SPDX-License-Identifier: BSD-2-Clause */
#include "top/rates.h"

#include "base/checked.h"
#include "base/clock.h"

static double ratio_or_zero(uint64_t a, uint64_t b)
{
	return b != 0 ? (double)a / (double)b : 0.0;
}

/* Counters of another process are not taken on trust: one that went back counts as unchanged. */
static uint64_t grown_since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

static void cost_per_sample(struct uni_top_quality *q, const struct uni_feed_status *st)
{
	q->host_ns = q->guest_ns = -1.0;
	if (st->inside && st->stats.host_runs != 0)
		q->guest_ns = ratio_or_zero(st->stats.host_ns, st->stats.host_runs);
	else if (st->stats.host_runs != 0)
		q->host_ns = ratio_or_zero(st->stats.host_ns, st->stats.host_runs);
	else if (!st->streams && st->stats.samples != 0)
		q->host_ns = ratio_or_zero(st->stats.own_cpu_ns, st->stats.samples);
}

static void rate_quality(struct uni_top *top, const struct uni_feed_status *st)
{
	const struct uni_record_stats *now = &st->stats, *before = &top->last.stats;
	uint64_t since_ns = top->last.at_ns != 0 ? top->last.at_ns : now->begin_ns;
	uint64_t wall_ns = grown_since(st->at_ns, since_ns);
	struct uni_top_quality *q = &top->quality;

	q->samples = top->sums.weight;
	q->complete = ratio_or_zero(top->sums.complete, top->sums.weight);
	q->dropped += st->dropped - top->last.dropped;
	if (st->at_ns == 0)
		return;
	/* No news since the last refresh: the old rates hold. */
	if (wall_ns != 0) {
		uint64_t taken = st->streams ? grown_since(now->weight, before->weight)
					     : grown_since(now->samples, before->samples);

		q->rate = 1e9 * ratio_or_zero(taken, wall_ns);
		q->host_cpu =
			ratio_or_zero(grown_since(now->own_cpu_ns, before->own_cpu_ns), wall_ns);
	}
	q->lost = now->lost;
	q->failed = now->failed;
	q->skipped = ratio_or_zero(now->skipped, now->ticks + now->skipped);
	q->paused = now->pause.nr != 0;
	q->duty = ratio_or_zero(now->pause.sum_ns, grown_since(now->end_ns, now->begin_ns)) /
		  top->setup.guests.nr;
	q->p50_ns = now->pause.p50_ns;
	q->p99_ns = now->pause.p99_ns;
	q->max_ns = now->pause.max_ns;
	cost_per_sample(q, st);
}

/* If the target has no counts, the states of the samples distinguish running from halted. */
static void vcpu_from_states(struct uni_top_vcpu *v, const uint64_t *state)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++)
		sum += state[i];
	*v = (struct uni_top_vcpu){
		.guest = -1, .kvm = -1, .vmm = -1, .idle = -1, .stolen = -1, .exits = -1
	};
	v->sampled = true;
	if (sum == 0)
		return;
	v->guest = ratio_or_zero(state[UNI_VCPU_RUNNING] + state[UNI_VCPU_UNKNOWN], sum);
	v->idle = ratio_or_zero(state[UNI_VCPU_HALTED], sum);
	if (state[UNI_VCPU_KVM] + state[UNI_VCPU_VMM] + state[UNI_VCPU_STOLEN] == 0)
		return;
	v->kvm = ratio_or_zero(state[UNI_VCPU_KVM], sum);
	v->vmm = ratio_or_zero(state[UNI_VCPU_VMM], sum);
	v->stolen = ratio_or_zero(state[UNI_VCPU_STOLEN], sum);
}

static void vcpu_from_times(struct uni_top_vcpu *v, const struct uni_vcpu_times *now,
	const struct uni_vcpu_times *before, uint64_t wall_ns, bool exits)
{
	uint64_t guest = grown_since(now->guest_ns, before->guest_ns);
	uint64_t kvm = grown_since(now->kvm_ns, before->kvm_ns);
	uint64_t vmm = grown_since(now->vmm_ns, before->vmm_ns);
	uint64_t unsampled = grown_since(now->unsampled_ns, before->unsampled_ns);
	uint64_t idle = grown_since(now->idle_ns, before->idle_ns);
	uint64_t stolen = grown_since(now->stolen_ns, before->stolen_ns);
	uint64_t sum = guest + kvm + vmm + unsampled + idle + stolen;

	if (sum == 0)
		return; /* nothing new */
	*v = (struct uni_top_vcpu){ .guest = ratio_or_zero(guest, sum),
		.kvm = ratio_or_zero(kvm, sum),
		.vmm = ratio_or_zero(vmm, sum),
		.unsampled = ratio_or_zero(unsampled, sum),
		.idle = ratio_or_zero(idle, sum),
		.stolen = ratio_or_zero(stolen, sum),
		.exits = -1.0,
		.split = now->split };
	if (exits && wall_ns != 0)
		v->exits = 1e9 * ratio_or_zero(grown_since(now->exits, before->exits), wall_ns);
}

void uni_top_rates(struct uni_top *top, const struct uni_feed_status *st)
{
	bool exits = false;
	uint64_t wall_ns =
		grown_since(st->at_ns, top->last.at_ns != 0 ? top->last.at_ns : st->stats.begin_ns);

	/* If exits are counted, at least one vCPU has some. */
	for (uint32_t i = 0; i < uni_top_nr_vcpus(top); i++)
		exits |= st->vcpu[i].times.exits != 0;
	rate_quality(top, st);
	for (uint32_t i = 0; i < uni_top_nr_vcpus(top); i++) {
		if (st->vcpu[i].timed)
			vcpu_from_times(&top->vcpus[i], &st->vcpu[i].times,
				&top->last.vcpu[i].times, wall_ns, exits);
		else
			vcpu_from_states(&top->vcpus[i], top->sums.state[i]);
	}
	uni_feed_status_copy(&top->last, st);
}
