/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QEMU calls these functions at the beginning of a block. The likely cases are decided here: a step
 * within a function, a plain call, a plain return. All else is follow.c's.
 */
#include "plugin/plugin.h"

/* On this stack, and right below the newest frame? */
static inline bool is_below(struct stack *st, uint64_t sp)
{
	const struct entry *e = st->top;

	if (unlikely(e == st->end || e[-1].is_interrupt || e[-1].sp - sp - 1 >= STACK_STEP))
		return false;
	/* A handler may be on a stack of its own. */
	if (sp < st->low && st->low - sp <= STACK_STEP)
		st->low = sp;
	return true;
}

/* There is room for it. */
static inline __attribute__((always_inline)) void frame_push(struct vcpu *v, const struct block *p,
	const struct block *b, uint64_t sp, struct node *to, bool calls)
{
	struct stack *st = v->stack;
	struct entry *e = st->top;

	st->top = e + 1;
	e->node = v->node;
	v->node = to;
	e->ret = p->end;
	e->sp = sp;
	e->is_interrupt = false;
	e->shown = st->shown;
	plugin.stat[UNI_EXACT_CALLS]++;
	to->out->calls++;
	if (calls)
		frame_show(v, b->function, b->pc);
}

/* A call whose push lies right below the last one on the same stack. */
static inline __attribute__((always_inline)) bool is_call(
	const struct vcpu *v, const struct block *p, const struct block *b)
{
	return likely(p->flow == FLOW_CALL && v->pushed &&
		      (b->pc == p->callee || (p->callee == NOWHERE && !b->is_handler)) &&
		      is_below(v->stack, v->push_sp));
}

/* A call of a function that stores no return address at its begin: its frame is not known. */
static inline __attribute__((always_inline)) bool is_link(
	const struct vcpu *v, const struct block *p, const struct block *b)
{
	return likely(p->flow == FLOW_CALL && b->pc == p->callee && v->stack->top != v->stack->end);
}

static inline __attribute__((always_inline)) bool return_fast(
	struct vcpu *v, const struct block *p, const struct block *b, bool calls)
{
	struct stack *st = v->stack;
	struct entry *e = st->top - 1;

	if (unlikely(p->flow != FLOW_RETURN || e->ret != b->pc))
		return false;
	st->top = e;
	plugin.stat[UNI_EXACT_RETURNS]++;
	v->node = e->node;
	if (calls)
		frame_close(v, st, e->shown);
	return true;
}

/* Nothing is odd: no interrupt, no block cut short, no quiet blocks. */
static inline bool is_plain(const struct vcpu *v, uint64_t ended)
{
	return likely(ended == v->go && plugin.quiet == 0);
}

/* The same, or quiet blocks have led to a step. */
static inline __attribute__((always_inline)) bool is_step_on(
	struct vcpu *v, const struct block *p, const struct block *b, uint64_t ended)
{
	if (unlikely(ended != v->go || (p->leads != b->takes && b->from != p)))
		return false;
	if (plugin.quiet != 0)
		quiet_flush(v);
	return true;
}

static inline __attribute__((always_inline)) void block_count(
	struct vcpu *v, const struct block *b, uint64_t ended, bool calls)
{
	v->go = ended + 1;
	v->node->out->insns += b->nr_insns;
	if (calls)
		plugin.clock += b->nr_insns;
}

/* Goes on in its own function, or at the first instruction of another one. */
static bool is_jump(const struct vcpu *v, const struct block *p, const struct block *b)
{
	if (!v->live || b->switches || b->is_mark ||
		(b->function != v->node->function && !b->is_start))
		return false;
	return p->flow == FLOW_ON ? b->pc == p->target || b->pc == p->next
				  : p->flow == FLOW_JUMP && !b->is_handler;
}

static __attribute__((noinline)) void block_other(
	struct vcpu *v, struct block *p, struct block *b, uint64_t ended)
{
	if (!is_plain(v, ended) || !is_jump(v, p, b)) {
		block_slow(v, p, b, ended);
		return;
	}
	frame_move(v, b);
	block_count(v, b, ended, true);
}

static inline __attribute__((always_inline)) void call_fast(struct vcpu *v, const struct block *p,
	const struct block *b, uint64_t sp, uint64_t ended, bool calls)
{
	v->pushed = false;
	frame_push(v, p, b, sp, tree_child(&plugin.tree, v->node, b->function), calls);
	block_count(v, b, ended, calls);
}

static inline __attribute__((always_inline)) void block_follow(
	struct vcpu *v, struct block *b, uint8_t kind, bool calls)
{
	struct block *p = v->prev;
	uint64_t ended = *v->ended;
	bool plain = is_plain(v, ended);

	v->prev = b;
	b->out->count++;
	if (kind == BLOCK_START && plain && is_call(v, p, b)) {
		call_fast(v, p, b, v->push_sp, ended, calls);
		return;
	}
	if (kind == BLOCK_LINK && plain && is_link(v, p, b)) {
		call_fast(v, p, b, 0, ended, calls);
		return;
	}
	if ((kind == BLOCK_SITE && plain && return_fast(v, p, b, calls)) ||
		is_step_on(v, p, b, ended)) {
		block_count(v, b, ended, calls);
		return;
	}
	if (kind == BLOCK_SAVE && plain && v->live && p->flow == FLOW_CALL && b->pc == p->callee) {
		/* The function will store its return address in this block: see block_saves(). */
		v->caller = p;
		v->begun = ended + 1;
		v->go = ODD;
		v->node->out->insns += b->nr_insns;
		plugin.clock += b->nr_insns;
		return;
	}
	block_other(v, p, b, ended);
}

/* The return address is stored there. */
static inline __attribute__((always_inline)) void block_saves(
	struct vcpu *v, const struct block *b, uint64_t at, bool calls)
{
	uint64_t sp = at + (uint64_t)(int64_t)b->saved;

	if (v->caller == NULL) {
		frame_saw(v, sp);
	} else if (!v->odd && !b->switches && is_below(v->stack, sp)) {
		v->node->out->insns -= b->nr_insns;
		plugin.clock -= b->nr_insns;
		frame_push(
			v, v->caller, b, sp, tree_child(&plugin.tree, v->node, b->function), calls);
		v->node->out->insns += b->nr_insns;
		plugin.clock += b->nr_insns;
		v->caller = NULL;
		v->go = v->begun;
	} else {
		call_follow(v, sp);
	}
}

static void saves(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	(void)info;
	plugin_lock();
	block_saves(&plugin.vcpu[index], udata, vaddr, plugin.mode == UNI_EXACT_TRACE);
	plugin_unlock();
}

static void saves_one(unsigned index, qemu_plugin_meminfo_t info, uint64_t vaddr, void *udata)
{
	(void)index;
	(void)info;
	block_saves(&plugin.vcpu[0], udata, vaddr, plugin.mode == UNI_EXACT_TRACE);
}

qemu_mem_fn save_callback(void)
{
	return plugin.one_thread ? saves_one : saves;
}

static inline struct vcpu *vcpu_lock(unsigned index)
{
	plugin_lock();
	if (plugin.score != NULL)
		plugin.vcpu[index].ended = qemu_plugin_scoreboard_find(plugin.score, index);
	return &plugin.vcpu[index];
}

/* By kind of block, so that each asks for what is likely first. */
#define ENTRY(name, kind)                                           \
	static void enter_##name(unsigned index, void *udata)       \
	{                                                           \
		block_follow(vcpu_lock(index), udata, kind, false); \
		plugin_unlock();                                    \
	}                                                           \
	static void enter_one_##name(unsigned index, void *udata)   \
	{                                                           \
		(void)index;                                        \
		block_follow(&plugin.vcpu[0], udata, kind, false);  \
	}                                                           \
	static void record_##name(unsigned index, void *udata)      \
	{                                                           \
		if (unlikely(plugin.vcpu[index].ring.behind))       \
			calls_wait(&plugin.vcpu[index].ring);       \
		block_follow(vcpu_lock(index), udata, kind, true);  \
		plugin_unlock();                                    \
	}                                                           \
	static void record_one_##name(unsigned index, void *udata)  \
	{                                                           \
		(void)index;                                        \
		if (unlikely(plugin.vcpu[0].ring.behind))           \
			calls_wait(&plugin.vcpu[0].ring);           \
		block_follow(&plugin.vcpu[0], udata, kind, true);   \
	}
ENTRY(step, BLOCK_STEP)
ENTRY(start, BLOCK_START)
ENTRY(site, BLOCK_SITE)
ENTRY(save, BLOCK_SAVE)
ENTRY(link, BLOCK_LINK)
#undef ENTRY

qemu_vcpu_udata_fn block_callback(const struct block *b)
{
	static const qemu_vcpu_udata_fn all[2][2][BLOCK_KINDS] = {
		{ { enter_step, enter_start, enter_site, enter_save, enter_link },
			{ enter_one_step, enter_one_start, enter_one_site, enter_one_save,
				enter_one_link } },
		{ { record_step, record_start, record_site, record_save, record_link },
			{ record_one_step, record_one_start, record_one_site, record_one_save,
				record_one_link } },
	};

	return all[plugin.mode == UNI_EXACT_TRACE][plugin.one_thread][b->kind];
}
