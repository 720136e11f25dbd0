/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes samples from the data of a tick: one for each vCPU, and one for each thread that is on
 * none. */
#include "base/checked.h"
#include "sampling/pauser.h"

/* Its number in the session; passes a new thread to the callback. */
static uint32_t thread_id(struct uni_pauser *s, const struct uni_guest_thread *t)
{
	const struct uni_record_thread *is_new;
	uint32_t id = uni_thread_ids_get(s->ids, t, &is_new);

	if (is_new != NULL && s->cfg->on_thread != NULL)
		s->cfg->on_thread(s->cfg->ctx, is_new);
	return id;
}

/* The thread that runs on the vCPU; 0: none, or the vCPU looks for one to run. */
static uint32_t thread_on(struct uni_pauser *s, uint32_t vcpu)
{
	const struct uni_capture *c = s->cap;
	const struct uni_thread_list *list;

	if (s->threads == NULL)
		return uni_vcpuset_has(&c->have_thread, vcpu) ? thread_id(s, &c->thread[vcpu]) : 0;
	list = uni_threads_list(s->threads);
	for (uint32_t i = 0; i < list->nr; i++) {
		if (list->v[i].vcpu == (int32_t)vcpu && list->v[i].state == UNI_THREAD_RUNNING)
			return thread_id(s, &list->v[i]);
	}
	return 0;
}

static void deliver_one(
	struct uni_pauser *s, const struct uni_chain *chain, struct uni_sample *sample)
{
	sample->guest = s->cfg->guest;
	sample->stop = chain->stop;
	sample->nr = chain->nr;
	sample->pc = chain->pc;
	sample->flags = chain->flags;
	s->stats.samples++;
	uni_record_stats_count(&s->stats, sample);
	uni_record_stats_place(&s->stats, sample, s->cfg->unwinder->hints);
	if (s->cfg->on_sample != NULL)
		s->cfg->on_sample(s->cfg->ctx, sample);
}

static uint64_t weight_of(const struct uni_pauser *s)
{
	return (s->caps & UNI_CAP_STILL) != 0 ? 1 : s->sched.weight;
}

static uint32_t pause_of(const struct uni_pauser *s, uint32_t vcpu)
{
	return (uint32_t)uni_min(s->cap->pause_ns[vcpu], (uint64_t)UINT32_MAX);
}

/* A sample of a vCPU that waited for a CPU of the host, too, is two. One that stands for nothing is
 * none. */
static void deliver_shares(
	struct uni_pauser *s, const struct uni_chain *chain, struct uni_sample *sample)
{
	struct uni_share share = { .own = weight_of(s) };

	if (s->shares != NULL)
		(void)uni_shares_take(s->shares, sample->vcpu, s->sched.k, sample->state, &share);
	sample->weight = share.own;
	if (share.own != 0)
		deliver_one(s, chain, sample);
	if (share.stolen == 0)
		return;
	sample->state = UNI_VCPU_STOLEN;
	sample->weight = share.stolen;
	deliver_one(s, chain, sample);
}

static void deliver_vcpu(struct uni_pauser *s, uint32_t vcpu)
{
	const struct uni_chain *chain = &s->cap->chain[vcpu];
	struct uni_sample sample = {
		.t_ns = s->cap->t_ns[vcpu],
		.vcpu = vcpu,
		.pause_ns = pause_of(s, vcpu),
		.state = uni_vcpuset_has(&s->cap->waited, vcpu) ? UNI_VCPU_STOLEN
								: s->cap->regs[vcpu].state,
	};

	if (chain->nr == 0) {
		s->stats.failed++;
		return;
	}
	if (s->cfg->lookout != NULL)
		uni_lookout_saw(s->cfg->lookout, chain->pc, chain->nr);
	if (s->ids != NULL)
		sample.thread = thread_on(s, vcpu);
	deliver_shares(s, chain, &sample);
}

/* The state of a thread that does not run; false: it gives no sample. */
static bool off_cpu_state(const struct uni_guest_thread *t, uint8_t *ret)
{
	switch (t->state) {
	case UNI_THREAD_READY:
	case UNI_THREAD_UNKNOWN:
		*ret = UNI_OFF_CPU_READY;
		return true;
	case UNI_THREAD_BLOCKED:
		*ret = UNI_OFF_CPU_BLOCKED;
		return true;
	case UNI_THREAD_SLEEPING:
		*ret = UNI_OFF_CPU_SLEEPING;
		return true;
	case UNI_THREAD_WAITING:
		*ret = UNI_OFF_CPU_WAITING;
		return true;
	default:
		return false;
	}
}

/* NULL: there is none. A blocked thread may still be on a vCPU: its scheduler found no other thread
 * and waits on this one's stack. Then the vCPU's chain is the thread's. */
static const struct uni_chain *off_cpu_chain(
	const struct uni_pauser *s, const struct uni_guest_thread *t, uint32_t i)
{
	static const struct uni_chain no_frames = { .stop = UNI_STOP_ROOT };
	const struct uni_chain *chain;

	if (!uni_model_has_chains(s->cfg->model))
		return &no_frames;
	chain = t->vcpu >= 0 && uni_vcpuset_has(&s->cap->have, (uint32_t)t->vcpu)
			? &s->cap->chain[t->vcpu]
			: uni_threads_chain(s->threads, i);
	return chain != NULL && chain->nr != 0 ? chain : NULL;
}

static void deliver_off_cpu(struct uni_pauser *s, uint32_t i)
{
	const struct uni_guest_thread *t = &uni_threads_list(s->threads)->v[i];
	const struct uni_chain *chain = off_cpu_chain(s, t, i);
	uint32_t vcpu = t->vcpu >= 0 ? (uint32_t)t->vcpu : 0;
	struct uni_sample sample = {
		.t_ns = s->cap->t_ns[vcpu],
		.vcpu = vcpu,
		.pause_ns = pause_of(s, vcpu),
	};

	if (!off_cpu_state(t, &sample.state))
		return;
	if (chain == NULL) {
		s->stats.failed++;
		return;
	}
	/* Without a stack, nothing else tells that it is there. */
	if (chain->nr == 0 && t->state == UNI_THREAD_UNKNOWN)
		return;
	sample.thread = thread_id(s, t);
	sample.weight = weight_of(s);
	deliver_one(s, chain, &sample);
}

void uni_pauser_deliver(struct uni_pauser *s)
{
	s->stats.ticks++;
	s->stats.failed += s->cap->unknown;
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if (uni_vcpuset_has(&s->cap->have, v))
			deliver_vcpu(s, v);
	}
	for (uint32_t i = 0; s->threads != NULL && i < uni_threads_list(s->threads)->nr; i++)
		deliver_off_cpu(s, i);
}
