/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows the guest from block to block. The end of the last block says which blocks may come next.
 * Any other block is an interrupt or an exception, which is followed until it goes back.
 */
#include <stdlib.h>
#include <unistd.h>

#include "plugin/plugin.h"

#define STACKS_ASKED 1024 /* with more, a return is not looked for in all */

static struct stack no_stack;
static struct block nothing = {
	.flow = FLOW_JUMP, .next = NOWHERE, .target = NOWHERE, .callee = NOWHERE
};

void follow_init(void)
{
	stack_init(&no_stack);
	no_stack.node = plugin.tree.node;
	for (unsigned i = 0; i < VCPU_MAX; i++) {
		struct vcpu *v = &plugin.vcpu[i];

		v->prev = &nothing;
		v->stack = &no_stack;
		v->ended = &v->own_ended;
		v->node = plugin.tree.node;
	}
}

void block_ended(unsigned vcpu, void *udata)
{
	(void)udata;
	plugin.vcpu[vcpu].own_ended++;
}

void call_pushed(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	struct vcpu *v = &plugin.vcpu[vcpu];
	const struct block *b = udata;

	/* A call through memory reads first. An interrupt behind it makes QEMU push as well. */
	if (v->pushed || v->prev != b || (b->callee == NOWHERE && !qemu_plugin_mem_is_store(info)))
		return;
	v->pushed = true;
	v->push_sp = vaddr;
}

void stack_read(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	struct vcpu *v = &plugin.vcpu[vcpu];

	(void)info;
	if (v->new_sp == 0)
		v->new_sp = vaddr - (uint64_t)(intptr_t)udata;
}

static uint32_t callee_of(const struct block *b)
{
	return b->function != 0 ? b->function
				: functions_called(&plugin.functions, &plugin.area, b->pc);
}

void frame_enter(struct vcpu *v, const struct block *b)
{
	uint32_t function = callee_of(b);

	v->node = tree_child(&plugin.tree, v->node, function);
	v->node->out->calls++; /* also of a vector in a table that is one function */
	if (plugin.mode == UNI_EXACT_TRACE)
		frame_show(v, function, b->pc);
}

static struct entry *newest(const struct stack *st)
{
	return st->top != st->entry ? st->top - 1 : NULL;
}

/* sp 0: not known, and then the stack is taken for the same one. */
static void call(struct vcpu *v, const struct block *p, const struct block *b, uint64_t sp)
{
	struct entry *e;
	bool is_next;

	v->pushed = false;
	e = newest(v->stack);
	/* The first call of a handler may be on whatever stack the hardware has chosen. */
	is_next = sp == 0 ? true
		  : e != NULL && e->is_interrupt
			  ? !v->odd
			  : !v->odd && sp < (e != NULL ? e->sp : v->stack->high) &&
				    (e == NULL || e->sp - sp <= STACK_STEP);
	if (unlikely(!is_next))
		stack_settle(v, p, sp);
	if (sp != 0 && sp < v->stack->low && v->stack->low - sp <= STACK_STEP)
		v->stack->low = sp;
	e = stack_push(v->stack);
	plugin.stat[UNI_EXACT_CALLS]++;
	if (e != NULL)
		*e = (struct entry){
			.ret = p->end, .sp = sp, .node = v->node, .shown = v->stack->shown
		};
	frame_enter(v, b);
}

/* The block that was called has been counted as its caller's. */
void call_follow(struct vcpu *v, uint64_t sp)
{
	const struct block *p = v->caller, *b = v->prev;

	v->caller = NULL;
	v->node->out->insns -= b->nr_insns;
	plugin.clock -= b->nr_insns;
	call(v, p, b, sp);
	v->node->out->insns += b->nr_insns;
	plugin.clock += b->nr_insns;
	if (b->switches) {
		v->switched = v->odd = true;
		v->new_sp = 0;
	}
	v->go = v->odd ? ODD : v->begun;
}

void frame_saw(struct vcpu *v, uint64_t sp)
{
	struct stack *st = v->stack;
	struct entry *e = newest(st);

	if (e != NULL && !e->is_interrupt && e->sp == 0)
		e->sp = sp;
}

static bool pop_expected(struct vcpu *v, uint64_t pc)
{
	struct stack *st = v->stack;
	struct entry *e = newest(st);

	if (e == NULL || e->is_interrupt || e->ret != pc)
		return false;
	st->top = e;
	v->node = e->node;
	plugin.stat[UNI_EXACT_RETURNS]++;
	if (plugin.mode == UNI_EXACT_TRACE)
		frame_close(v, st, e->shown);
	return true;
}

/* Quiet blocks ran where the newest call returns to, before b did: code that has become a call. */
static bool pop_unseen(struct vcpu *v, const struct block *b)
{
	const struct entry *e = newest(v->stack);

	return e != NULL && b->ours && functions_find(&plugin.functions, e->ret) == b->function &&
	       pop_expected(v, e->ret);
}

static bool is_in_use(const struct stack *st)
{
	for (unsigned i = 0; i < VCPU_MAX; i++) {
		if (plugin.vcpu[i].live && plugin.vcpu[i].stack == st)
			return true;
	}
	return false;
}

/*
 * The stack pointer was loaded, and its value has not been seen, as when OCaml 5 returns from its C
 * stack, or as `leave` does it. Takes the one other stack whose newest call returns there.
 */
static bool pop_elsewhere(struct vcpu *v, uint64_t pc)
{
	const struct stacks *all = &plugin.stacks;
	struct stack *found = NULL;

	for (uint32_t i = 0; i < all->nr && all->nr <= STACKS_ASKED; i++) {
		const struct entry *e = newest(all->v[i]);

		if (e == NULL || e->is_interrupt || e->ret != pc || is_in_use(all->v[i]))
			continue;
		if (found != NULL)
			return false;
		found = all->v[i];
	}
	if (found == NULL)
		return false;
	stack_enter(v, found);
	v->unsure = v->odd = false;
	return pop_expected(v, pc);
}

static void come_back(struct vcpu *v, struct block *p, struct block *b, bool resumed)
{
	uint32_t i;

	if (likely(!v->switched && (v->passed ? pop_unseen(v, b) : pop_expected(v, b->pc))))
		return;
	if (v->passed)
		quiet_flush(v);
	if (b->is_handler && !resumed) {
		interrupt(v, p, b, false);
		return;
	}
	if (v->switched) {
		stack_change(v);
		if (pop_expected(v, b->pc) || (v->unsure && pop_elsewhere(v, b->pc)))
			return;
		if (b->is_start) { /* a thread begins */
			frames_drop(v, 0);
			frame_close(v, v->stack, false);
			v->node = plugin.tree.node;
			plugin.stat[UNI_EXACT_TAIL_CALLS]++;
			plugin.stat[UNI_EXACT_CALLS]++;
			frame_enter(v, b);
			return;
		}
	}
	/* No call is open here: an epilogue may load the stack pointer of another stack. */
	if (stack_nr(v->stack) == 0 && pop_elsewhere(v, b->pc))
		return;
	i = stack_find_return(v->stack, b->pc);
	if (i != UINT32_MAX) {
		frames_drop(v, i + 1);
		(void)pop_expected(v, b->pc);
		return;
	}
	/* A jump by a return, as a switch of threads goes on in itself. */
	if (b->ours && b->function == v->node->function)
		return;
	plugin.stat[UNI_EXACT_UNMATCHED]++;
	if (b->is_entry && !resumed) {
		interrupt_push(v, p, b, false);
		return;
	}
	/* The function that counting began with returns: nobody has seen its call. */
	if (plugin.mode == UNI_EXACT_TRACE && stack_nr(v->stack) == 0)
		frame_close(v, v->stack, false);
	v->unsure = v->odd = true;
	frame_jump(v, b);
}

void go_on(struct vcpu *v, struct block *p, struct block *b, bool resumed)
{
	bool expected = true;

	switch (p->flow) {
	case FLOW_ON:
		expected = b->pc == p->next || b->pc == p->target || is_step(p, b) ||
			   (v->passed && p->target != NOWHERE && b->function != 0 &&
				   functions_find(&plugin.functions, p->target) == b->function);
		if (expected && b->pc == p->target && b->function == 0)
			frame_jump_out(v, b);
		else if (expected)
			frame_move(v, b);
		break;
	case FLOW_CALL:
		expected = (v->pushed || plugin.arch->links) &&
			   (p->callee == NOWHERE ? resumed || !b->is_handler : b->pc == p->callee);
		if (expected && b->saves && b->is_start)
			v->caller = p;
		else if (expected)
			call(v, p, b, plugin.arch->links ? 0 : v->push_sp);
		break;
	case FLOW_RETURN:
		come_back(v, p, b, resumed);
		break;
	case FLOW_JUMP:
		expected = resumed || !b->is_handler;
		if (expected)
			frame_jump_out(v, b);
		break;
	case FLOW_IRET:
		if (!resumed && interrupt_again(v, b))
			return;
		if (v->passed && !resumed && go_back_unseen(v, b))
			return;
		expected = !b->is_handler;
		if (expected)
			go_back(v, b);
		break;
	default: /* FLOW_SYSCALL */
		expected = b->pc == p->end;
		break;
	}
	if (expected)
		return;
	if (resumed) {
		frame_jump(v, b);
		return;
	}
	if ((p->traits & INSN_NEVER) != 0)
		cut_count(v->node, p, p->nr_insns - 1);
	interrupt(v, p, b, false);
}

/* Counting begins with a function that p has called: it returns there. */
static bool begin_called(struct vcpu *v, const struct block *p, const struct block *b)
{
	struct entry *e;

	if (b->pc != plugin.begin_at || p->flow != FLOW_CALL || (!v->pushed && !plugin.arch->links))
		return false;
	e = stack_push(v->stack);
	if (e == NULL)
		return false;
	*e = (struct entry){ .ret = p->end,
		.sp = v->pushed ? v->push_sp : 0,
		.node = tree_child(&plugin.tree, plugin.tree.node, p->function) };
	return true;
}

/* Code that ran before --begin-at is a sum only. b is the first block that counts. */
static void forget_before(const struct block *b)
{
	struct uni_exact_block *all = area_entries(&plugin.area, UNI_EXACT_PART_BLOCKS);

	for (uint64_t i = 0; i < plugin.area.nr[UNI_EXACT_PART_BLOCKS]; i++)
		all[i].count = 0;
	b->out->count = 1;
}

/* The image's first block on this vCPU. */
static void begin(struct vcpu *v, const struct block *p, const struct block *b)
{
	v->stack = stacks_add(&plugin.stacks, 0);
	if (v->stack == NULL)
		return;
	if (plugin.stat[UNI_EXACT_CALLS] == 0) {
		plugin.clock = -plugin.quiet; /* time begins */
		if (plugin.begin_at != NOWHERE)
			forget_before(b);
	}
	v->live = true;
	v->unsure = v->odd = true;
	v->node = plugin.tree.node;
	plugin.stat[UNI_EXACT_CALLS]++;
	plugin.stat[UNI_EXACT_TAIL_CALLS] += !begin_called(v, p, b);
	frame_enter(v, b);
}

static void follow(struct vcpu *v, struct block *p, struct block *b)
{
	uint32_t insn;
	bool done;

	if (!v->live) {
		v->cut = false;
		v->odd = false;
		plugin.begun =
			plugin.begun || plugin.begin_at == NOWHERE || b->pc == plugin.begin_at;
		if (b->ours && plugin.begun)
			begin(v, p, b);
		else if (plugin.stat[UNI_EXACT_CALLS] != 0 && v->node == plugin.tree.node)
			/* It was started by the image: no firmware. */
			v->node = tree_child(&plugin.tree, v->node, 0);
		return;
	}
	if (!v->cut) {
		go_on(v, p, b, false);
		return;
	}
	v->cut = false;
	v->odd = v->switched || v->unsure;
	plugin.stat[UNI_EXACT_CUT]++;
	insn = v->passed ? block_insn_quiet(p) : block_insn_at(p, b->pc);
	if (insn == UINT32_MAX) {
		done = cut_now(v, p);
		interrupt(v, p, b, true);
		if (done)
			v->stack->top[-1].from = CUT_DONE;
		return;
	}
	/* QEMU itself has stopped there: an access to a device with -icount, code that changed. */
	cut_count(v->node, p, insn);
	frame_move(v, b);
}

void block_slow(struct vcpu *v, struct block *p, struct block *b, uint64_t ended)
{
	if (v->caller != NULL) /* p has faulted before it could show its stack pointer */
		call_follow(v, 0);
	if (ended != (v->go != ODD ? v->go : v->begun))
		v->cut = v->odd = true;
	v->passed = plugin.quiet != 0;
	if (v->live && b->pc == plugin.end_at) {
		b->out->count--; /* not executed any more */
		plugin_end(UNI_EXACT_REACHED);
		_exit(0);
	}
	if (likely(ended == v->go) && !b->switches && !b->is_mark && p->flow == FLOW_ON &&
		b->function == p->function &&
		(b->pc == p->next || b->pc == p->target || b->is_step))
		b->from = p;
	if (v->passed && p->flow != FLOW_IRET && (p->flow != FLOW_RETURN || v->cut))
		quiet_flush(v);
	if (b->from != p || v->go != ended)
		follow(v, p, b);
	if (v->passed)
		quiet_flush(v);
	v->passed = v->pushed = false;
	if (b->switches && v->live && v->caller == NULL) {
		v->switched = v->odd = true;
		v->new_sp = 0;
	}
	v->begun = ended + 1;
	v->go = v->odd || v->caller != NULL ? ODD : v->begun;
	v->node->out->insns += b->nr_insns;
	plugin.clock += b->nr_insns;
}

/* And the blocks that a fault has left, and to which nothing has returned. */
static uint64_t frames_open(void)
{
	uint64_t open = 0;

	for (uint32_t i = 0; i < plugin.stacks.nr; i++) {
		for (uint32_t j = 0; j < stack_nr(plugin.stacks.v[i]); j++) {
			const struct entry *e = &plugin.stacks.v[i]->entry[j];

			open += !e->is_interrupt;
			if (e->is_interrupt && e->cut)
				cut_end(e, UINT32_MAX);
		}
	}
	return open;
}

void follow_end(void)
{
	for (uint32_t i = 0; i < VCPU_MAX; i++) {
		if (plugin.vcpu[i].caller != NULL)
			call_follow(&plugin.vcpu[i], 0);
	}
	block_left(&plugin.vcpu[0]);
	if (plugin.quiet != 0)
		quiet_flush(&plugin.vcpu[0]);
	if (plugin.mode == UNI_EXACT_TRACE)
		calls_end();
	plugin.stat[UNI_EXACT_OPEN] = frames_open();
}
