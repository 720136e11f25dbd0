/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QEMU calls these functions at the beginning of a block. The likely cases are decided here: a step
 * within a function, a plain call, a plain return. All else is follow.c's.
 */
#include "plugin/plugin.h"

static inline void node_enter(struct vcpu *v, uint32_t node)
{
	v->node = node;
	v->insns = &plugin.tree.out[node].insns;
}

/* On this stack, and right below the newest frame? */
static inline bool is_below(struct stack *st, uint64_t sp)
{
	const struct entry *e = st->entry + st->nr;

	if (unlikely(st->nr == 0 || st->nr == st->cap || e[-1].is_interrupt ||
		     e[-1].sp - sp - 1 >= STACK_STEP))
		return false;
	if (sp < st->low)
		st->low = sp;
	return true;
}

static inline __attribute__((always_inline)) void frame_push(
	struct vcpu *v, const struct block *p, const struct block *b, uint64_t sp, bool calls)
{
	struct stack *st = v->stack;
	struct entry *e = st->entry + st->nr;

	e->ret = p->end;
	e->sp = sp;
	e->node = v->node;
	e->is_interrupt = false;
	e->shown = st->shown;
	st->nr++;
	plugin.stat[UNI_EXACT_CALLS]++;
	node_enter(v, tree_child(&plugin.tree, v->node, b->function));
	plugin.tree.out[v->node].calls++;
	if (calls)
		frame_show(v, b->function, b->pc);
}

/* A call whose push lies right below the last one on the same stack. */
static inline __attribute__((always_inline)) bool call_fast(
	struct vcpu *v, const struct block *p, const struct block *b, bool calls)
{
	struct stack *st = v->stack;
	uint64_t sp = v->push_sp;

	if (unlikely(b->pc != p->callee || !v->pushed || !is_below(st, sp)))
		return false;
	v->pushed = false;
	frame_push(v, p, b, sp, calls);
	return true;
}

/* A call of a function that stores no return address at its begin: its frame is not known. */
static inline __attribute__((always_inline)) bool call_link(
	struct vcpu *v, const struct block *p, const struct block *b, bool calls)
{
	struct stack *st = v->stack;

	if (unlikely(b->pc != p->callee || st->nr == st->cap))
		return false;
	frame_push(v, p, b, 0, calls);
	return true;
}

static inline __attribute__((always_inline)) bool return_fast(
	struct vcpu *v, const struct block *b, bool calls)
{
	struct stack *st = v->stack;
	const struct entry *e = st->entry + st->nr - 1;

	if (unlikely(st->nr == 0 || e->ret != b->pc || e->is_interrupt))
		return false;
	st->nr--;
	plugin.stat[UNI_EXACT_RETURNS]++;
	node_enter(v, e->node);
	if (calls)
		frame_close(v, st, e->shown);
	return true;
}

/* Nothing is odd: no interrupt, no block cut short, no quiet blocks. */
static inline bool is_plain(const struct vcpu *v, uint64_t ended)
{
	return likely(ended == v->go && plugin.quiet == v->quiet);
}

static inline __attribute__((always_inline)) void block_follow(
	struct vcpu *v, struct block *b, uint8_t kind, bool calls)
{
	struct block *p = v->prev;
	uint64_t ended = *v->ended;
	bool plain = is_plain(v, ended);

	v->prev = b;
	b->out->count++;
	if (likely((plain && b->from == p) ||
		    (kind == BLOCK_START && plain && p->flow == FLOW_CALL &&
			    call_fast(v, p, b, calls)) ||
		    (kind == BLOCK_LINK && plain && p->flow == FLOW_CALL &&
			    call_link(v, p, b, calls)) ||
		    (kind == BLOCK_SITE && plain && p->flow == FLOW_RETURN &&
			    return_fast(v, b, calls)))) {
		v->go = ended + 1;
		*v->insns += b->nr_insns;
		if (calls)
			plugin.clock += b->nr_insns;
		return;
	}
	if (kind == BLOCK_SAVE && plain && v->live && p->flow == FLOW_CALL && b->pc == p->callee) {
		/* The function will store its return address in this block: see block_saves(). */
		v->caller = p;
		v->begun = ended + 1;
		v->go = ODD;
		*v->insns += b->nr_insns;
		plugin.clock += b->nr_insns;
		return;
	}
	block_slow(v, p, b, ended);
}

/* The return address is stored there. */
static inline __attribute__((always_inline)) void block_saves(
	struct vcpu *v, const struct block *b, uint64_t at, bool calls)
{
	uint64_t sp = at + (uint64_t)(int64_t)b->saved;

	if (v->caller == NULL) {
		frame_saw(v, sp);
	} else if (!v->odd && !b->switches && is_below(v->stack, sp)) {
		*v->insns -= b->nr_insns;
		plugin.clock -= b->nr_insns;
		frame_push(v, v->caller, b, sp, calls);
		*v->insns += b->nr_insns;
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
