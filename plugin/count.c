/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts alone: QEMU adds to numbers of each block and calls no function of ours. One number has
 * the executions, others have those that reached an instruction. A block that began and did not
 * reach it was cut short in between. The instructions there that may stop, and the blocks that
 * begin at one of them, show the place.
 */
#include <stdlib.h>

#include "plugin/plugin.h"

#define CHUNK	 512u /* counters that share a scoreboard */
#define COUNTERS (2 * UNI_EXACT_BLOCKS)
#define POINTS	 6u /* of a block, at most */

struct pair {
	uint64_t begun, ended;
};

/* Counts executions that have done all instructions before it. */
struct point {
	uint32_t insn, counter;
};

struct counted {
	struct block *block;
	struct point *point;
	uint32_t nr, begun; /* begun: counter of executions, not with version 1 */
};

/* Per vCPU since version 2: memory of QEMU's that moves when vCPUs are added. */
static struct {
	struct qemu_plugin_scoreboard *score[COUNTERS / CHUNK];
	uint64_t *value; /* version 1: of all vCPUs, which share a thread */
	struct counted *block;
	uint32_t nr, cap, nr_counters;
	struct uni_exact_node *root; /* what ran before the image's first instruction */
	struct pair *before;	     /* by index, as they were then */
	uint32_t nr_before;
	bool *jumps;   /* by function: code of it may begin anywhere */
	bool has_left; /* QEMU has ended at a write to a port: one block was left there */
} counts;

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
		counts.value = calloc(COUNTERS, sizeof(*counts.value));
	return node != NULL && (plugin.score != NULL || counts.value != NULL) ? 0 : -1;
}

static bool counter_new(uint32_t *ret)
{
	struct qemu_plugin_scoreboard **score = &counts.score[counts.nr_counters / CHUNK];

	if (counts.nr_counters == COUNTERS)
		return false;
	if (plugin.score != NULL && *score == NULL)
		*score = qemu_plugin_scoreboard_new(CHUNK * sizeof(uint64_t));
	if (plugin.score != NULL && *score == NULL)
		return false;
	*ret = counts.nr_counters++;
	return true;
}

static uint64_t value_of(uint32_t counter)
{
	uint64_t sum = 0;

	if (plugin.score == NULL)
		return counts.value[counter];
	for (uint32_t i = 0; i < plugin.area.header->nr_vcpus; i++)
		sum += ((const uint64_t *)qemu_plugin_scoreboard_find(
			counts.score[counter / CHUNK], i))[counter % CHUNK];
	return sum;
}

/* Executions of it that began. */
static uint64_t begun_of(const struct counted *c)
{
	if (plugin.score != NULL)
		c->block->out->count = value_of(c->begun);
	return c->block->out->count;
}

/* The image is about to begin: what the blocks have executed so far was firmware. */
static void keep_before(void)
{
	counts.before = calloc(counts.nr + 1ull, sizeof(*counts.before));
	counts.nr_before = counts.before != NULL ? counts.nr : 0;
	for (uint32_t i = 0; i < counts.nr; i++) {
		const struct counted *c = &counts.block[i];
		uint64_t begun = begun_of(c);

		counts.root->insns += begun * c->block->nr_insns;
		if (counts.before != NULL)
			counts.before[i] = (struct pair){ begun,
				c->nr != 0 ? value_of(c->point[c->nr - 1].counter) : begun };
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

/* May one of these stop, but not at `to`? */
static bool may_stop_between(const struct block *b, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		if (block_may_stop_at(b, i))
			return true;
	}
	return false;
}

/*
 * Executions are counted at the instruction behind the first one, if that one may fault: it then
 * counts once, however often it is tried. But QEMU may stop there, and go on behind it.
 */
static uint32_t counted_from(const struct block *b)
{
	return b->nr_insns > 1u + b->is_split && block_may_stop_at(b, 0) &&
			       !(plugin.restarts && block_may_reach_device(b, 0))
		       ? 1
		       : 0;
}

/* A counter before and behind each division, and at the last instruction. */
static uint32_t points_choose(const struct block *b, uint32_t at[POINTS])
{
	uint32_t nr = 0, from = counted_from(b), last = b->nr_insns - 1;

	if (!b->may_stop)
		return 0;
	if (from == 0 && last > 1 && block_may_stop_at(b, 0))
		from = at[nr++] = 1;
	for (uint32_t i = from; i < last && nr + 3 <= POINTS; i++) {
		if (!block_may_trap_at(b, i))
			continue;
		if (may_stop_between(b, from, i))
			from = at[nr++] = i;
		if (i + 1 < last && may_stop_between(b, i + 1, last))
			from = at[nr++] = i + 1;
	}
	if (may_stop_between(b, from, last) || b->is_split)
		at[nr++] = last;
	return nr;
}

static bool counted_init(struct counted *c, struct block *b)
{
	uint32_t at[POINTS], nr = points_choose(b, at);
	struct point *point = calloc(nr + 1ull, sizeof(*point));
	uint32_t begun = 0;

	if (point == NULL || (plugin.score != NULL && !counter_new(&begun))) {
		free(point);
		return false;
	}
	for (uint32_t i = 0; i < nr; i++) {
		point[i].insn = at[i];
		if (!counter_new(&point[i].counter)) {
			free(point);
			return false;
		}
	}
	*c = (struct counted){ b, point, nr, begun };
	return true;
}

static bool counts_room(uint32_t index)
{
	if (index >= counts.cap) {
		uint32_t cap = counts.cap == 0 ? 1u << 14 : counts.cap * 2;
		struct counted *block = realloc(counts.block, cap * sizeof(*block));

		if (block == NULL)
			return false;
		counts.block = block;
		counts.cap = cap;
	}
	return true;
}

static void add_at(struct qemu_plugin_insn *insn, uint32_t counter, uint64_t *number)
{
	const qemu_plugin_u64 entry = { counts.score[counter / CHUNK],
		counter % CHUNK * sizeof(uint64_t) };

	if (plugin.score != NULL)
		qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
			insn, QEMU_INLINE_ADD_U64, entry, 1);
	else
		qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_INLINE_ADD_U64, number, 1);
}

void count_block(struct qemu_plugin_tb *tb, struct block *b)
{
	const struct counted *c;
	uint32_t i = b->index;

	if (b->ours && !plugin.begun) {
		plugin.begun = true;
		keep_before();
	}
	if (i >= counts.nr) {
		if (!counts_room(i) || !counted_init(&counts.block[i], b)) {
			plugin.stat[UNI_EXACT_UNCOUNTED]++;
			return;
		}
		counts.nr = i + 1;
	}
	c = &counts.block[i];
	add_at(qemu_plugin_tb_get_insn(tb, counted_from(b)), c->begun, &b->out->count);
	for (uint32_t k = 0; k < c->nr; k++) {
		const struct point *p = &c->point[k];

		add_at(qemu_plugin_tb_get_insn(tb, p->insn), p->counter,
			plugin.score == NULL ? &counts.value[p->counter] : NULL);
	}
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

/* May the block be left at that instruction, after those from `from` on: by a fault in it, or by
 * QEMU behind the one before? */
static bool may_fault(const struct block *b, uint32_t insn, uint32_t to)
{
	return insn < to && block_may_stop_at(b, insn);
}

static bool may_restart(const struct block *b, uint32_t from, uint32_t insn)
{
	return plugin.restarts && insn > from && block_may_reach_device(b, insn - 1);
}

/*
 * Finds the instructions from `from` to `to` at which the block was left n times. An instruction
 * that faulted is executed again, in a block that begins with it. After an access to a device, with
 * -icount, a block begins with the next instruction. If no branch leads there, all executions of
 * that block count. Other faults were left for good. They are of the only instruction that may
 * fault there, or of one that nobody knows.
 */
static void cuts_find(const struct block *b, uint32_t from, uint32_t to, uint64_t n)
{
	uint32_t place = UINT32_MAX, output = UINT32_MAX, places = 0;
	uint64_t at = b->pc;

	plugin.stat[UNI_EXACT_CUT] += n;
	if (b->is_split && n == b->out->count && block_starting_at(b->last) != NULL) {
		cut_add(b, b->nr_insns - 1, n);
		return;
	}
	for (uint32_t i = 0; i <= to && n != 0; at += b->lengths[i++]) {
		bool faults = i >= from && may_fault(b, i, to);
		bool begins = i > from && block_starting_at(at) != NULL;

		if (!faults && !(begins && may_restart(b, from, i)))
			continue;
		if (begins && b->ours && !is_branched_to(at)) {
			uint64_t taken = starts_take(at, n);

			cut_add(b, i, taken);
			n -= taken;
			if (!faults)
				continue;
		}
		if (faults && block_may_end_at(b, i))
			output = i;
		place = i;
		places++;
	}
	if (n != 0 && output != UINT32_MAX && !counts.has_left) {
		counts.has_left = true;
		cut_add(b, output + 1, 1);
		n--;
	}
	/* Its handler has gone on elsewhere, perhaps in the same function. */
	if (n != 0)
		counts.jumps[b->function] = true;
	if (n != 0 && places == 1)
		cut_add(b, place, n);
	else if (b->ours)
		plugin.stat[UNI_EXACT_UNKNOWN_CUTS] += n;
}

static void counted_end(const struct counted *c)
{
	const struct block *b = c->block;
	uint64_t reached = b->out->count;
	uint32_t from = counted_from(b);

	for (uint32_t i = 0; i < c->nr; i++) {
		uint64_t now = value_of(c->point[i].counter);

		if (now < reached) {
			cuts_find(b, from, c->point[i].insn, reached - now);
			reached = now;
		}
		from = c->point[i].insn;
	}
	if ((b->traits & INSN_NEVER) != 0)
		cut_add(b, b->nr_insns - 1, reached);
}

/*
 * A push or pop of the last instruction that faulted. It was tried again, as a block of its own, if
 * nothing else leads there.
 */
static void counted_again(const struct counted *c)
{
	const struct block *b = c->block, *again = block_starting_at(b->last);
	uint64_t reached = c->nr != 0 ? value_of(c->point[c->nr - 1].counter) : b->out->count;

	if (b->nr_insns == 1 || !b->ours || counts.jumps[b->function] || again == NULL ||
		again->is_start || (b->flow != FLOW_CALL && b->flow != FLOW_RETURN) ||
		!block_may_stop_at(b, b->nr_insns - 1) || is_branched_to(b->last))
		return;
	cut_add(b, b->nr_insns - 1, starts_take(b->last, reached));
}

void counts_end(void)
{
	counts.jumps = calloc(plugin.functions.nr_known + 1ull, sizeof(*counts.jumps));
	/* QEMU also translates single instructions that it then executes without us. */
	for (uint32_t i = 0; i < counts.nr; i++) {
		const struct block *b = counts.block[i].block;

		if (begun_of(&counts.block[i]) == 0)
			continue;
		block_add_steps(b);
		if (counts.jumps != NULL && b->flow == FLOW_JUMP)
			counts.jumps[b->function] = true;
	}
	if (counts.jumps == NULL)
		return;
	/* Now that all are known. */
	for (uint32_t i = 0; i < counts.nr; i++)
		counted_end(&counts.block[i]);
	for (uint32_t i = 0; i < counts.nr; i++)
		counted_again(&counts.block[i]);
}
