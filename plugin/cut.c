/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks that were left in their middle, by a fault or by QEMU: after which instruction? */
#include "plugin/plugin.h"

/* The last write to a port: its block, and the instruction behind it. A larger struct vcpu would
 * cost a multiplication each time that a call pushes. */
static struct {
	const struct block *block;
	uint32_t insn;
} written[VCPU_MAX];

/* The last instruction that was passed beside a division, and the blocks that had ended then. */
static struct {
	const struct block *block;
	uint64_t ended;
	uint32_t insn;
} passed[VCPU_MAX];

void port_written(unsigned vcpu, void *udata)
{
	written[vcpu].block = plugin.vcpu[vcpu].prev;
	written[vcpu].insn = (uint32_t)(uintptr_t)udata + 1;
}

void trap_passed(unsigned vcpu, void *udata)
{
	const struct vcpu *v = &plugin.vcpu[vcpu];

	passed[vcpu].block = v->prev;
	passed[vcpu].ended = *v->ended;
	passed[vcpu].insn = (uint32_t)(uintptr_t)udata;
}

uint8_t cut_from(unsigned vcpu, const struct block *b)
{
	bool is_now = passed[vcpu].block == b && passed[vcpu].ended == *plugin.vcpu[vcpu].ended;

	return is_now ? (uint8_t)passed[vcpu].insn : 0;
}

uint32_t block_insn_at(const struct block *b, uint64_t pc)
{
	uint64_t at = b->pc;

	for (uint32_t i = 0; i < b->nr_insns; i++) {
		if (at == pc)
			return i;
		at += b->lengths[i];
	}
	return UINT32_MAX;
}

/* Takes back what was counted for the rest of the block. */
void cut_count(struct node *node, struct block *b, uint32_t insn)
{
	struct uni_exact_cut *cut;
	uint64_t index;

	node->out->insns -= b->nr_insns - insn;
	plugin.clock -= b->nr_insns - insn;
	for (uint32_t i = 0; i < b->nr_cuts; i++) {
		if (b->cut[i]->insn == insn) {
			b->cut[i]->number++;
			return;
		}
	}
	if (b->nr_cuts == CUTS ||
		(cut = area_add(&plugin.area, UNI_EXACT_PART_CUTS, 1, &index)) == NULL) {
		plugin.stat[UNI_EXACT_UNKNOWN_CUTS]++;
		return;
	}
	cut->block = b->index;
	cut->insn = insn;
	cut->number = 1;
	b->cut[b->nr_cuts++] = cut;
}

/* The one instruction that may have faulted; UINT32_MAX: it may be one of several. */
static uint32_t only_fault(const struct block *b, uint32_t from, uint32_t to)
{
	uint32_t place = UINT32_MAX;

	for (uint32_t i = from; i < to; i++) {
		if (!block_may_stop_at(b, i))
			continue;
		if (place != UINT32_MAX)
			return UINT32_MAX;
		place = i;
	}
	return place;
}

/*
 * An instruction that faulted is tried again, or its handler goes on elsewhere. QEMU stops behind
 * an access to a device, and then an interrupt may come.
 */
static uint32_t place_of(const struct entry *e, uint32_t insn)
{
	const struct block *b = e->prev;
	uint32_t last = b->nr_insns - 1, to = e->from + 1u, place;

	while (to < last && !block_is_point(b, to))
		to++;
	if (insn < b->nr_insns && insn >= e->from && block_may_stop_at(b, insn) &&
		(insn < to || (insn == last && b->is_split)))
		return insn;
	place = only_fault(b, e->from, to);
	if (plugin.restarts && insn < b->nr_insns && insn > e->from &&
		(place == UINT32_MAX || insn == place + 1) && block_may_reach_device(b, insn - 1))
		return insn;
	return place;
}

bool cut_now(struct vcpu *v, struct block *p)
{
	const struct entry e = { .prev = p, .from = cut_from((unsigned)(v - plugin.vcpu), p) };
	uint32_t place = v->passed ? UINT32_MAX : place_of(&e, UINT32_MAX);

	if (place == UINT32_MAX || (plugin.restarts && block_may_reach_device(p, place)))
		return false;
	cut_count(v->node, p, place);
	return true;
}

void cut_end(const struct entry *e, uint32_t insn)
{
	uint32_t place;

	if (e->from == CUT_DONE)
		return;
	place = place_of(e, insn);
	if (place != UINT32_MAX)
		cut_count(e->node, e->prev, place);
	else
		plugin.stat[UNI_EXACT_UNKNOWN_CUTS]++;
}

/* QEMU ends within a block: by a write to a port, or the one instruction that may do so. */
void block_left(struct vcpu *v)
{
	struct block *p = v->prev;
	uint32_t at = UINT32_MAX;

	if (!v->live || !plugin.one_thread || *v->ended == (v->go != ODD ? v->go : v->begun))
		return;
	plugin.stat[UNI_EXACT_CUT]++;
	if (written[0].block == p)
		at = written[0].insn;
	for (uint32_t i = 1; i < p->nr_insns && written[0].block != p; i++) {
		if (block_may_stop_at(p, i - 1))
			at = at == UINT32_MAX ? i : p->nr_insns;
	}
	if (at < p->nr_insns)
		cut_count(v->node, p, at);
	else
		plugin.stat[UNI_EXACT_UNKNOWN_CUTS]++;
}
