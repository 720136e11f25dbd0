/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sampling from within. A timer's ticks are in step with guest code that the timer drives. So one
 * tick in N makes a sample, at a random place among the N.
 */
#include "uniscope/sample.h"
#include "uniscope/trace.h"

#include "cpu.h"
#include "machine.h"
#include "ring.h"

#define FIRST	   UNI_TRACE_SAMPLE_HEAD
#define WEIGHT_MAX 0xffff
#define WORDS	   (FIRST + UNI_SAMPLE_DEPTH + 1)
/* For both stacks together: a record's length has 12 bits. */
#define RECORD_BYTES ((4095 - UNI_TRACE_SAMPLE_STACKS - 1) * 8)

_Static_assert(UNI_SAMPLE_DEPTH >= 1 && WORDS < 4096, "a record's length has 12 bits");

static struct uni_trace_sampler *own;
static volatile uint8_t is_on;	 /* ticks have come while samples were wanted */
static volatile uint32_t copied; /* bytes of the stack in a sample; 0: a chain */

uint32_t uni_sample_hz(void)
{
	return *(volatile uint32_t *)&uni_trace_head.control.sample_hz;
}

void uni_sample_set_hz(uint32_t hz)
{
	*(volatile uint32_t *)&uni_trace_head.control.sample_hz = hz;
}

void uni_sample_copy_stack(uint32_t bytes)
{
	copied = bytes < UNI_SAMPLE_STACK_MAX ? bytes & ~7u : UNI_SAMPLE_STACK_MAX;
}

void uni_sample_init(struct uni_trace_sampler *samplers, uint32_t tick_hz)
{
	for (unsigned i = 0; i < uni_trace_head.nr_cpus; i++)
		samplers[i] = (struct uni_trace_sampler){ .tick_hz = tick_hz,
			.random = (uint32_t)uni_machine_time() + i * 0x9e3779b9u };
	own = samplers;
	uni_machine_release();
	uni_trace_head.samplers = (uint64_t)samplers;
}

/* Is [at, at + 16) within the stack? */
static int readable(const struct uni_sample_at *s, uint64_t at)
{
	return at >= s->stack_low && at < s->stack_high && s->stack_high - at >= 16 && at % 8 == 0;
}

/* Fills in the chain behind the leaf, from frame pointers alone. Returns how many frames, and why
 * it ends. */
static unsigned walk(const struct uni_sample_at *s, uint64_t *pc, uint32_t *end)
{
	uint64_t fp = s->fp, below = s->sp;
	unsigned nr = 1;

	pc[0] = s->pc;
	for (; nr < UNI_SAMPLE_DEPTH; nr++) {
		const volatile uint64_t *frame = (const volatile uint64_t *)fp;

		*end = fp == 0 ? UNI_TRACE_SAMPLE_OUTERMOST : UNI_TRACE_SAMPLE_BAD;
		if (fp < below || !readable(s, fp))
			return nr;
		pc[nr] = frame[1];
		below = fp + 16;
		fp = frame[0];
		*end = UNI_TRACE_SAMPLE_OUTERMOST;
		if (pc[nr] == 0)
			return nr;
	}
	*end = UNI_TRACE_SAMPLE_DEPTH;
	return nr;
}

static uint64_t last_word(const struct uni_sample_at *s, uint32_t weight)
{
	return (s->idle ? UNI_TRACE_SAMPLE_IDLE : 0) | weight << 16;
}

/* Bytes of the stack from `sp` on, of which there are at least 16. */
static uint32_t nr_copied(uint64_t sp, uint64_t high, uint64_t most)
{
	uint64_t left = sp % 8 == 0 && sp < high && high - sp >= 16 ? (high - sp) & ~7ull : 0;

	return (uint32_t)(left < most ? left : most);
}

/* With the other stack, as far as a record has room. */
static int write_stacks(
	const struct uni_sample_at *s, uint32_t weight, uint32_t first, uint32_t most)
{
	const uint64_t room = RECORD_BYTES - first;
	const uint64_t head[UNI_TRACE_SAMPLE_STACKS] = { s->thread, s->sp, s->fp, s->pc,
		s->saved[0], s->saved[1], s->saved[2], s->saved[3], s->saved[4], s->other_sp,
		first };
	const uint64_t last = last_word(s, weight);
	const struct uni_trace_piece piece[] = { { head, sizeof(head) },
		{ (const void *)s->sp, first },
		{ (const void *)s->other_sp,
			nr_copied(s->other_sp, s->other_high, most < room ? most : room) },
		{ &last, sizeof(last) } };

	return uni_trace_write_pieces(
		uni_trace_this_cpu(), UNI_TRACE_CLASS_SAMPLE_STACKS, piece, 4);
}

/* The chain is left to the host. */
static int write_stack(const struct uni_sample_at *s, uint32_t weight, uint32_t most)
{
	const uint64_t head[UNI_TRACE_SAMPLE_STACK] = { s->thread, s->sp, s->fp, s->pc };
	const uint64_t last = last_word(s, weight);
	uint32_t first = readable(s, s->sp) ? nr_copied(s->sp, s->stack_high, most) : 0;
	const struct uni_trace_piece piece[] = { { head, sizeof(head) },
		{ (const void *)s->sp, first }, { &last, sizeof(last) } };

	if (s->saved)
		return write_stacks(s, weight, first, most);
	return uni_trace_write_pieces(uni_trace_this_cpu(), UNI_TRACE_CLASS_SAMPLE_STACK, piece, 3);
}

static int write_chain(const struct uni_sample_at *s, uint32_t weight)
{
	uint64_t words[WORDS];
	uint32_t end = 0;
	unsigned nr = FIRST + walk(s, words + FIRST, &end) + 1;

	words[0] = s->thread;
	words[1] = s->sp;
	words[2] = s->fp;
	words[3] = words[4] = 0;
	if (readable(s, s->sp)) {
		words[3] = ((const volatile uint64_t *)s->sp)[0];
		words[4] = ((const volatile uint64_t *)s->sp)[1];
	}
	words[nr - 1] = end | last_word(s, weight);
	return uni_trace_write(uni_trace_this_cpu(),
		UNI_TRACE_EXT | (uint64_t)nr << 4 | (uint64_t)UNI_TRACE_CLASS_SAMPLE << 16, words,
		nr);
}

static void take_sample(const struct uni_sample_at *s, struct uni_trace_sampler *of,
	uint32_t weight, uint64_t begin)
{
	uint32_t most = copied;
	uint64_t spent;

	if ((most ? write_stack(s, weight, most) : write_chain(s, weight)) != 0)
		of->lost++;
	spent = uni_machine_time() - begin;
	of->samples++;
	of->cycles += spent;
	if (spent > of->max_cycles)
		of->max_cycles = spent;
}

/* Marsaglia's xorshift32. */
static uint32_t random_below(uint32_t *state, uint32_t n)
{
	uint32_t x = *state ? *state : 1;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return (uint32_t)((uint64_t)x * n >> 32);
}

/* How many of `ticks` ticks make a sample, one in each N. */
static uint32_t due(struct uni_trace_sampler *of, uint32_t n, uint64_t ticks)
{
	uint32_t nr = 0, at;

	if (n <= 1)
		return ticks < WEIGHT_MAX ? (uint32_t)ticks : WEIGHT_MAX;
	if (of->wait >= 2 * n) /* the rate has risen meanwhile */
		of->wait = of->rest = 0;
	while (ticks > of->wait && nr < WEIGHT_MAX) {
		ticks -= of->wait + 1;
		at = random_below(&of->random, n);
		of->wait = of->rest + at;
		of->rest = n - 1 - at;
		nr++;
	}
	of->wait -= (uint32_t)(ticks < of->wait ? ticks : of->wait);
	return nr;
}

/*
 * How many ticks this one stands for. Some may not have come: interrupts were off, or the host ran
 * something else. The interrupted code had that time. A rest of less than a period is kept for the
 * next tick, so that late ticks do not hide the lost ones.
 */
static uint64_t periods(struct uni_trace_sampler *of, uint32_t hz, uint64_t now)
{
	uint64_t rate = of->tick_hz ? of->tick_hz : hz, cycles = uni_trace_head.tsc_hz;
	uint64_t since = now - of->last, period; /* before it, as far as was left out: very much */
	int known = of->last != 0;

	of->last = now;
	if (!cycles || !known || since > cycles) /* more than a second: the guest stood */
		return 1;
	period = cycles / rate;
	if (!period || since < period)
		return 1;
	of->last -= since % period;
	return since / period;
}

void uni_sample_leave_out(uint64_t cycles)
{
	struct uni_trace_sampler *of;

	if (!is_on || !own)
		return;
	of = &own[uni_trace_this_cpu()->cpu];
	if (of->last)
		of->last += cycles;
}

/* Time in which nobody wanted samples belongs to no sample. */
static void went_off(void)
{
	is_on = 0;
	for (unsigned i = 0; i < uni_trace_head.nr_cpus; i++)
		own[i].last = 0;
}

void uni_sample_tick(const struct uni_sample_at *at)
{
	uint32_t hz = uni_sample_hz(), weight;
	struct uni_trace_sampler *of;
	uint64_t now;

	if (!hz || !own) {
		if (is_on)
			went_off();
		return;
	}
	if (!is_on)
		is_on = 1;
	now = uni_machine_time();
	of = &own[uni_trace_this_cpu()->cpu];
	of->ticks++;
	weight = due(of, of->tick_hz / hz, periods(of, hz, now));
	if (weight)
		take_sample(at, of, weight, now);
}
