/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that does not hold its function's conditions writes no record, and neither does its
 * return. The return has the stack pointer alone: it is known by the place of its return address,
 * which is kept while the call runs. If there is no room for the place, the call is recorded: too
 * much is better than a return without its call.
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

static uint64_t places[PLACES]; /* 0: free */
static uint32_t nr_places;

uint64_t uni_trace_conditions(void)
{
	return (uint64_t)&table;
}

/* Stack places are 16 bytes apart and more. */
static uint64_t *cell_of(uint64_t place, uint64_t probe)
{
	return &places[(((place >> 4) * 0x9e3779b97f4a7c15 >> 40) + probe) % PLACES];
}

static int forget(uint64_t place)
{
	if (!__atomic_load_n(&nr_places, __ATOMIC_RELAXED))
		return 0;
	for (uint64_t i = 0; i < PROBES; i++) {
		uint64_t *cell = cell_of(place, i);

		if (__atomic_load_n(cell, __ATOMIC_RELAXED) != place)
			continue;
		__atomic_store_n(cell, 0, __ATOMIC_RELAXED);
		__atomic_sub_fetch(&nr_places, 1, __ATOMIC_RELAXED);
		return 1;
	}
	return 0;
}

/* Other CPUs take cells at the same time, for other places. */
static int keep(uint64_t place)
{
	(void)forget(place);
	for (uint64_t i = 0; i < PROBES; i++) {
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(
			    cell_of(place, i), &none, place, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
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

/* Copies, as the host may change the table meanwhile. */
static int all_hold(const uint64_t *arg, uint32_t function, uint32_t nr)
{
	const volatile struct uni_trace_condition *all = table.all;
	uint32_t low = 0, high = nr < UNI_TRACE_CONDITIONS ? nr : UNI_TRACE_CONDITIONS;

	nr = high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (all[middle].function < function)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < nr && all[low].function == function; low++) {
		const struct uni_trace_condition one = all[low];

		if (!holds(&one, arg))
			return 0;
	}
	return 1;
}

int uni_trace_leaves_out(const uint64_t *arg, uint32_t function, uint64_t place, int returns)
{
	uint32_t nr = *(const volatile uint32_t *)&table.head.nr;

	if (!nr || all_hold(arg, function, nr)) {
		(void)forget(place);
		return 0;
	}
	return !returns || keep(place);
}

int uni_trace_was_left_out(uint64_t place)
{
	return forget(place);
}
