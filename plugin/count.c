/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts alone: QEMU adds to two numbers of each block, at its beginning and at its last
 * instruction, and calls no function of ours. A block that began and did not end was cut short. The
 * block that then begins in its middle shows the place.
 */
#include <stdlib.h>

#include "plugin/plugin.h"

#define CHUNK 512u /* blocks that share a scoreboard */

struct pair {
	uint64_t begun, ended;
};

/* Per vCPU since version 2: memory of QEMU's that moves when vCPUs are added. */
static struct {
	struct qemu_plugin_scoreboard *score[UNI_EXACT_BLOCKS / CHUNK];
	uint64_t *ended; /* version 1, by index: of all vCPUs, which share a thread */
	struct block **block;
	uint32_t nr, cap;
	struct uni_exact_node *root; /* what ran before the image's first instruction */
	struct pair *before;	     /* by index, as they were then */
	uint32_t nr_before;
} counts;

static bool counts_room(uint32_t index)
{
	struct qemu_plugin_scoreboard **score = &counts.score[index / CHUNK];

	if (index >= counts.cap) {
		uint32_t cap = counts.cap == 0 ? 1u << 14 : counts.cap * 2;
		struct block **block = realloc(counts.block, cap * sizeof(struct block *));

		if (block == NULL)
			return false;
		counts.block = block;
		counts.cap = cap;
	}
	if (plugin.score != NULL && *score == NULL)
		*score = qemu_plugin_scoreboard_new(CHUNK * sizeof(struct pair));
	return plugin.score == NULL || *score != NULL;
}

int counts_init(void)
{
	/* The last one is of code without a function that runs after the image's first. */
	uint32_t nr = plugin.functions.nr_known + 2;
	struct uni_exact_node *node = area_add(&plugin.area, UNI_EXACT_PART_NODES, nr, NULL);

	for (uint32_t i = 0; node != NULL && i < nr; i++)
		node[i].function = i < nr - 1 ? i : 0;
	counts.root = node;
	/* Not touched before it is used: QEMU's threads write to fixed addresses. */
	if (plugin.score == NULL)
		counts.ended = calloc(UNI_EXACT_BLOCKS, sizeof(*counts.ended));
	return node != NULL && (plugin.score != NULL || counts.ended != NULL) ? 0 : -1;
}

static uint64_t ends_of(const struct block *b)
{
	uint64_t ended = 0;

	if (plugin.score == NULL)
		return counts.ended[b->index];
	b->out->count = 0;
	for (uint32_t i = 0; i < plugin.area.header->nr_vcpus; i++) {
		const struct pair *p =
			qemu_plugin_scoreboard_find(counts.score[b->index / CHUNK], i);

		b->out->count += p[b->index % CHUNK].begun;
		ended += p[b->index % CHUNK].ended;
	}
	return ended;
}

/* The image is about to begin: what the blocks have executed so far was firmware. */
static void keep_before(void)
{
	counts.before = calloc(counts.nr + 1ull, sizeof(*counts.before));
	counts.nr_before = counts.before != NULL ? counts.nr : 0;
	for (uint32_t i = 0; i < counts.nr; i++) {
		const struct block *b = counts.block[i];
		uint64_t ended = ends_of(b);

		counts.root->insns += b->out->count * b->nr_insns;
		if (counts.before != NULL)
			counts.before[i] = (struct pair){ b->out->count, ended };
	}
}

/* So many executions of b have ended at that instruction: the firmware's come first. */
static void cut_before(const struct block *b, uint32_t insn, uint64_t number)
{
	const struct pair *p = b->index < counts.nr_before ? &counts.before[b->index] : NULL;

	if (p == NULL || p->ended >= p->begun)
		return;
	if (number > p->begun - p->ended)
		number = p->begun - p->ended;
	counts.root->insns -= number * (b->nr_insns - insn);
}

void count_block(struct qemu_plugin_tb *tb, struct block *b)
{
	struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, b->nr_insns - 1);
	uint32_t i = b->index;

	if (b->ours && !plugin.begun) {
		plugin.begun = true;
		keep_before();
	}
	if (i >= counts.nr) {
		if (!counts_room(i)) {
			plugin.stat[UNI_EXACT_UNCOUNTED]++;
			return;
		}
		counts.block[i] = b;
		counts.nr = i + 1;
	}
	if (plugin.score != NULL) {
		const qemu_plugin_u64 begun = { counts.score[i / CHUNK],
			i % CHUNK * sizeof(struct pair) };
		const qemu_plugin_u64 ended = { begun.score, begun.offset + sizeof(uint64_t) };

		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
			tb, QEMU_INLINE_ADD_U64, begun, 1);
		if (b->may_stop)
			qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
				last, QEMU_INLINE_ADD_U64, ended, 1);
		return;
	}
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_INLINE_ADD_U64, &b->out->count, 1);
	if (b->may_stop)
		qemu_plugin_register_vcpu_insn_exec_inline(
			last, QEMU_INLINE_ADD_U64, &counts.ended[i], 1);
}

static void cut_add(const struct block *b, uint32_t insn, uint64_t number)
{
	uint64_t index;
	struct uni_exact_cut *cut =
		number == 0 ? NULL : area_add(&plugin.area, UNI_EXACT_PART_CUTS, 1, &index);

	if (cut != NULL) {
		*cut = (struct uni_exact_cut){ b->index, insn, number };
		cut_before(b, insn, number);
	} else {
		plugin.stat[UNI_EXACT_UNKNOWN_CUTS] += number;
	}
}

/* Takes at most n executions of the blocks that begin at pc, and returns how many. Executions that
 * were taken before are left out. */
static uint64_t starts_take(uint64_t pc, uint64_t n)
{
	uint64_t all = 0;

	for (struct block *b = block_starting_at(pc); b != NULL; b = b->twin) {
		uint64_t left = b->out->count - b->taken, take = left < n - all ? left : n - all;

		b->taken += take;
		all += take;
	}
	return all;
}

/*
 * Finds the instructions at which the block was left n times. An instruction that faulted is
 * executed again, in a block that begins with it. After an access to a device, with -icount, a
 * block begins with the next instruction. If no branch leads there, all executions of that block
 * count.
 */
static void cuts_find(const struct block *b, uint64_t n)
{
	uint32_t unsure = block_may_stop_at(b, 0) ? 0 : UINT32_MAX;
	uint64_t at = b->pc;

	if (b->is_split && n == b->out->count && block_starting_at(b->last) != NULL) {
		cut_add(b, b->nr_insns - 1, n);
		return;
	}
	for (uint32_t i = 1; i < b->nr_insns; i++) {
		at += b->lengths[i - 1];
		if (block_starting_at(at) == NULL ||
			(!block_may_stop_at(b, i) && !block_may_stop_at(b, i - 1)))
			continue;
		if (b->ours && !is_branched_to(at)) {
			uint64_t taken = starts_take(at, n);

			cut_add(b, i, taken);
			n -= taken;
		} else if (unsure == UINT32_MAX) {
			unsure = i;
		} else {
			unsure = b->nr_insns;
		}
	}
	if (unsure < b->nr_insns)
		cut_add(b, unsure, n);
	else if (b->ours)
		plugin.stat[UNI_EXACT_UNKNOWN_CUTS] += n;
}

void counts_end(void)
{
	uint64_t *cut = calloc(counts.nr + 1ull, sizeof(*cut));

	for (uint32_t i = 0; i < counts.nr; i++) {
		uint64_t ended = ends_of(counts.block[i]), begun = counts.block[i]->out->count;

		/* QEMU also translates single instructions that it then executes without us. */
		if (begun != 0)
			block_add_steps(counts.block[i]);
		if (!counts.block[i]->may_stop || ended >= begun)
			continue;
		plugin.stat[UNI_EXACT_CUT] += begun - ended;
		if (cut == NULL)
			plugin.stat[UNI_EXACT_UNKNOWN_CUTS] += begun - ended;
		else
			cut[i] = begun - ended;
	}
	/* Now that all are known. */
	for (uint32_t i = 0; cut != NULL && i < counts.nr; i++) {
		if (cut[i] != 0)
			cuts_find(counts.block[i], cut[i]);
	}
	free(cut);
}
