/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/stats.h"

#include <stdlib.h>
#include <string.h>

#include "arch/frame.h"
#include "arch/hints.h"
#include "base/checked.h"

#define STEPS (1u << UNI_HIST_STEP_BITS)

/* Values below STEPS have a bucket each; above, the octave and its next 4 bits. */
static unsigned bucket_of(uint64_t v)
{
	unsigned octave;

	if (v < STEPS)
		return (unsigned)v;
	octave = 63u - (unsigned)__builtin_clzll(v) - UNI_HIST_STEP_BITS;
	return (octave + 1) * STEPS + (unsigned)(v >> octave & (STEPS - 1));
}

/* The middle of a bucket. */
static uint64_t value_of(unsigned bucket)
{
	unsigned octave;
	uint64_t low;

	if (bucket < STEPS)
		return bucket;
	octave = bucket / STEPS - 1;
	low = (uint64_t)(STEPS + bucket % STEPS) << octave;
	return low + ((1ull << octave) >> 1);
}

void uni_hist_add(struct uni_hist *h, uint64_t v)
{
	h->nr++;
	if (__builtin_add_overflow(h->sum, v, &h->sum))
		h->sum = UINT64_MAX;
	h->max = uni_max(h->max, v);
	h->bucket[bucket_of(v)]++;
}

uint64_t uni_hist_quantile(const struct uni_hist *h, double q)
{
	uint64_t want = (uint64_t)(q * (double)h->nr), seen = 0;

	if (h->nr == 0)
		return 0;
	want = uni_min(want, h->nr - 1);
	for (unsigned i = 0; i < UNI_HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen > want)
			return uni_min(value_of(i), h->max);
	}
	return h->max;
}

void uni_hist_summary(const struct uni_hist *h, struct uni_pause_stats *ret)
{
	ret->nr = h->nr;
	ret->sum_ns = h->sum;
	ret->p50_ns = uni_hist_quantile(h, 0.50);
	ret->p99_ns = uni_hist_quantile(h, 0.99);
	ret->max_ns = h->max;
}

/* Sums of hostile numbers stop at the top. */
static void add_saturated(uint64_t *sum, uint64_t v)
{
	if (__builtin_add_overflow(*sum, v, sum))
		*sum = UINT64_MAX;
}

void uni_record_stats_count(struct uni_record_stats *st, const struct uni_sample *s)
{
	unsigned stop = s->stop < UNI_STOP_NR ? s->stop : UNI_STOP_NOREGS;
	unsigned state = s->state < UNI_VCPU_STATE_NR ? s->state : UNI_VCPU_UNKNOWN;

	add_saturated(&st->weight, s->weight);
	add_saturated(&st->stop[stop], s->weight);
	add_saturated(&st->state[state], s->weight);
	add_saturated(&st->squares[state], (uint64_t)s->weight * s->weight);
	if (stop != UNI_STOP_ROOT)
		add_saturated(&st->truncated, s->weight);
	/* All frames above a guess are guesses: so the outermost frame is enough. */
	if (s->nr != 0 && s->flags != NULL && (s->flags[s->nr - 1] & UNI_FRAME_GUESS) != 0)
		add_saturated(&st->guessed, s->weight);
	if (s->nr != 0 && s->flags != NULL && (s->flags[0] & UNI_FRAME_MOVED) != 0)
		add_saturated(&st->moved, s->weight);
	if (s->nr != 0 && s->flags != NULL && (s->flags[0] & UNI_FRAME_UNSURE) != 0)
		add_saturated(&st->unsure, s->weight);
}

void uni_record_stats_take_shares(struct uni_record_stats *to, const struct uni_record_stats *from)
{
	to->weight = from->weight;
	to->truncated = from->truncated;
	to->guessed = from->guessed;
	to->moved = from->moved;
	to->unsure = from->unsure;
	to->inside = from->inside;
	to->outside = from->outside;
	to->firmware = from->firmware;
	to->outside_low = from->outside_low;
	to->outside_high = from->outside_high;
	memcpy(to->stop, from->stop, sizeof(to->stop));
	memcpy(to->state, from->state, sizeof(to->state));
	memcpy(to->squares, from->squares, sizeof(to->squares));
}

bool uni_record_is_firmware(uint64_t pc)
{
	return pc < 1u << 20 || (pc >> 24 == 0xff && pc <= UINT32_MAX);
}

bool uni_record_is_elsewhere(const struct uni_record_stats *st)
{
	uint64_t nine_in;

	return !__builtin_mul_overflow(st->inside, UINT64_C(9), &nine_in) && st->outside > nine_in;
}

static void add_outside(struct uni_record_stats *st, uint64_t low, uint64_t high)
{
	st->outside_low = st->outside == 0 ? low : uni_min(st->outside_low, low);
	st->outside_high = uni_max(st->outside_high, high);
}

static bool is_inside(const struct uni_sample *s, const struct uni_unwind_hints *hints)
{
	for (uint16_t i = 0; i < s->nr; i++) {
		bool exact = i == 0 || (s->flags[i] & UNI_FRAME_EXACT) != 0;
		uint64_t pc = s->pc[i] - (exact ? 0 : 1);

		if ((s->flags[i] & UNI_FRAME_KERNEL) != 0 || uni_hints_of(hints, pc) != NULL ||
			uni_hints_in_stubs(hints, pc))
			return true;
	}
	return false;
}

void uni_record_stats_place(struct uni_record_stats *st, const struct uni_sample *s,
	const struct uni_unwind_hints *hints)
{
	if (hints != NULL && s->nr != 0)
		uni_record_stats_lies(st, s, is_inside(s, hints));
}

void uni_record_stats_lies(struct uni_record_stats *st, const struct uni_sample *s, bool inside)
{
	if (inside) {
		add_saturated(&st->inside, s->weight);
		return;
	}
	add_outside(st, s->pc[0], s->pc[0]);
	add_saturated(&st->outside, s->weight);
	if (uni_record_is_firmware(s->pc[0]))
		add_saturated(&st->firmware, s->weight);
}

bool uni_record_stats_room(struct uni_record_stats *st, uint32_t nr)
{
	struct uni_vcpu_times *more;

	if (nr <= st->nr_times)
		return true;
	more = reallocarray(st->times, nr, sizeof(*more));
	if (more == NULL)
		return false;
	memset(&more[st->nr_times], 0, (nr - st->nr_times) * sizeof(*more));
	st->times = more;
	st->nr_times = nr;
	return true;
}

bool uni_record_stats_copy(struct uni_record_stats *to, const struct uni_record_stats *from)
{
	struct uni_record_stats own = { .times = to->times, .nr_times = to->nr_times };
	bool ok = uni_record_stats_room(&own, from->nr_times);

	*to = *from;
	to->times = own.times;
	to->nr_times = ok ? from->nr_times : 0;
	if (to->nr_times != 0)
		memcpy(to->times, from->times, to->nr_times * sizeof(*to->times));
	return ok;
}

void uni_record_stats_deinit(struct uni_record_stats *st)
{
	free(st->times);
	st->times = NULL;
	st->nr_times = 0;
}

static void add_pauses(struct uni_pause_stats *sum, const struct uni_pause_stats *one)
{
	add_saturated(&sum->nr, one->nr);
	add_saturated(&sum->sum_ns, one->sum_ns);
	sum->p50_ns = uni_max(sum->p50_ns, one->p50_ns);
	sum->p99_ns = uni_max(sum->p99_ns, one->p99_ns);
	sum->max_ns = uni_max(sum->max_ns, one->max_ns);
}

void uni_record_stats_add(struct uni_record_stats *sum, const struct uni_record_stats *one)
{
	add_saturated(&sum->samples, one->samples);
	add_saturated(&sum->weight, one->weight);
	add_saturated(&sum->ticks, one->ticks);
	add_saturated(&sum->late, one->late);
	add_saturated(&sum->skipped, one->skipped);
	add_saturated(&sum->throttled, one->throttled);
	add_saturated(&sum->failed, one->failed);
	add_saturated(&sum->truncated, one->truncated);
	add_saturated(&sum->guessed, one->guessed);
	add_saturated(&sum->moved, one->moved);
	add_saturated(&sum->unsure, one->unsure);
	if (one->outside != 0)
		add_outside(sum, one->outside_low, one->outside_high);
	add_saturated(&sum->inside, one->inside);
	add_saturated(&sum->outside, one->outside);
	add_saturated(&sum->firmware, one->firmware);
	add_saturated(&sum->lost, one->lost);
	add_saturated(&sum->short_lists, one->short_lists);
	add_saturated(&sum->callers, one->callers);
	add_saturated(&sum->exits, one->exits);
	add_saturated(&sum->exits_lost, one->exits_lost);
	for (unsigned i = 0; i < UNI_STOP_NR; i++)
		add_saturated(&sum->stop[i], one->stop[i]);
	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++) {
		add_saturated(&sum->state[i], one->state[i]);
		add_saturated(&sum->squares[i], one->squares[i]);
	}
	add_pauses(&sum->pause, &one->pause);
	if (one->begin_ns != 0 && (sum->begin_ns == 0 || one->begin_ns < sum->begin_ns))
		sum->begin_ns = one->begin_ns;
	sum->end_ns = uni_max(sum->end_ns, one->end_ns);
	add_saturated(&sum->unwind_ns, one->unwind_ns);
	add_saturated(&sum->busy_ns, one->busy_ns);
	sum->max_duty = uni_max(sum->max_duty, one->max_duty);
	sum->realtime |= one->realtime;
	/* Each guest has that of the whole process. */
	sum->own_cpu_ns = uni_max(sum->own_cpu_ns, one->own_cpu_ns);
	add_saturated(&sum->host_ns, one->host_ns);
	add_saturated(&sum->host_runs, one->host_runs);
	add_saturated(&sum->serve_ns, one->serve_ns);
	sum->silent += one->silent;
}

static void add_times(struct uni_vcpu_times *sum, const struct uni_vcpu_times *one)
{
	add_saturated(&sum->guest_ns, one->guest_ns);
	add_saturated(&sum->kvm_ns, one->kvm_ns);
	add_saturated(&sum->vmm_ns, one->vmm_ns);
	add_saturated(&sum->unsampled_ns, one->unsampled_ns);
	add_saturated(&sum->idle_ns, one->idle_ns);
	add_saturated(&sum->stolen_ns, one->stolen_ns);
	add_saturated(&sum->exits, one->exits);
	sum->split = sum->split && one->split;
}

void uni_record_stats_go_on(struct uni_record_stats *sum, const struct uni_record_stats *one)
{
	uint64_t own_cpu_ns = sum->own_cpu_ns;
	uint32_t had = sum->nr_times;

	uni_record_stats_add(sum, one);
	sum->own_cpu_ns = own_cpu_ns;
	add_saturated(&sum->own_cpu_ns, one->own_cpu_ns);
	sum->silent = one->silent;
	if (!uni_record_stats_room(sum, one->nr_times))
		return;
	for (uint32_t v = 0; v < one->nr_times; v++) {
		if (v < had)
			add_times(&sum->times[v], &one->times[v]);
		else
			sum->times[v] = one->times[v];
	}
}

bool uni_thread_set_has(const struct uni_thread_set *set, uint32_t guest, uint32_t thread)
{
	return guest < set->nr_guests && thread < set->guest[guest].nr &&
	       set->guest[guest].has[thread];
}

bool uni_sample_passes(const struct uni_sample_filter *f, const struct uni_sample *s)
{
	const bool off_cpu = uni_state_is_off_cpu(s->state);

	if (!uni_only_passes(f->guest, s->guest))
		return false;
	if (s->t_ns < f->from_ns || (f->to_ns != 0 && s->t_ns >= f->to_ns))
		return false;
	if (f->vcpu.chosen && (off_cpu || f->vcpu.nr != s->vcpu))
		return false;
	if (f->threads != NULL && !uni_thread_set_has(f->threads, s->guest, s->thread))
		return false;
	if (f->off_cpu && !off_cpu)
		return false;
	return !f->on_cpu || uni_state_is_guest(s->state);
}

bool uni_state_is_guest(unsigned state)
{
	return !uni_state_is_off_cpu(state) && state != UNI_VCPU_HALTED && state != UNI_VCPU_KVM &&
	       state != UNI_VCPU_VMM && state != UNI_VCPU_STOLEN;
}

const char *uni_filter_whole(const struct uni_sample_filter *f)
{
	if (f->off_cpu)
		return "100 % is the time of threads that were on no vCPU";
	if (f->on_cpu)
		return "100 % is the guest's time on a CPU";
	return f->unseen ? "100 % is the time on a CPU: this process has no samples of other time"
			 : "100 % is all time";
}
