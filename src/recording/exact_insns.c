/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact counts by instruction, by function and by context: what blocks and contexts add up to. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "recording/exact.h"
#include "recording/recording.h"
#include "recording/stats.h"

#define FLUSH_EVERY 512u /* the recorder never waits, so we do */

static int by_address(const void *a, const void *b)
{
	const struct uni_exact_insn *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_block(const void *a, const void *b)
{
	const struct uni_exact_cut *x = a, *y = b;

	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return x->insn < y->insn ? -1 : x->insn > y->insn;
}

/* One after the other, an address as often as blocks hold it. Cuts are sorted by block. */
static void fill_insns(const struct uni_exact_parts *p, const struct uni_exact_cut *cut,
	struct uni_exact_insn *out)
{
	const struct uni_exact_cut *end = cut + p->nr_cuts;

	for (uint32_t i = 0; i < p->nr_blocks; i++) {
		uint64_t pc = p->block[i].pc, count = p->block[i].count;

		for (uint32_t k = 0; k < p->block[i].nr_insns; k++) {
			uint8_t length = p->length[p->block[i].lengths + k];

			for (; cut < end && cut->block == i && cut->insn == k; cut++)
				count -= cut->number < count ? cut->number : count;
			*out++ = (struct uni_exact_insn){ pc, count, length };
			pc += length;
		}
		while (cut < end && cut->block == i)
			cut++;
	}
}

static size_t merge_insns(struct uni_exact_insn *v, size_t nr)
{
	size_t n = 0;

	for (size_t i = 0; i < nr; i++) {
		if (n != 0 && v[n - 1].addr == v[i].addr)
			v[n - 1].count += v[i].count;
		else
			v[n++] = v[i];
	}
	return n;
}

int uni_exact_count_insns(const struct uni_exact *e, struct uni_exact_insn **ret, size_t *nr_ret)
{
	struct uni_exact_parts p = uni_exact_parts(e);
	struct uni_exact_insn *out;
	struct uni_exact_cut *cut;
	size_t nr = 0;

	for (uint32_t i = 0; i < p.nr_blocks; i++)
		nr += p.block[i].nr_insns;
	out = calloc(nr + 1, sizeof(*out));
	cut = calloc(p.nr_cuts + 1ull, sizeof(*cut));
	if (out == NULL || cut == NULL) {
		free(out);
		free(cut);
		return -UNI_ENOMEM;
	}
	for (uint32_t i = 0; i < p.nr_cuts; i++)
		cut[i] = p.cut[i];
	qsort(cut, p.nr_cuts, sizeof(*cut), by_block);
	fill_insns(&p, cut, out);
	free(cut);
	qsort(out, nr, sizeof(*out), by_address);
	*nr_ret = merge_insns(out, nr);
	*ret = out;
	return 0;
}

int uni_exact_count_functions(
	const struct uni_exact *e, struct uni_exact_total **ret, uint32_t *nr_ret)
{
	const struct uni_exact_node *node;
	struct uni_exact_total *out;
	uint32_t nr_nodes;

	(void)uni_exact_functions(e, nr_ret);
	node = uni_exact_nodes(e, &nr_nodes);
	out = calloc(*nr_ret, sizeof(*out));
	if (out == NULL)
		return -UNI_ENOMEM;
	for (uint32_t i = 1; i < nr_nodes; i++) {
		out[node[i].function].insns += node[i].insns;
		out[node[i].function].calls += node[i].calls;
	}
	*ret = out;
	return 0;
}

/* Leaf first: each frame at its function's start. */
static void chain_of(const struct uni_exact_function *function, const struct uni_exact_node *node,
	uint32_t at, struct uni_chain *c)
{
	c->nr = 0;
	c->stop = UNI_STOP_ROOT;
	for (; at != 0; at = node[at].parent) {
		if (c->nr == UNI_CHAIN_MAX) {
			c->stop = UNI_STOP_LIMIT;
			return;
		}
		c->flags[c->nr] = UNI_FRAME_EXACT;
		c->pc[c->nr++] = function[node[at].function].start;
	}
}

int uni_exact_samples(const struct uni_exact *e, struct uni_recorder *rec,
	struct uni_record_stats *stats, struct uni_err *err)
{
	_cleanup_free_ struct uni_chain *c = calloc(1, sizeof(*c));
	const struct uni_exact_function *function;
	const struct uni_exact_node *node;
	uint32_t nr_functions, nr_nodes;
	int rc = 0;

	if (c == NULL)
		return uni_err_nomem(err);
	function = uni_exact_functions(e, &nr_functions);
	node = uni_exact_nodes(e, &nr_nodes);
	for (uint32_t i = 1; rc == 0 && i < nr_nodes; i++) {
		struct uni_sample s = {
			.t_ns = i, .weight = node[i].insns, .pc = c->pc, .flags = c->flags
		};

		if (s.weight == 0)
			continue;
		chain_of(function, node, i, c);
		s.nr = c->nr;
		s.stop = c->stop;
		uni_recorder_sample(rec, &s);
		stats->samples++;
		uni_record_stats_count(stats, &s);
		if (stats->samples % FLUSH_EVERY == 0)
			rc = uni_recorder_flush(rec, err);
	}
	return rc;
}
