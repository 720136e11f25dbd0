/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks as QEMU translates them, and the facts about each that are needed before it runs. */
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

#define HANDLERS 1024u

struct map {
	uint64_t *key; /* 0: free */
	struct block **v;
	uint32_t nr, mask;
};

/*
 * Blocks by their contents: a translation that QEMU repeats is the same block. `steps` has the
 * addresses that branches within a function lead to; their blocks do not matter.
 */
static struct map known, steps, starts;

static int map_init(struct map *m)
{
	m->mask = (1u << 14) - 1;
	m->v = calloc(m->mask + 1, sizeof(struct block *));
	m->key = calloc(m->mask + 1, sizeof(*m->key));
	return m->v != NULL && m->key != NULL ? 0 : -1;
}

int blocks_init(void)
{
	plugin.handlers = calloc(HANDLERS, sizeof(*plugin.handlers));
	return map_init(&known) == 0 && map_init(&steps) == 0 && map_init(&starts) == 0 &&
			       plugin.handlers != NULL
		       ? 0
		       : -1;
}

/* Version 1 has one argument and gives a pointer; since version 3 the bytes are copied. */
static size_t insn_bytes(struct qemu_plugin_insn *insn, uint8_t out[16])
{
	size_t size = qemu_plugin_insn_size(insn);
	const void *data;

	if (size > 16)
		size = 16;
	if (qemu_plugin_version >= 3)
		return ((size_t(*)(struct qemu_plugin_insn *, void *, size_t))(
			void *)qemu_plugin_insn_data)(insn, out, size);
	data = ((const void *(*)(struct qemu_plugin_insn *))(void *)qemu_plugin_insn_data)(insn);
	memcpy(out, data, size);
	return size;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9fb21c651e98df25);
	return h ^ h >> 32;
}

static uint64_t key_of(const struct qemu_plugin_tb *tb, uint64_t moved)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t key = mix(places_linked(qemu_plugin_tb_vaddr(tb), moved), n);

	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[16] = { 0 };
		size_t size = insn_bytes(qemu_plugin_tb_get_insn(tb, i), bytes);
		uint64_t half[2];

		memcpy(half, bytes, sizeof(half));
		key = mix(mix(mix(key, size), half[0]), half[1]);
	}
	return key | 1;
}

static uint32_t slot_of(const struct map *m, uint64_t key)
{
	uint32_t slot = (uint32_t)(key >> 20) & m->mask;

	while (m->key[slot] != 0 && m->key[slot] != key)
		slot = (slot + 1) & m->mask;
	return slot;
}

static bool map_grow(struct map *m)
{
	struct map new = { .nr = m->nr, .mask = m->mask * 2 + 1 };

	new.v = calloc(new.mask + 1ull, sizeof(struct block *));
	new.key = calloc(new.mask + 1ull, sizeof(*new.key));
	if (new.v == NULL || new.key == NULL) {
		free(new.v);
		free(new.key);
		return false;
	}
	for (uint32_t i = 0; i <= m->mask; i++) {
		if (m->key[i] != 0) {
			uint32_t slot = slot_of(&new, m->key[i]);

			new.key[slot] = m->key[i];
			new.v[slot] = m->v[i];
		}
	}
	free(m->v);
	free(m->key);
	*m = new;
	return true;
}

static bool map_add(struct map *m, uint64_t key, struct block *b)
{
	uint32_t slot;

	if (m->nr * 2 > m->mask && !map_grow(m))
		return false;
	slot = slot_of(m, key);
	m->nr += m->key[slot] == 0;
	m->key[slot] = key;
	m->v[slot] = b;
	return true;
}

static uint64_t key_of_step(uint64_t pc)
{
	return mix(0, pc) | 1;
}

bool is_branched_to(uint64_t pc)
{
	return steps.key[slot_of(&steps, key_of_step(pc))] != 0;
}

static void add_step(const struct block *b, uint64_t to)
{
	if (to != NOWHERE && b->ours && functions_find(&plugin.functions, to) == b->function &&
		!is_branched_to(to))
		(void)map_add(&steps, key_of_step(to), NULL);
}

static bool was_handler(uint64_t pc)
{
	for (uint32_t i = 0; i < plugin.nr_handlers; i++) {
		if (plugin.handlers[i] == pc)
			return true;
	}
	return false;
}

void block_became_handler(struct block *b)
{
	if (!b->is_handler && plugin.nr_handlers < HANDLERS && !was_handler(b->pc))
		plugin.handlers[plugin.nr_handlers++] = b->pc;
	b->is_handler = true;
}

void block_add_steps(const struct block *b)
{
	add_step(b, b->next);
	add_step(b, b->target);
}

static bool stays_inside(const struct block *b)
{
	return (b->next == NOWHERE || is_branched_to(b->next)) &&
	       (b->target == NOWHERE || is_branched_to(b->target));
}

/* A call may return here. */
static bool is_behind_call(const struct qemu_plugin_tb *tb)
{
	const uint8_t *code = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));

	return code == NULL || ((uintptr_t)code & 4095) < plugin.arch->call_bytes ||
	       plugin.arch->is_behind_call(code);
}

/* The first store of the return address shows where the frame is. */
static void find_save(struct block *b, const struct qemu_plugin_tb *tb)
{
	int64_t moved = 0; /* the stack pointer, since the function began */

	for (uint32_t i = 0; i < b->nr_insns; i++) {
		struct sp_access a;
		uint8_t bytes[16];
		size_t size = insn_bytes(qemu_plugin_tb_get_insn(tb, i), bytes);

		if (plugin.arch->sp_access(bytes, size, &a) && a.saves_link) {
			int64_t above = a.link + 8; /* at least */

			if (b->is_start && -moved > above)
				above = -moved;
			b->saves = true;
			b->saved = (int32_t)(above - a.offset);
			return;
		}
		moved += a.moved + plugin.arch->sp_moved(bytes, size);
	}
}

static uint8_t kind_of(const struct block *b, bool is_site)
{
	if (b->switches || b->is_mark)
		return BLOCK_STEP;
	if (b->is_start && plugin.arch->links)
		return b->saves ? BLOCK_SAVE : BLOCK_LINK;
	return b->is_start ? BLOCK_START : is_site ? BLOCK_SITE : BLOCK_STEP;
}

static void add_stop(struct block *b, uint32_t i, const uint8_t *bytes, size_t size)
{
	uint64_t bit = UINT64_C(1) << (i < 63 ? i : 63);

	b->may_stop = b->stops != 0;
	b->traits = 0;
	if (!plugin.arch->may_stop(bytes, size))
		return;
	b->traits = (uint8_t)plugin.arch->traits(bytes, size);
	b->stops |= bit;
	b->traps |= (b->traits & INSN_TRAP) != 0 ? bit : 0;
	b->devices |= (b->traits & INSN_DEVICE) != 0 ? bit : 0;
	if (plugin.arch->is_output != NULL && plugin.arch->is_output(bytes, size))
		b->outputs |= bit;
}

/* All addresses are those that the image is linked for: `moved` is how far the block is from there.
 */
static void block_fill(
	struct block *b, const struct qemu_plugin_tb *tb, uint64_t moved, uint8_t *length)
{
	uint8_t bytes[16] = { 0 };
	size_t size = 0;
	struct flow_insn f;
	bool is_site = is_behind_call(tb);
	uint64_t last = 0;

	b->pc = places_linked(qemu_plugin_tb_vaddr(tb), moved);
	b->nr_insns = (uint32_t)qemu_plugin_tb_n_insns(tb);
	for (uint32_t i = 0; i < b->nr_insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		size = insn_bytes(insn, bytes);
		length[i] = (uint8_t)size;
		last = qemu_plugin_insn_vaddr(insn);
		b->switches = b->switches || plugin.arch->switches_stack(bytes, size);
		add_stop(b, i, bytes, size);
	}
	b->last = places_linked(last, moved);
	b->end = places_linked(last + size, moved);
	/* QEMU shows an instruction that goes on in the next page, and leaves it to a block of its
	 * own. */
	b->is_split = !plugin.arch->links && (last & 4095) > 4096 - 16;
	if (b->is_split) {
		b->may_stop = true;
		b->stops |= UINT64_C(1) << (b->nr_insns < 64 ? b->nr_insns - 1 : 63);
	}
	f = plugin.arch->flow(last, bytes, size);
	f.target = places_linked(f.target, moved);
	b->flow = (uint8_t)f.flow;
	b->next = f.ends || f.flow != FLOW_ON ? NOWHERE : b->end;
	b->target = f.flow == FLOW_ON ? f.target : NOWHERE;
	b->callee = f.flow == FLOW_CALL ? f.target : NOWHERE;
	b->function = functions_find(&plugin.functions, b->pc);
	b->ours = b->function != 0;
	b->is_start = b->ours && plugin.functions.known[b->function].start == b->pc;
	b->is_entry = b->is_start || (plugin.arch->vector_bytes != 0 &&
					     b->pc % plugin.arch->vector_bytes == 0 && !is_site);
	b->is_handler = was_handler(b->pc);
	b->is_step = is_branched_to(b->pc);
	if (plugin.mode != UNI_EXACT_COUNTS)
		block_add_steps(b);
	b->is_mark = b->pc == plugin.begin_at || b->pc == plugin.end_at;
	if (plugin.arch->links)
		find_save(b, tb);
	b->kind = kind_of(b, is_site);
	b->leads = f.flow == FLOW_ON ? b->function : NO_FUNCTION;
	b->takes = b->is_step && !b->switches && !b->is_mark ? b->function : NO_STEP;
	b->is_quiet = b->is_step && !b->is_start && !b->is_handler && !b->is_mark &&
		      b->stops == 0 && !b->switches && f.flow == FLOW_ON && stays_inside(b) &&
		      !is_site;
}

static struct block *block_create(const struct qemu_plugin_tb *tb, uint64_t moved)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *b = n != 0 && n <= UNI_EXACT_BLOCK_INSN
				  ? aligned_alloc(_Alignof(struct block), sizeof(*b))
				  : NULL;
	uint64_t first = 0, index = 0;
	uint8_t *length;

	if (b == NULL)
		return NULL;
	memset(b, 0, sizeof(*b));
	length = area_add(&plugin.area, UNI_EXACT_PART_LENGTHS, n, &first);
	if (length != NULL) {
		block_fill(b, tb, moved, length);
		b->lengths = length;
		b->out = area_add(&plugin.area, UNI_EXACT_PART_BLOCKS, 1, &index);
	}
	if (b->out == NULL) {
		free(b);
		return NULL;
	}
	b->index = (uint32_t)index;
	b->out->pc = b->pc;
	b->out->nr_insns = b->nr_insns;
	b->out->lengths = (uint32_t)first;
	return b;
}

bool block_may_stop_at(const struct block *b, uint32_t insn)
{
	return (b->stops >> (insn < 63 ? insn : 63) & 1) != 0;
}

bool block_may_trap_at(const struct block *b, uint32_t insn)
{
	return insn < 63 && (b->traps >> insn & 1) != 0;
}

bool block_is_point(const struct block *b, uint32_t insn)
{
	return insn != 0 && (block_may_trap_at(b, insn) || block_may_trap_at(b, insn - 1));
}

bool block_may_end_at(const struct block *b, uint32_t insn)
{
	return insn < 63 && (b->outputs >> insn & 1) != 0;
}

bool block_may_reach_device(const struct block *b, uint32_t insn)
{
	return (b->devices >> (insn < 63 ? insn : 63) & 1) != 0;
}

struct block *block_starting_at(uint64_t pc)
{
	return starts.v[slot_of(&starts, key_of_step(pc))];
}

static bool begins_quiet(uint64_t pc)
{
	const struct block *b = block_starting_at(pc);

	while (b != NULL && !b->is_quiet)
		b = b->twin;
	return b != NULL;
}

/* It was cut behind an instruction that may stop, and what follows there is quiet. */
uint32_t block_insn_quiet(const struct block *b)
{
	uint64_t at = b->pc;

	for (uint32_t i = 0; i < b->nr_insns; i++) {
		if (i != 0 && block_may_stop_at(b, i - 1) && begins_quiet(at))
			return i;
		at += b->lengths[i];
	}
	return UINT32_MAX;
}

static struct block *block_of(const struct qemu_plugin_tb *tb)
{
	uint64_t moved = places_moved(tb), key = key_of(tb, moved);
	uint32_t slot = slot_of(&known, key);
	struct block *b;

	if (known.key[slot] != 0)
		return known.v[slot];
	b = block_create(tb, moved);
	if (b == NULL)
		return NULL;
	b->twin = block_starting_at(b->pc);
	if (!map_add(&starts, key_of_step(b->pc), b) || !map_add(&known, key, b)) {
		free(b);
		return NULL;
	}
	return b;
}

static void watch_end(struct qemu_plugin_insn *last)
{
	qemu_plugin_u64 entry = { plugin.score, 0 };

	if (plugin.score != NULL)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			last, QEMU_INLINE_ADD_U64, entry, 1);
	else if (plugin.one_thread)
		qemu_plugin_register_vcpu_insn_exec_inline(
			last, QEMU_INLINE_ADD_U64, plugin.vcpu[0].ended, 1);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(last, block_ended, QEMU_CB_NO_REGS, NULL);
}

/* The first access behind an instruction that loads the stack pointer shows its new value. */
static void watch_switch(const struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	bool switched = false;

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];
		size_t size = insn_bytes(insn, bytes);
		struct sp_access a;

		if (switched && plugin.arch->sp_access(bytes, size, &a)) {
			qemu_plugin_register_vcpu_mem_cb(insn, stack_read, QEMU_CB_NO_REGS,
				QEMU_MEM_RW, (void *)(intptr_t)a.offset);
			return;
		}
		switched = switched || plugin.arch->switches_stack(bytes, size);
	}
}

static void watch_save(const struct qemu_plugin_tb *tb, struct block *b)
{
	for (uint32_t i = 0; i < b->nr_insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];
		size_t size = insn_bytes(insn, bytes);
		struct sp_access a;

		if (plugin.arch->sp_access(bytes, size, &a) && a.saves_link) {
			qemu_plugin_register_vcpu_mem_cb(
				insn, save_callback(), QEMU_CB_NO_REGS, QEMU_MEM_RW, b);
			return;
		}
	}
}

/* QEMU may end at such a write. */
static void watch_ports(const struct qemu_plugin_tb *tb)
{
	size_t n = plugin.arch->is_output != NULL ? qemu_plugin_tb_n_insns(tb) : 0;

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];
		size_t size = insn_bytes(insn, bytes);

		if (plugin.arch->is_output(bytes, size))
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, port_written, QEMU_CB_NO_REGS, (void *)(uintptr_t)i);
	}
}

/* A fault is before, in, or behind such an instruction. */
static void watch_traps(const struct qemu_plugin_tb *tb, const struct block *b)
{
	for (uint32_t i = 1; b->traps != 0 && i + 1 < b->nr_insns; i++) {
		if (block_is_point(b, i))
			qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, i),
				trap_passed, QEMU_CB_NO_REGS, (void *)(uintptr_t)i);
	}
}

static void block_watch(struct qemu_plugin_tb *tb, struct block *b)
{
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, b->nr_insns - 1);

	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_callback(b), QEMU_CB_NO_REGS, b);
	watch_end(last);
	if (b->stops != 0)
		watch_ports(tb);
	watch_traps(tb, b);
	if (b->saves)
		watch_save(tb, b);
	if (b->flow == FLOW_CALL && !plugin.arch->links)
		qemu_plugin_register_vcpu_mem_cb(
			last, call_pushed, QEMU_CB_NO_REGS, QEMU_MEM_RW, b);
	if (b->switches)
		watch_switch(tb);
}

void block_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *b;

	(void)id;
	plugin_lock();
	/* Before the first one there is no vCPU to ask for. */
	if (plugin.score != NULL && plugin.one_thread)
		plugin.vcpu[0].ended = qemu_plugin_scoreboard_find(plugin.score, 0);
	b = block_of(tb);
	if (b == NULL)
		plugin.stat[UNI_EXACT_UNCOUNTED]++;
	else if (plugin.mode == UNI_EXACT_COUNTS)
		count_block(tb, b);
	plugin_unlock();
	if (b == NULL || plugin.mode == UNI_EXACT_COUNTS)
		return;
	/* Only if one counter belongs to one vCPU. */
	if (b->is_quiet && plugin.one_thread && plugin.score == NULL) {
		qemu_plugin_register_vcpu_tb_exec_inline(
			tb, QEMU_INLINE_ADD_U64, &b->out->count, 1);
		qemu_plugin_register_vcpu_tb_exec_inline(
			tb, QEMU_INLINE_ADD_U64, &plugin.quiet, b->nr_insns);
		return;
	}
	block_watch(tb, b);
}
