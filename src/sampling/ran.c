/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/ran.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define LEAST_PART 8 /* of the time since: with less on a CPU, it has not run */
#define LEAST_NS   (100 * UNI_NSEC_PER_USEC) /* of a shorter time, CPU time says too little */

struct last {
	struct uni_regs regs;
	uint64_t at_ns, cpu_ns;
	bool known;
};

struct uni_ran {
	struct uni_target *t;
	uint32_t nr_vcpus;
	struct last last[];
};

int uni_ran_create(
	struct uni_target *t, uint32_t nr_vcpus, struct uni_ran **ret, struct uni_err *err)
{
	struct uni_ran *r;

	*ret = NULL;
	if (t->ops->cpu_most == NULL)
		return 0;
	r = calloc(1, sizeof(*r) + nr_vcpus * sizeof(r->last[0]));
	if (r == NULL)
		return uni_err_nomem(err);
	r->t = t;
	r->nr_vcpus = nr_vcpus;
	*ret = r;
	return 0;
}

void uni_ran_destroy(struct uni_ran *r)
{
	free(r);
}

void uni_ran_resumed(struct uni_ran *r, const struct uni_vcpuset *set, const struct uni_regs *regs)
{
	for (uint32_t v = 0; v < r->nr_vcpus; v++) {
		struct last *last = &r->last[v];

		if (!uni_vcpuset_has(set, v))
			continue;
		last->regs = regs[v];
		last->at_ns = uni_now_ns();
		last->known = regs[v].state == UNI_VCPU_RUNNING && regs[v].pc_valid &&
			      r->t->ops->cpu_most(r->t, v, &last->cpu_ns) == 0;
	}
}

static bool regs_equal(const struct uni_regs *a, const struct uni_regs *b)
{
	return a->valid == b->valid && a->pc == b->pc && a->sp == b->sp &&
	       memcmp(a->r, b->r, sizeof(a->r)) == 0;
}

void uni_ran_not(struct uni_ran *r, const struct uni_vcpuset *set, const struct uni_regs *regs,
	struct uni_vcpuset *ret)
{
	for (uint32_t v = 0; v < r->nr_vcpus; v++) {
		const struct last *last = &r->last[v];
		uint64_t cpu_ns, since_ns;

		if (!uni_vcpuset_has(set, v) || !last->known || regs[v].state != UNI_VCPU_RUNNING ||
			!regs_equal(&last->regs, &regs[v]) ||
			r->t->ops->cpu_most(r->t, v, &cpu_ns) != 0)
			continue;
		since_ns = uni_now_ns() - last->at_ns;
		if (since_ns >= LEAST_NS && cpu_ns - last->cpu_ns < since_ns / LEAST_PART)
			uni_vcpuset_add(ret, v);
	}
}
