/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes of control that are neither a plain call nor a plain return: tail calls, longjmp,
 * exceptions and threads. Three things tell them apart: the target of a return, the stack pointer
 * at a call's push, and at the first pop after a load.
 */
#include "plugin/plugin.h"

#define NEW_STACK (UINT64_C(8) << 20) /* further below is another one */
#define NEAR	  4096u
#define SAVED	  1024u /* registers that a switch has saved below its return address */

static uint32_t function_of(const struct vcpu *v)
{
	return v->node->function;
}

void frames_drop(struct vcpu *v, uint32_t nr)
{
	struct stack *st = v->stack;

	while (stack_nr(st) > nr) {
		const struct entry *e = --st->top;

		plugin.stat[UNI_EXACT_DROPPED] += !e->is_interrupt;
		if (e->is_interrupt && e->cut)
			cut_end(e, UINT32_MAX);
		frame_close(v, st, e->shown);
		v->node = e->node;
	}
}

/* To another function without a call: its frame takes the place of the present one. */
void frame_move(struct vcpu *v, const struct block *b)
{
	uint32_t now = function_of(v);

	if (b->function == now || (b->function == 0 && !function_is_known(&plugin.functions, now)))
		return;
	v->node = tree_child(&plugin.tree, v->node->parent, b->function);
	if (b->is_start) {
		v->node->out->calls++;
		plugin.stat[UNI_EXACT_CALLS]++;
		plugin.stat[UNI_EXACT_TAIL_CALLS]++;
		if (plugin.mode == UNI_EXACT_TRACE) {
			frame_close(v, v->stack, false);
			frame_show(v, b->function, b->pc);
		}
	}
}

static bool frame_find(struct vcpu *v, const struct block *b)
{
	const struct stack *st = v->stack;
	uint32_t i = stack_find_return(st, b->pc);

	for (uint32_t j = stack_nr(st); i == UINT32_MAX && j-- > 0;) {
		if (st->entry[j].node->function == b->function)
			i = j;
	}
	if (i == UINT32_MAX)
		return false;
	frames_drop(v, i);
	return true;
}

void frame_jump(struct vcpu *v, const struct block *b)
{
	if (v->switched)
		stack_change(v);
	if (b->function == function_of(v))
		return;
	if (b->function == 0 || b->is_start || !frame_find(v, b))
		frame_move(v, b);
}

/* By a jump. Code of no function that begins there has its address for a name, as if called. */
void frame_jump_out(struct vcpu *v, const struct block *b)
{
	if (v->switched)
		stack_change(v);
	if (b->function != 0 || !function_is_known(&plugin.functions, function_of(v)))
		frame_jump(v, b);
	else
		v->node = tree_child(&plugin.tree, v->node->parent,
			functions_called(&plugin.functions, &plugin.area, b->pc));
}

/* The frames that a stack pointer this high has left. */
static void frames_leave(struct vcpu *v, uint64_t sp)
{
	const struct stack *st = v->stack;
	uint32_t nr = stack_nr(st);

	/* One that is not known goes with those that it has called. */
	for (uint32_t i = nr; i > 0 && !st->entry[i - 1].is_interrupt && st->entry[i - 1].sp <= sp;
		i--)
		nr = st->entry[i - 1].sp != 0 ? i - 1 : nr;
	frames_drop(v, nr);
}

void stack_enter(struct vcpu *v, struct stack *to)
{
	if (plugin.mode == UNI_EXACT_TRACE)
		calls_switch(v, v->stack, to);
	v->stack->node = v->node;
	v->stack = to;
	plugin.stat[UNI_EXACT_SWITCHES]++;
}

/* The stack pointer was loaded, and control goes elsewhere. */
void stack_change(struct vcpu *v)
{
	struct stack *to;

	v->switched = false;
	v->odd = v->unsure;
	if (v->new_sp == 0) {
		v->unsure = v->odd = true;
		return;
	}
	to = stacks_find(&plugin.stacks, v->new_sp, SAVED);
	if (to == v->stack)
		return;
	if (to == NULL)
		to = stacks_add(&plugin.stacks, v->new_sp);
	if (to == NULL)
		return;
	stack_enter(v, to);
	v->node = to->node;
	v->unsure = false;
	v->odd = false;
	frames_leave(v, v->new_sp - 1);
}

static struct stack *stack_of(const struct vcpu *v, uint64_t sp, bool ask)
{
	struct stack *st = v->stack, *to;

	if (!ask && sp <= st->high && st->low - sp <= NEW_STACK / 128 && sp < st->low)
		return st;
	to = stacks_find(&plugin.stacks, sp, NEAR);
	if (to != NULL)
		return to;
	if (!ask && sp > st->high && sp - st->high <= NEAR)
		return st;
	if (!ask && sp < st->low && st->low - sp <= NEW_STACK)
		return st;
	return NULL;
}

/* Is sp of the stack that a handler was given, while what it interrupted is on another one? */
static bool is_handlers(const struct stack *st, uint64_t sp)
{
	if (sp <= st->high && (sp >= st->low || st->low - sp <= STACK_STEP))
		return false;
	for (uint32_t i = stack_nr(st); i-- > 0;) {
		if (st->entry[i].is_interrupt)
			return true;
	}
	return false;
}

/* Is it the first call of a handler, on a stack that nobody knows? The interrupted code had loaded
 * the stack pointer, and pushes once it goes on. */
static bool is_handlers_own(const struct stack *st, uint64_t sp)
{
	const struct entry *e = st->top - 1;
	const struct stack *known;

	if (stack_nr(st) == 0 || !e->is_interrupt || !(e->switched || e->unsure))
		return false;
	known = stacks_find(&plugin.stacks, sp, NEAR);
	return known == NULL || known == st;
}

/* Before a call of p's that pushes there: which stack is it, and which frames are left on it? */
void stack_settle(struct vcpu *v, const struct block *p, uint64_t sp)
{
	bool ask = v->switched || v->unsure, moved = v->unsure;
	struct stack *to;

	if (!v->switched && is_handlers_own(v->stack, sp)) {
		v->unsure = v->odd = false;
		return;
	}
	if (!ask && is_handlers(v->stack, sp)) {
		frames_leave(v, sp);
		return;
	}
	to = stack_of(v, sp, ask);
	v->switched = v->unsure = v->odd = false;
	if (to == NULL) {
		to = stacks_add(&plugin.stacks, sp);
		if (to == NULL)
			return;
		if (v->stack->high == 0 &&
			(stack_nr(v->stack) == 0 || plugin.begin_at != NOWHERE)) {
			moved = false; /* the first one of this vCPU */
			to->entry = v->stack->entry;
			to->top = v->stack->top;
			to->end = v->stack->end;
			stack_init(v->stack);
			to->open = v->stack->open;
			to->shown = v->stack->shown;
			to->id = v->stack->id;
		}
	}
	if (to != v->stack) {
		stack_enter(v, to);
		if (moved)
			v->node = to->node;
	}
	stacks_saw(&plugin.stacks, to, sp);
	frames_leave(v, sp);
	if (function_of(v) != p->function)
		v->node = tree_child(&plugin.tree, v->node->parent, p->function);
}
