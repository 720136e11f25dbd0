/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks as QEMU translates them: what is to be known of each before it runs. */
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

#define HANDLERS 1024u

/* Blocks by what they are: a translation that QEMU repeats is the same block. */
static struct {
	struct block **v;
	uint64_t *key;
	uint32_t nr, mask;
} known;

int blocks_init(void)
{
	known.mask = (1u << 14) - 1;
	known.v = calloc(known.mask + 1, sizeof(*known.v));
	known.key = calloc(known.mask + 1, sizeof(*known.key));
	plugin.handlers = calloc(HANDLERS, sizeof(*plugin.handlers));
	return known.v != NULL && known.key != NULL && plugin.handlers != NULL ? 0 : -1;
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

static uint64_t key_of(const struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	uint64_t key = mix(qemu_plugin_tb_vaddr(tb), n);

	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[16] = { 0 };
		size_t size = insn_bytes(qemu_plugin_tb_get_insn(tb, i), bytes);
		uint64_t half[2];

		memcpy(half, bytes, sizeof(half));
		key = mix(mix(mix(key, size), half[0]), half[1]);
	}
	return key | 1;
}

static uint32_t slot_of(uint64_t key)
{
	uint32_t slot = (uint32_t)(key >> 20) & known.mask;

	while (known.key[slot] != 0 && known.key[slot] != key)
		slot = (slot + 1) & known.mask;
	return slot;
}

static bool grow_known(void)
{
	uint32_t old = known.mask + 1;
	struct block **v = known.v;
	uint64_t *key = known.key;

	known.v = calloc(2ull * old, sizeof(*known.v));
	known.key = calloc(2ull * old, sizeof(*known.key));
	if (known.v == NULL || known.key == NULL) {
		free(known.v);
		free(known.key);
		known.v = v;
		known.key = key;
		return false;
	}
	known.mask = old * 2 - 1;
	for (uint32_t i = 0; i < old; i++) {
		if (key[i] != 0) {
			uint32_t slot = slot_of(key[i]);

			known.key[slot] = key[i];
			known.v[slot] = v[i];
		}
	}
	free(v);
	free(key);
	return true;
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

static void block_fill(struct block *b, const struct qemu_plugin_tb *tb, uint8_t *length)
{
	uint8_t bytes[16] = { 0 };
	size_t size = 0;
	struct flow_insn f;

	b->pc = qemu_plugin_tb_vaddr(tb);
	b->nr_insns = (uint32_t)qemu_plugin_tb_n_insns(tb);
	for (uint32_t i = 0; i < b->nr_insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		size = insn_bytes(insn, bytes);
		length[i] = (uint8_t)size;
		b->last = qemu_plugin_insn_vaddr(insn);
		b->switches = b->switches || x86_64_switches_stack(bytes, size);
	}
	b->end = b->last + size;
	f = x86_64_flow(b->last, bytes, size);
	b->flow = (uint8_t)f.flow;
	b->next = f.ends || f.flow != FLOW_ON ? NOWHERE : b->end;
	b->target = f.flow == FLOW_ON ? f.target : NOWHERE;
	b->callee = f.flow == FLOW_CALL ? f.target : NOWHERE;
	b->function = functions_find(&plugin.functions, b->pc);
	b->ours = b->function != 0;
	b->is_start = b->ours && plugin.functions.known[b->function].start == b->pc;
	b->is_handler = was_handler(b->pc);
}

static struct block *block_create(const struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *b = n != 0 && n <= UNI_EXACT_BLOCK_INSN ? calloc(1, sizeof(*b)) : NULL;
	uint64_t first, index;
	uint8_t *length;

	if (b == NULL)
		return NULL;
	length = area_add(&plugin.area, UNI_EXACT_PART_LENGTHS, n, &first);
	if (length != NULL) {
		block_fill(b, tb, length);
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

static struct block *block_of(const struct qemu_plugin_tb *tb)
{
	uint64_t key = key_of(tb);
	uint32_t slot = slot_of(key);

	if (known.key[slot] != 0)
		return known.v[slot];
	if (known.nr * 2 > known.mask) {
		if (!grow_known())
			return NULL;
		slot = slot_of(key);
	}
	known.v[slot] = block_create(tb);
	if (known.v[slot] == NULL)
		return NULL;
	known.key[slot] = key;
	known.nr++;
	return known.v[slot];
}

static void watch_end(struct qemu_plugin_insn *last)
{
	qemu_plugin_u64 entry = { plugin.score, 0 };

	if (plugin.score != NULL)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			last, QEMU_INLINE_ADD_U64, entry, 1);
	else if (plugin.one_thread)
		qemu_plugin_register_vcpu_insn_exec_inline(
			last, QEMU_INLINE_ADD_U64, plugin.vcpu[0].clock->ended, 1);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(last, block_ended, QEMU_CB_NO_REGS, NULL);
}

/* Behind an instruction that loads the stack pointer, the first pop tells what it is now. */
static void watch_switch(const struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	bool switched = false;

	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16];
		size_t size = insn_bytes(insn, bytes);

		if (switched && x86_64_pops(bytes, size)) {
			qemu_plugin_register_vcpu_mem_cb(
				insn, stack_read, QEMU_CB_NO_REGS, QEMU_MEM_RW, NULL);
			return;
		}
		switched = switched || x86_64_switches_stack(bytes, size);
	}
}

void block_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct qemu_plugin_insn *last;
	struct block *b;

	(void)id;
	plugin_lock();
	/* Before the first one there is no vCPU to ask for. */
	if (plugin.score != NULL && plugin.one_thread)
		plugin.vcpu[0].own_clock.ended = qemu_plugin_scoreboard_find(plugin.score, 0);
	b = block_of(tb);
	if (b == NULL)
		plugin.stat[UNI_EXACT_UNCOUNTED]++;
	plugin_unlock();
	if (b == NULL)
		return;
	last = qemu_plugin_tb_get_insn(tb, b->nr_insns - 1);
	qemu_plugin_register_vcpu_tb_exec_cb(
		tb, plugin.one_thread ? block_enter_one : block_enter, QEMU_CB_NO_REGS, b);
	watch_end(last);
	if (b->flow == FLOW_CALL)
		qemu_plugin_register_vcpu_mem_cb(
			last, call_pushed, QEMU_CB_NO_REGS, QEMU_MEM_RW, b);
	if (b->switches)
		watch_switch(tb);
}
