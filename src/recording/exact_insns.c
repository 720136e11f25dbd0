/* SPDX-License-Identifier: BSD-2-Clause */
/* Exact counts by instruction and by function: what blocks and contexts add up to. */
#include <stdlib.h>

#include "recording/exact.h"

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
