/* SPDX-License-Identifier: BSD-2-Clause */
#include "arch/cfi.h"

#include <elf.h>

#include "arch/arch.h"

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

static unsigned count_loads(const struct uni_cfi_op *op)
{
	unsigned nr = 0;

	for (; op->opcode == UNI_CFI_OP_LOAD || op->opcode == UNI_CFI_OP_ADD_CONST; op++)
		nr += op->opcode == UNI_CFI_OP_LOAD;
	return nr;
}

/* An expression that begins at sp and loads twice finds another stack's sp. */
static bool takes_stack(const struct uni_cfi_op *op, unsigned sp_reg)
{
	return op->opcode == UNI_CFI_OP_REG && op->arg2 == sp_reg && count_loads(op + 1) > 1;
}

bool uni_cfi_switches(const struct uni_cfi_table *t, unsigned sp_reg)
{
	for (uint32_t i = 0; i < t->nr_rules; i++) {
		const struct uni_cfi_rule *r = &t->rule[i];

		if (r->cfa.how == UNI_CFI_IS_EXPR && r->ra.how == UNI_CFI_AT_CFA &&
			takes_stack(t->op + r->cfa.arg, sp_reg))
			return true;
	}
	return false;
}

bool uni_cfi_pops(const struct uni_cfi_table *t, unsigned sp_reg)
{
	for (uint32_t i = 0; i < t->nr_rules; i++) {
		const struct uni_cfi_rule *r = &t->rule[i];

		if (r->cfa.how == UNI_CFI_REG && r->cfa.reg == sp_reg &&
			r->ra.how == UNI_CFI_AT_CFA && r->ra.arg + r->cfa.arg < 0)
			return true;
	}
	return false;
}

bool uni_cfi_returns(
	const struct uni_arch *a, const struct uni_cfi_rule *r, const struct uni_cfi_val *other)
{
	bool sp_loaded = false;

	for (unsigned i = 0; i < r->nr_other; i++)
		sp_loaded |= other[i].of == a->sp_reg;
	return a->elf_machine == EM_X86_64 && !sp_loaded && r->ra.how == UNI_CFI_AT_CFA &&
	       r->ra.arg == -a->word;
}
