/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/cfi.h"

const struct uni_cfi_rule *uni_cfi_find(const struct uni_cfi_table *t, uint64_t pc)
{
	uint64_t off = pc - t->base;
	uint32_t lo, hi, b;

	if (pc < t->base || off >= t->size)
		return NULL;
	b = (uint32_t)off >> t->shift;
	lo = t->bucket[b];
	hi = b + 1 < t->nr_buckets ? t->bucket[b + 1] : t->nr_rows - 1;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo + 1) / 2;

		if (t->row[mid].start <= off)
			lo = mid;
		else
			hi = mid - 1;
	}
	return t->row[lo].rule != 0 ? &t->rule[t->row[lo].rule] : NULL;
}
