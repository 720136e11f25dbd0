/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that does not hold its function's conditions writes no record, and neither does its
 * return. Variables of the guest may be read with a call, and again when it returns.
 *
 * The return has the stack pointer alone: it is known by the place of its return address, which is
 * kept while the call runs. If there is no room for the place, the call is recorded: too much is
 * better than a return without its call. Its return has no variables then.
 *
 * The places are open-addressed. One is looked for in PROBES cells from its own on, all of them, so
 * that cells can be given back at once. A call that never returns (longjmp) leaves its place
 * behind, until a call with arguments begins there. */
#include "uniscope/trace.h"

#include "conditions.h"
#include "cpu.h"

#define PLACES 256
#define PROBES 8

static struct {
	struct uni_trace_conditions head;
	struct uni_trace_condition all[UNI_TRACE_CONDITIONS];
} table __attribute__((aligned(8), section(".data"))) = { .head.room = UNI_TRACE_CONDITIONS };

static struct {
	struct uni_trace_reads head;
	struct uni_trace_read all[UNI_TRACE_READS];
} reads __attribute__((aligned(8), section(".data"))) = { .head.room = UNI_TRACE_READS };

#define LEFT_OUT 0 /* in place of a function */

static struct cell {
	uint64_t place; /* 0: free */
	uint32_t function;
} places[PLACES];
static uint32_t nr_places;

void uni_trace_conditions_init(struct uni_trace_head *h)
{
	h->conditions = (uint64_t)&table;
	h->reads = (uint64_t)&reads;
}

/* Stack places are 16 bytes apart and more. */
static struct cell *cell_of(uint64_t place, uint64_t probe)
{
	return &places[(((place >> 4) * 0x9e3779b97f4a7c15 >> 40) + probe) % PLACES];
}

/* Returns whether it was kept. */
static int forget(uint64_t place, uint32_t *function_ret)
{
	if (!__atomic_load_n(&nr_places, __ATOMIC_RELAXED))
		return 0;
	for (uint64_t i = 0; i < PROBES; i++) {
		struct cell *cell = cell_of(place, i);

		if (__atomic_load_n(&cell->place, __ATOMIC_RELAXED) != place)
			continue;
		*function_ret = cell->function;
		__atomic_store_n(&cell->place, 0, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&nr_places, 1, __ATOMIC_RELAXED);
		return 1;
	}
	return 0;
}

/* Other CPUs take cells at the same time, for other places. Nobody asks for this one before the
 * call returns. */
static int keep(uint64_t place, uint32_t function)
{
	uint32_t old;

	(void)forget(place, &old);
	for (uint64_t i = 0; i < PROBES; i++) {
		struct cell *cell = cell_of(place, i);
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(
			    &cell->place, &none, place, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		cell->function = function;
		__atomic_add_fetch(&nr_places, 1, __ATOMIC_RELAXED);
		return 1;
	}
	return 0;
}

static int holds(const struct uni_trace_condition *c, const uint64_t *arg)
{
	unsigned unused = 64u - c->bits;
	uint64_t v;
	int less, order;

	if (unused > 63 || c->argument >= UNI_TRACE_ARGS)
		return 1;
	v = arg[c->argument] << unused;
	if (c->is_signed) {
		int64_t s = (int64_t)v >> unused;

		v = (uint64_t)s;
		less = s < (int64_t)c->value;
	} else {
		v >>= unused;
		less = v < c->value;
	}
	order = v == c->value ? UNI_TRACE_IF_EQUAL
		: less	      ? UNI_TRACE_IF_LESS
			      : UNI_TRACE_IF_GREATER;
	return c->order & order;
}

/* The first of `nr` entries that is not of a lower function. Both tables have entries of 16 bytes
 * that begin with it. */
static uint32_t first_of(const volatile void *all, uint32_t nr, uint32_t function)
{
	const volatile struct uni_trace_condition *c = all;
	uint32_t low = 0, high = nr;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (c[middle].function < function)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Copies, as the host may change the table meanwhile. */
static int all_hold(const uint64_t *arg, uint32_t function, uint32_t nr)
{
	const volatile struct uni_trace_condition *all = table.all;

	nr = nr < UNI_TRACE_CONDITIONS ? nr : UNI_TRACE_CONDITIONS;
	for (uint32_t i = first_of(all, nr, function); i < nr && all[i].function == function; i++) {
		const struct uni_trace_condition one = all[i];

		if (!holds(&one, arg))
			return 0;
	}
	return 1;
}

int uni_trace_leaves_out(const uint64_t *arg, uint32_t function, uint64_t place, int returns)
{
	uint32_t nr = *(const volatile uint32_t *)&table.head.nr, old;

	if (!nr || all_hold(arg, function, nr)) {
		(void)forget(place, &old);
		return 0;
	}
	return !returns || keep(place, LEFT_OUT);
}

/* Its value, extended to 64 bits. */
static uint64_t value_of(const struct uni_trace_read *r)
{
	const volatile void *at = (const volatile void *)r->address;
	unsigned unused = 64;
	uint64_t v;

	switch (r->bytes) {
	case 1:
		v = *(const volatile uint8_t *)at;
		unused -= 8;
		break;
	case 2:
		v = *(const volatile uint16_t *)at;
		unused -= 16;
		break;
	case 4:
		v = *(const volatile uint32_t *)at;
		unused -= 32;
		break;
	default:
		return *(const volatile uint64_t *)at;
	}
	return r->is_signed ? (uint64_t)((int64_t)(v << unused) >> unused) : v;
}

static unsigned read_of(uint32_t function, uint64_t *to)
{
	const volatile struct uni_trace_read *all = reads.all;
	uint32_t nr = *(const volatile uint32_t *)&reads.head.nr;
	unsigned words = 0;

	nr = nr < UNI_TRACE_READS ? nr : UNI_TRACE_READS;
	for (uint32_t i = first_of(all, nr, function); i < nr && all[i].function == function; i++) {
		const struct uni_trace_read one = all[i];

		if (words == UNI_TRACE_READ_WORDS)
			break;
		to[words++] = UNI_TRACE_READ_WORD(one.address, one.is_signed);
		to[words++] = value_of(&one);
	}
	return words;
}

unsigned uni_trace_read_at_call(uint32_t function, uint64_t place, int returns, uint64_t *to)
{
	unsigned words = *(const volatile uint32_t *)&reads.head.nr ? read_of(function, to) : 0;

	if (words && returns)
		(void)keep(place, function);
	return words;
}

int uni_trace_read_at_return(uint64_t place, uint64_t *to)
{
	uint32_t function;

	if (!forget(place, &function))
		return 0;
	return function == LEFT_OUT ? -1 : (int)read_of(function, to);
}
