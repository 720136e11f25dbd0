/* SPDX-License-Identifier: BSD-2-Clause */
/* Interrupts, exceptions and system calls: their handlers, and the way back. */
#include "plugin/plugin.h"

/* b begins a handler, or so it seems: once it goes back, that is sure. */
void interrupt_push(struct vcpu *v, struct block *p, struct block *b, bool cut)
{
	struct entry *e = stack_push(v->stack);

	if (e != NULL)
		*e = (struct entry){ .ret = NOWHERE,
			.node = v->node,
			.is_interrupt = true,
			.cut = cut,
			.pushed = v->pushed,
			.passed = v->passed,
			.shown = v->stack->shown,
			.switched = v->switched,
			.unsure = v->unsure,
			.from = cut_from((unsigned)(v - plugin.vcpu), p),
			.sp = v->pushed ? v->push_sp : v->new_sp,
			.prev = p,
			.handler = b };
	/* The handler may have a stack of its own: its first call shows that. */
	v->unsure = v->odd = v->switched || v->unsure;
	v->switched = v->pushed = false;
	frame_enter(v, b);
}

void interrupt(struct vcpu *v, struct block *p, struct block *b, bool cut)
{
	plugin.stat[UNI_EXACT_INTERRUPTS]++;
	if (p->flow != FLOW_SYSCALL)
		block_became_handler(b);
	interrupt_push(v, p, b, cut);
}

/* May what was interrupted go on there? */
static bool goes_on_at(const struct entry *e, const struct block *b)
{
	const struct block *p = e->prev;
	uint64_t pc = b->pc;

	if (e->cut)
		return block_insn_at(p, pc) != UINT32_MAX;
	if (e->passed)
		return b->function == p->function;
	if (pc == p->last)
		return true;
	if (p->flow == FLOW_ON)
		return pc == p->next || pc == p->target || is_step(p, b);
	if (p->flow == FLOW_SYSCALL)
		return pc == p->end;
	return p->flow != FLOW_CALL || p->callee == NOWHERE || pc == p->callee;
}

/* Entry i is over, and so are those above it. */
static struct entry interrupt_pop(struct vcpu *v, uint32_t i)
{
	struct entry e = v->stack->entry[i];

	frames_drop(v, i + 1);
	v->stack->top = v->stack->entry + i;
	frame_close(v, v->stack, e.shown);
	v->node = e.node;
	v->pushed = e.pushed;
	v->passed = e.passed;
	v->push_sp = e.sp;
	v->new_sp = e.pushed ? 0 : e.sp;
	v->switched = e.switched;
	v->unsure = e.unsure;
	v->odd = e.switched || e.unsure;
	plugin.stat[UNI_EXACT_RESUMED]++;
	if (!e.handler->is_handler && e.prev->flow != FLOW_SYSCALL) {
		block_became_handler(e.handler);
		plugin.stat[UNI_EXACT_INTERRUPTS]++;
		plugin.stat[UNI_EXACT_UNMATCHED]--;
	}
	return e;
}

static void resume(struct vcpu *v, struct block *b, uint32_t i)
{
	struct entry e = interrupt_pop(v, i);
	uint32_t insn = UINT32_MAX;

	if (e.cut)
		insn = block_insn_at(e.prev, b->pc);
	if (e.cut)
		cut_end(&e, insn);
	if (insn != UINT32_MAX) {
		frame_move(v, b);
	} else if (e.cut) {
		frame_jump(v, b);
	} else if (!e.passed && b->pc == e.prev->last && b->pc != e.prev->target) {
		if ((e.prev->traits & INSN_NEVER) == 0)
			cut_count(v->node, e.prev, e.prev->nr_insns - 1);
		frame_move(v, b);
	} else {
		go_on(v, e.prev, b, true);
	}
}

/* Quiet blocks ran where the interrupt went back to, before b did. */
bool go_back_unseen(struct vcpu *v, struct block *b)
{
	struct entry e;

	if (v->switched)
		stack_change(v);
	for (uint32_t i = stack_nr(v->stack); i-- > 0;) {
		if (!v->stack->entry[i].is_interrupt)
			continue;
		e = interrupt_pop(v, i);
		if (e.cut)
			cut_end(&e, block_insn_quiet(e.prev));
		quiet_flush(v);
		v->passed = true;
		go_on(v, e.prev, b, false);
		return true;
	}
	return false;
}

/* The next interrupt comes before what the last one interrupted could go on. */
bool interrupt_again(struct vcpu *v, struct block *b)
{
	struct entry e;

	if (v->switched)
		stack_change(v);
	for (uint32_t i = stack_nr(v->stack); i-- > 0;) {
		if (!v->stack->entry[i].is_interrupt)
			continue;
		if (!b->is_handler && v->stack->entry[i].handler->pc != b->pc)
			return false;
		e = interrupt_pop(v, i);
		interrupt(v, e.prev, b, e.cut);
		v->stack->top[-1].from = e.from;
		return true;
	}
	return false;
}

void go_back(struct vcpu *v, struct block *b)
{
	struct stack *st;
	uint32_t top = UINT32_MAX;

	if (v->switched)
		stack_change(v);
	st = v->stack;
	for (uint32_t i = stack_nr(st); i-- > 0;) {
		if (!st->entry[i].is_interrupt)
			continue;
		if (goes_on_at(&st->entry[i], b)) {
			resume(v, b, i);
			return;
		}
		if (top == UINT32_MAX)
			top = i;
	}
	if (top != UINT32_MAX)
		resume(v, b, top);
	else
		frame_jump(v, b);
}
