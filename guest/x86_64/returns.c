/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps return addresses while their calls run, by the place on the stack that they were taken
 * from. So threads need nothing of their own, and may move to another CPU.
 *
 * The table is open-addressed. A place is looked for in PROBES cells from its own on, all of them,
 * so that cells can be given back at once. A call that finds no free cell is left alone: it has an
 * entry, and its exit counts as lost. */
#include "uniscope/trace.h"

#include "cpu.h"
#include "saved.h"

#define PROBES 16

struct cell {
	uint64_t place; /* 0: free */
	uint64_t to;
};

static struct cell *cells;
static uint64_t mask;

void uni_trace_return(void); /* returns.S */

void uni_trace_slow_keep(const struct saved *s);
void uni_trace_slow_restore(const struct saved *s);

int uni_trace_return_table(void *mem, uint64_t size)
{
	uint64_t nr = PROBES;

	if (size / sizeof(struct cell) < nr)
		return -1;
	while (nr * 2 <= size / sizeof(struct cell))
		nr *= 2;
	for (uint64_t i = 0; i < nr; i++)
		((struct cell *)mem)[i] = (struct cell){ 0 };
	mask = nr - 1;
	__atomic_store_n(&cells, (struct cell *)mem, __ATOMIC_RELEASE);
	return 0;
}

/* Stack places are 16 bytes apart and more. */
static struct cell *cell_of(uint64_t place, uint64_t probe)
{
	return &cells[(((place >> 4) * 0x9e3779b97f4a7c15 >> 20) + probe) & mask];
}

static struct cell *find(uint64_t place)
{
	for (uint64_t i = 0; i < PROBES; i++) {
		struct cell *c = cell_of(place, i);

		if (__atomic_load_n(&c->place, __ATOMIC_ACQUIRE) == place)
			return c;
	}
	return (void *)0;
}

/* Other CPUs take cells at the same time, for other places. */
static struct cell *claim(uint64_t place)
{
	struct cell *c = find(place); /* of a call that never returned */

	for (uint64_t i = 0; !c && i < PROBES; i++) {
		uint64_t none = 0;

		c = cell_of(place, i);
		if (!__atomic_compare_exchange_n(
			    &c->place, &none, place, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			c = (void *)0;
	}
	return c;
}

void uni_trace_slow_keep(const struct saved *s)
{
	uint64_t *place = (uint64_t *)s->r11;
	struct cell *c;

	/* A tail call: its caller's return is its own. */
	if (!cells || *place == (uint64_t)uni_trace_return)
		return;
	/* No return is recorded. */
	if (UNI_TRACE_ENTRIES_ONLY(*(volatile uint32_t *)&uni_trace_head.control.mode))
		return;
	c = claim(s->r11);
	if (!c) {
		uni_trace_this_cpu()->lost++;
		return;
	}
	c->to = *place;
	*place = (uint64_t)uni_trace_return;
}

void uni_trace_slow_restore(const struct saved *s)
{
	struct cell *c = find(s->r11);

	*(uint64_t *)s->r11 = c->to;
	__atomic_store_n(&c->place, 0, __ATOMIC_RELEASE);
}
