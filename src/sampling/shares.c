/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/shares.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"

#define UNEVEN	   4.0 /* means: an account that is further off is evened out */
#define MEAN_OF	   8.0 /* samples, about */
#define PART_OF	   64.0
#define WEIGHT_MAX 4.0	/* means: no sample by chance becomes half of a profile */
#define SURE_MAX   16.0 /* the same, if a sample is surely of its kind */

enum kind { ON_CPU, WAITING, ASLEEP, NR_KINDS };

/* One vCPU. Accounts are in periods: its time less what its samples stand for. */
struct account {
	uint64_t held_ns, resumed_ns;
	uint64_t run_ns, wait_ns; /* the host's counts, when it was held last */
	uint64_t slot;		  /* of the last sample */
	double balance[NR_KINDS];
	double recent[NR_KINDS]; /* slow means of what is paid in */
	double mean;		 /* of slots between samples */
	bool known, sampled, interrupted;
};

struct uni_shares {
	struct uni_target *t;
	double period_ns;
	uint32_t nr_vcpus;
	struct account account[];
};

int uni_shares_create(struct uni_target *t, uint32_t nr_vcpus, double period_ns,
	struct uni_shares **ret, struct uni_err *err)
{
	struct uni_shares *s;

	*ret = NULL;
	if (t->ops->host_times == NULL)
		return 0;
	s = calloc(1, sizeof(*s) + nr_vcpus * sizeof(s->account[0]));
	if (s == NULL)
		return uni_err_nomem(err);
	s->t = t;
	s->nr_vcpus = nr_vcpus;
	s->period_ns = period_ns;
	*ret = s;
	return 0;
}

void uni_shares_destroy(struct uni_shares *s)
{
	free(s);
}

static void put_in(struct account *a, enum kind kind, double periods)
{
	a->balance[kind] += periods;
	a->recent[kind] += (periods - a->recent[kind]) / PART_OF;
}

/* The time since the hold before, to the accounts. That of the pause is shared out as the rest. */
static void pay_in(struct account *a, double period_ns, uint64_t now_ns, const uint64_t ran[2])
{
	double past = (double)(now_ns - a->resumed_ns), on = (double)ran[0], wait = (double)ran[1];
	double asleep, periods;

	/* The counts may be a little newer or older. */
	on = uni_min(on, past);
	wait = uni_min(wait, past - on);
	asleep = a->interrupted ? 0 : past - on - wait;
	periods = (double)(now_ns - a->held_ns) / period_ns;
	put_in(a, ON_CPU, periods * on / past);
	put_in(a, WAITING, periods * wait / past);
	put_in(a, ASLEEP, periods * asleep / past);
}

static void hold_one(
	struct uni_shares *s, uint32_t v, const struct uni_regs *regs, uint64_t since_ns)
{
	struct account *a = &s->account[v];
	uint64_t run_ns, wait_ns;

	if (regs->state == UNI_VCPU_UNKNOWN)
		return;
	if (regs->state == UNI_VCPU_OFFLINE ||
		s->t->ops->host_times(s->t, v, &run_ns, &wait_ns) != 0) {
		*a = (struct account){ .known = false };
		return;
	}
	if (a->known && since_ns > a->resumed_ns)
		pay_in(a, s->period_ns, since_ns,
			(const uint64_t[2]){ run_ns - uni_min(a->run_ns, run_ns),
				wait_ns - uni_min(a->wait_ns, wait_ns) });
	a->known = true;
	a->interrupted = false;
	a->held_ns = a->resumed_ns = since_ns;
	a->run_ns = run_ns;
	a->wait_ns = wait_ns;
}

void uni_shares_held(struct uni_shares *s, const struct uni_vcpuset *set,
	const struct uni_regs *regs, uint64_t since_ns)
{
	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if (uni_vcpuset_has(set, v))
			hold_one(s, v, &regs[v], since_ns);
	}
}

void uni_shares_resumed(struct uni_shares *s, const struct uni_vcpuset *set)
{
	uint64_t now_ns = uni_now_ns();

	for (uint32_t v = 0; v < s->nr_vcpus; v++) {
		if (uni_vcpuset_has(set, v))
			s->account[v].resumed_ns = now_ns;
	}
}

void uni_shares_interrupt(struct uni_shares *s)
{
	for (uint32_t v = 0; v < s->nr_vcpus; v++)
		s->account[v].interrupted = true;
}

/*
 * Periods of waiting for a CPU, among those that a sample of an awake vCPU stands for. How many
 * samples find it awake is by chance, and both accounts share that alike.
 */
static uint64_t stolen_of(const struct account *a, double weight)
{
	double awake = a->recent[ON_CPU] + a->recent[WAITING];
	double part = awake > 0 ? a->recent[WAITING] / awake : 0;
	double due = a->balance[WAITING] - part * (a->balance[ON_CPU] + a->balance[WAITING]);

	return (uint64_t)(uni_min(uni_max(due + part * weight, 0.0), weight) + 0.5);
}

static uint64_t weigh_up(const struct account *a, double slots, double balance, double most)
{
	double slack = UNEVEN * a->mean;
	double weight = uni_min(uni_max(slots, balance - slack), balance + slack);

	return (uint64_t)(uni_max(uni_min(weight, most * a->mean), 0.0) + 0.5);
}

/* The target knows what the vCPU did. */
static void draw_on_one(struct account *a, uint8_t state, double slots, struct uni_share *ret)
{
	enum kind kind = state == UNI_VCPU_HALTED    ? ASLEEP
			 : state == UNI_VCPU_RUNNING ? ON_CPU
						     : WAITING;

	*ret = (struct uni_share){ .own = weigh_up(a, slots, a->balance[kind], SURE_MAX) };
	a->balance[kind] -= (double)ret->own;
}

static void draw_on(struct account *a, uint8_t state, double slots, struct uni_share *ret)
{
	double awake = a->balance[ON_CPU] + a->balance[WAITING];

	*ret = (struct uni_share){ 0 };
	if (state == UNI_VCPU_HALTED) {
		ret->own = weigh_up(a, slots, a->balance[ASLEEP], WEIGHT_MAX);
		a->balance[ASLEEP] -= (double)ret->own;
		return;
	}
	ret->own = weigh_up(a, slots, awake, WEIGHT_MAX);
	if (state == UNI_VCPU_RUNNING) {
		ret->stolen = stolen_of(a, (double)ret->own);
		ret->own -= ret->stolen;
		a->balance[ON_CPU] -= (double)ret->own;
		a->balance[WAITING] -= (double)ret->stolen;
	} else {
		a->balance[WAITING] -= (double)ret->own;
	}
}

bool uni_shares_take(
	struct uni_shares *s, uint32_t vcpu, uint64_t slot, uint8_t state, struct uni_share *ret)
{
	struct account *a = &s->account[vcpu];
	bool first = !a->sampled;
	double slots = (double)(slot - a->slot);

	if (!a->known)
		return false;
	a->sampled = true;
	a->slot = slot;
	if (first) {
		memset(a->balance, 0, sizeof(a->balance));
		return false;
	}
	a->mean = a->mean > 0 ? a->mean + (slots - a->mean) / MEAN_OF : slots;
	if (s->t->ops->tells_waiting)
		draw_on_one(a, state, slots, ret);
	else
		draw_on(a, state, slots, ret);
	return true;
}
