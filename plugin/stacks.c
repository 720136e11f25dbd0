/* SPDX-License-Identifier: BSD-2-Clause */
/* Shadow stacks, one for each stack of the guest, found by the stack pointers seen in it. */
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

#define ENTRY_MAX (1u << 22) /* of one stack; then the outer half is forgotten */

/* It stands below the outermost one, so that nobody has to ask whether there is one. */
static struct entry none = { .ret = NOWHERE, .is_interrupt = true };

void stack_init(struct stack *st)
{
	st->entry = st->top = st->end = &none + 1;
}

static uint32_t first_above(const struct stacks *s, uint64_t sp)
{
	uint32_t low = 0, high = s->nr;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->v[mid]->high < sp)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct stack *stacks_find(const struct stacks *s, uint64_t sp, uint64_t slack)
{
	uint32_t i = first_above(s, sp);

	if (i == s->nr || (sp < s->v[i]->low && s->v[i]->low - sp > slack))
		return NULL;
	return s->v[i];
}

struct stack *stacks_add(struct stacks *s, uint64_t sp)
{
	uint32_t at = first_above(s, sp);
	struct stack *st;

	if (s->nr == s->cap) {
		uint32_t cap = s->cap == 0 ? 64 : s->cap * 2;
		struct stack **v = realloc(s->v, cap * sizeof(struct stack *));

		if (v == NULL)
			return NULL;
		s->v = v;
		s->cap = cap;
	}
	st = calloc(1, sizeof(*st));
	if (st == NULL)
		return NULL;
	stack_init(st);
	st->node = plugin.tree.node;
	st->low = st->high = sp;
	st->id = s->nr + 1;
	memmove(s->v + at + 1, s->v + at, (s->nr - at) * sizeof(struct stack *));
	s->v[at] = st;
	s->nr++;
	plugin.stat[UNI_EXACT_STACKS] = s->nr;
	return st;
}

void stacks_saw(struct stacks *s, struct stack *st, uint64_t sp)
{
	uint32_t at;

	if (sp < st->low)
		st->low = sp;
	if (sp <= st->high)
		return;
	for (at = first_above(s, st->high); at < s->nr && s->v[at] != st;)
		at++;
	st->high = sp;
	for (; at + 1 < s->nr && s->v[at + 1]->high < sp; at++) {
		s->v[at] = s->v[at + 1];
		s->v[at + 1] = st;
	}
}

static void stack_grow(struct stack *st)
{
	uint32_t nr = stack_nr(st), cap = nr == 0 ? 256 : nr * 2;
	struct entry *e;

	if (nr >= ENTRY_MAX)
		return;
	e = realloc(nr == 0 ? NULL : st->entry - 1, (cap + 1ull) * sizeof(*e));
	if (e == NULL)
		return;
	*e = none;
	st->entry = e + 1;
	st->top = st->entry + nr;
	st->end = st->entry + cap;
}

struct entry *stack_push(struct stack *st)
{
	if (st->top == st->end)
		stack_grow(st);
	if (st->top == st->end) {
		uint32_t nr = stack_nr(st), half = nr / 2;

		if (half == 0)
			return NULL;
		memmove(st->entry, st->entry + half, (nr - half) * sizeof(*st->entry));
		plugin.stat[UNI_EXACT_DROPPED] += half;
		st->top -= half;
	}
	return st->top++;
}

uint32_t stack_find_return(const struct stack *st, uint64_t pc)
{
	for (uint32_t i = stack_nr(st); i-- > 0;) {
		if (st->entry[i].ret == pc)
			return i;
	}
	return UINT32_MAX;
}
