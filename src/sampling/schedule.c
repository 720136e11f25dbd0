/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/schedule.h"

#include "base/checked.h"

#define MAX_NS	  (UINT64_MAX / 2) /* deadlines far in the future stop here */
#define CREDIT_NS 500000000.0	   /* of guest time that short pauses can save up for a long one */
#define RESERVE	  0.1 /* of the share, held back at most for a next pause that is a long one */
#define FORGET	  256 /* ticks, about, after which a pause no longer counts */

#define STEADY	 0.9 /* of the share: the rest is for pauses that vary */
#define PACE_MIX 0x9ace

#define MEAN_OF	   8.0 /* weights, about */
#define WEIGHT_MAX 4.0 /* means */

#define LAG_MAX_NS  1000000000.0 /* slots that are later are skipped */
#define CATCH_UP_NS 100000000.0	 /* the part 1/e of a delay is left after about this time */

#define AWAKE_MAX_NS 10000000u /* longer waits are no matter of waking up */

#define DRAIN_NS      200000000ull
#define DRAIN_MIN_NS  20000000ull
#define TURN_MIN_NS   10000000ull
#define DRAIN_SAMPLES 2000.0

/* splitmix64: the same slot always gets the same jitter, so nothing need be remembered. */
static uint64_t mix_bits(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t add_ns(uint64_t base, double ns)
{
	uint64_t sum;

	if (!(ns < (double)MAX_NS) || __builtin_add_overflow(base, (uint64_t)ns, &sum))
		return MAX_NS;
	return sum;
}

void uni_sched_init(struct uni_sched *s, uint64_t start_ns, double frequency, double max_duty,
	bool jitter, uint64_t seed)
{
	*s = (struct uni_sched){ .start_ns = start_ns,
		.seed = seed,
		.period_ns = 1e9 / frequency,
		.max_duty = max_duty,
		.jitter = jitter,
		.weight = 1,
		.mean_weight = 1.0 };
	/* No credit yet: from the start on, pauses are within their share of the time. */
	s->paid_ns = add_ns(start_ns, uni_max(s->period_ns, CREDIT_NS));
}

static double random_at(const struct uni_sched *s, uint64_t k)
{
	return (double)(mix_bits(s->seed ^ k) >> 11) * 0x1p-53;
}

/*
 * The place of slot k's deadline in its slot. Those of even slots are independent of each other. An
 * odd one keeps half a period to both neighbours, and is evenly distributed, too. For each pair of
 * halves that hold its neighbours, either its half is chosen, or both are equally likely.
 */
static double place_in_slot(const struct uni_sched *s, uint64_t k)
{
	double x = random_at(s, k), before, after;

	if (k % 2 == 0)
		return x;
	before = random_at(s, k - 1);
	after = random_at(s, k + 1);
	if (before < 0.5)
		return after < 0.5 ? x / 2 : x;
	if (after >= 0.5)
		return 0.5 + x / 2;
	return x < 0.5 ? before - 0.5 : after + 0.5;
}

static uint64_t slot_deadline(const struct uni_sched *s, uint64_t k)
{
	double in_slot = s->jitter ? place_in_slot(s, k) : 0.0;

	return add_ns(s->start_ns, ((double)k + in_slot) * s->period_ns);
}

/* The same with the schedule as far behind as it is. */
static uint64_t slot_due(const struct uni_sched *s, uint64_t k)
{
	return add_ns(slot_deadline(s, k), (double)s->lag_ns);
}

uint64_t uni_sched_deadline(const struct uni_sched *s)
{
	return uni_max(slot_due(s, s->k), s->gap_ns);
}

void uni_sched_served(struct uni_sched *s, uint64_t now_ns)
{
	uint64_t due_ns = slot_due(s, s->k);

	/* Half a period may be that between two samples. */
	if (now_ns <= add_ns(due_ns, s->skip_late ? s->period_ns / 2 : s->period_ns))
		return;
	if (s->skip_late) {
		s->late++;
		return;
	}
	s->late += (uint64_t)((double)(now_ns - due_ns) / s->period_ns + 0.5);
	s->lag_ns += now_ns - due_ns;
}

void uni_sched_sampled(struct uni_sched *s, uint64_t t_ns)
{
	s->gap_ns = add_ns(t_ns, s->period_ns / 2);
}

void uni_sched_paused(struct uni_sched *s, uint64_t begin_ns, uint64_t end_ns)
{
	if (s->max_duty >= 1.0 || end_ns <= begin_ns)
		return;
	s->paid_ns =
		add_ns(uni_max(s->paid_ns, begin_ns), (double)(end_ns - begin_ns) / s->max_duty);
	s->tick_ns += (double)(end_ns - begin_ns);
}

static void learn_tick(struct uni_sched *s)
{
	s->nr_ticks += s->nr_ticks < FORGET;
	s->mean_ns += (s->tick_ns - s->mean_ns) / s->nr_ticks;
	s->sum_ns += s->tick_ns;
	s->longest_ns = uni_max(s->tick_ns, s->longest_ns - s->longest_ns / FORGET);
	s->tick_ns = 0;
}

/* When the pauses since the start and one more keep to their share of the time. */
static uint64_t room_at(const struct uni_sched *s)
{
	double share = s->max_duty;

	if (share >= 1.0 || s->sum_ns <= 0)
		return 0;
	return add_ns(s->start_ns, uni_min((s->sum_ns + s->longest_ns) / share,
					   s->sum_ns / (share * (1.0 - RESERVE))));
}

/*
 * Deadlines before this are left out, so that pauses of the mean length keep to their share. It
 * does not depend on what the last pause was, so the work with long pauses is sampled as often as
 * other. It is not regular, either: activity of the guest must not go along with it.
 */
static uint64_t pace_at(const struct uni_sched *s)
{
	double every_ns = s->mean_ns / (s->max_duty * STEADY);

	if (s->max_duty >= 1.0 || every_ns <= s->period_ns)
		return 0;
	if (s->jitter)
		every_ns *= 0.75 + random_at(s, s->k ^ PACE_MIX) / 2;
	return add_ns(slot_due(s, s->k), every_ns - s->period_ns / 2);
}

/* The duty cap: no pause may begin before this. */
static uint64_t not_before(const struct uni_sched *s)
{
	uint64_t slack_ns = add_ns(0, uni_max(s->period_ns, CREDIT_NS));
	uint64_t bucket_ns = s->paid_ns > slack_ns ? s->paid_ns - slack_ns : 0;

	return uni_max(bucket_ns, room_at(s));
}

/* Skips slots that end before to_ns, except the last, in one step: after a long delay at a high
 * rate there are millions. Returns their number. */
static uint64_t jump_slots(struct uni_sched *s, uint64_t to_ns)
{
	double slots;
	uint64_t n;

	if (to_ns <= s->start_ns)
		return 0;
	slots = (double)(to_ns - s->start_ns) / s->period_ns - 1.0;
	if (slots <= (double)s->k)
		return 0;
	n = (uint64_t)slots - s->k;
	s->k += n;
	return n;
}

/* The schedule is a little less behind with each slot, but never makes up more than half of one. */
static void catch_up(struct uni_sched *s)
{
	double lag = (double)s->lag_ns;

	lag -= s->period_ns * uni_min(lag / CATCH_UP_NS, 0.5);
	s->lag_ns = lag > s->period_ns / 2 ? (uint64_t)lag : 0;
}

/* Skips slots that are too late. Returns their number. */
static uint64_t skip_late(struct uni_sched *s, uint64_t now_ns)
{
	uint64_t most_ns =
		add_ns(0, s->skip_late ? s->period_ns / 2 : uni_max(s->period_ns, LAG_MAX_NS));
	uint64_t n = jump_slots(s, now_ns > most_ns ? now_ns - most_ns : 0);

	while (add_ns(slot_deadline(s, s->k), (double)most_ns) < now_ns) {
		s->k++;
		n++;
	}
	/* It is late by less now. */
	if (n != 0)
		s->lag_ns = uni_min(s->lag_ns, now_ns - uni_min(now_ns, slot_deadline(s, s->k)));
	return n;
}

/* A part of a slot that is left is kept. */
static void weigh_next(struct uni_sched *s, uint64_t skipped)
{
	double slots = 1.0 + (double)skipped;

	s->mean_weight += (slots - s->mean_weight) / MEAN_OF;
	slots = uni_min(slots, WEIGHT_MAX * s->mean_weight) + s->carry;
	s->weight = (uint64_t)slots;
	s->carry = slots - (double)s->weight;
}

void uni_sched_advance(struct uni_sched *s, uint64_t now_ns)
{
	uint64_t from_ns, paced_ns, n = 0;

	learn_tick(s);
	paced_ns = pace_at(s);
	s->k++;
	catch_up(s);
	s->skipped += skip_late(s, now_ns);
	from_ns = uni_max(not_before(s), paced_ns);
	if (from_ns > now_ns) {
		n = jump_slots(s, from_ns - uni_min(s->lag_ns, from_ns));
		while (slot_due(s, s->k) < from_ns) {
			s->k++;
			n++;
		}
	}
	s->skipped += n;
	s->throttled += n;
	s->last_throttled = n;
	weigh_next(s, n);
}

void uni_sched_napped(struct uni_sched *s, uint64_t until_ns, uint64_t now_ns)
{
	uint64_t late_ns = now_ns - uni_min(until_ns, now_ns);

	if (late_ns < s->nap_late_ns)
		s->nap_late_ns = late_ns;
	else
		s->nap_late_ns += (late_ns - s->nap_late_ns) / 2;
}

bool uni_sched_avoids_nap(struct uni_sched *s, uint64_t left_ns)
{
	if (left_ns >= s->nap_late_ns || s->nap_late_ns > AWAKE_MAX_NS ||
		(double)s->nap_late_ns < s->period_ns / 2)
		return false;
	s->nap_late_ns -= s->nap_late_ns / 64;
	return true;
}

void uni_sched_end(struct uni_sched *s, uint64_t until_ns)
{
	uint64_t n = jump_slots(s, until_ns);

	while (slot_deadline(s, s->k) < until_ns) {
		s->k++;
		n++;
	}
	s->skipped += n;
}

void uni_sched_sum(const struct uni_sched *s, uint64_t until_ns, uint64_t *skipped_ret,
	uint64_t *throttled_ret)
{
	/* The first slot with a later deadline: at most one before the last slot that has begun. */
	double slots = until_ns > s->start_ns
			       ? (double)(until_ns - s->start_ns) / s->period_ns - 1.0
			       : 0.0;
	uint64_t k = slots > 0.0 ? (uint64_t)slots : 0, ahead;

	while (k < s->k && slot_deadline(s, k) <= until_ns)
		k++;
	ahead = s->k > k ? s->k - k : 0;
	*skipped_ret = s->skipped - uni_min(ahead, s->skipped);
	*throttled_ret = s->throttled - uni_min(ahead, s->last_throttled);
}

uint64_t uni_sched_drain_ns(double frequency, uint32_t nr_vcpus, uint32_t turn_samples)
{
	double ns = DRAIN_SAMPLES * 1e9 / (frequency * (double)nr_vcpus);
	double turn_ns = (double)turn_samples * 1e9 / frequency;
	uint64_t ret = ns < (double)DRAIN_NS ? uni_max((uint64_t)ns, DRAIN_MIN_NS) : DRAIN_NS;

	if (turn_samples == 0 || !(turn_ns < (double)ret))
		return ret;
	return uni_max((uint64_t)turn_ns, TURN_MIN_NS);
}
