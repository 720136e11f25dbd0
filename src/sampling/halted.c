/* SPDX-License-Identifier: BSD-2-Clause */
/* Since when does a guest that is sampled by pausing sleep for good? */
#include "base/clock.h"
#include "base/hash.h"
#include "sampling/pauser.h"

#define LEAST_NS (100 * UNI_NSEC_PER_MSEC)

/* CPU time of all vCPUs; 0: not known. */
static uint64_t sum_on_cpu(const struct uni_pauser *s)
{
	uint64_t sum = 0, one;

	for (uint32_t v = 0; s->t->ops->on_cpu != NULL && v < s->nr_vcpus; v++) {
		if (s->t->ops->on_cpu(s->t, v, &one) == 0)
			sum += one;
	}
	return sum;
}

/* A loop at that place would have used the CPU since. */
static bool has_hardly_run(const struct uni_pauser *s)
{
	uint64_t cpu_ns = sum_on_cpu(s), past_ns = uni_now_ns() - s->halted_since_ns;

	return cpu_ns != 0 && past_ns >= LEAST_NS && cpu_ns - s->halted_cpu_ns < past_ns / 4;
}

void uni_pauser_note_halted(struct uni_pauser *s)
{
	const struct uni_arch *arch = s->t->arch;
	uint64_t key = 0;
	bool runs = false;

	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		const struct uni_regs *r = &s->cap->regs[v];

		if (r->state == UNI_VCPU_OFFLINE)
			continue;
		if ((r->state != UNI_VCPU_HALTED && r->state != UNI_VCPU_RUNNING) || arch == NULL ||
			arch->may_wake == NULL || arch->may_wake(r)) {
			s->halted_key = 0;
			return;
		}
		runs = runs || r->state == UNI_VCPU_RUNNING;
		key = uni_hash_pair(key, r->pc) | 1;
	}
	if (key == s->halted_key && (!runs || has_hardly_run(s))) {
		for (uint32_t v = 0; v < s->nr_vcpus; v++) {
			if (s->cap->regs[v].state == UNI_VCPU_RUNNING)
				s->cap->regs[v].state = UNI_VCPU_HALTED;
		}
		return;
	}
	s->halted_key = runs ? 0 : key;
	s->halted_since_ns = uni_now_ns();
	s->halted_cpu_ns = sum_on_cpu(s);
}
