/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information: one byte of options, then one or two sections (the first one's size is in
 * 2 bytes). Whatever compiles keeps the promises of arch/cfi.h.
 */
#include <stdlib.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "obj/cfi.h"
#include "told.h"

#define CODE 0xffffffff80200000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	DEBUG_FIRST = 1,
	LOW = 2, /* the sections lie 4 GiB below the code */
	ENTRY = 4,
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_op(const struct uni_cfi_table *t, uint32_t i)
{
	const struct uni_cfi_op *op = &t->op[i];

	require(op->opcode < UNI_CFI_OP_NR);
	told_u64(op->opcode);
	told_u64((uint64_t)op->arg);
	if (op->opcode == UNI_CFI_OP_SKIP || op->opcode == UNI_CFI_OP_BRANCH)
		require((uint64_t)op->arg < t->nr_ops);
	if (op->opcode == UNI_CFI_OP_REG)
		require(op->arg2 < UNI_REG_MAX);
	if (op->opcode == UNI_CFI_OP_LOAD)
		require(op->arg == 1 || op->arg == 2 || op->arg == 4 || op->arg == 8);
}

static void check_val(const struct uni_cfi_table *t, const struct uni_cfi_val *v)
{
	told_u64((uint64_t)v->how << 32 | (uint64_t)v->reg << 16 | v->of);
	told_u64((uint64_t)v->arg);
	require(v->how <= UNI_CFI_NONE && v->reg < UNI_REG_MAX && v->of < UNI_REG_MAX);
	if (v->how == UNI_CFI_AT_EXPR || v->how == UNI_CFI_IS_EXPR)
		require(v->arg >= 0 && (uint32_t)v->arg < t->nr_ops);
}

static void check_rule(const struct uni_cfi_table *t, const struct uni_cfi_rule *r)
{
	check_val(t, &r->cfa);
	check_val(t, &r->ra);
	check_val(t, &r->fp);
	require(r->cfa.how == UNI_CFI_REG || r->cfa.how == UNI_CFI_IS_EXPR);
	require(uni_range_contains(0, t->nr_others, r->other, r->nr_other));
	for (unsigned i = 0; i < r->nr_other; i++)
		check_val(t, &t->other[r->other + i]);
}

static void check_table(const struct uni_cfi_table *t)
{
	require(t->nr_rows != 0 && t->rule[0].cfa.how == UNI_CFI_NONE);
	require(t->row[t->nr_rows - 1].rule == 0 && t->row[t->nr_rows - 1].start == t->size);
	require(t->nr_ops == 0 || t->op[t->nr_ops - 1].opcode == UNI_CFI_OP_END);
	for (uint32_t i = 1; i < t->nr_rules; i++)
		check_rule(t, &t->rule[i]);
	for (uint32_t i = 0; i < t->nr_ops; i++)
		check_op(t, i);
	for (uint32_t i = 0; i < t->nr_rows; i++) {
		const struct uni_cfi_rule *r = uni_cfi_find(t, t->base + t->row[i].start);

		require(t->row[i].rule < t->nr_rules);
		told_u64(t->row[i].start);
		told_u64(t->row[i].rule);
		require(i == 0 || t->row[i].start > t->row[i - 1].start);
		require(i == 0 || t->row[i].rule != t->row[i - 1].rule);
		require(r == (t->row[i].rule != 0 ? &t->rule[t->row[i].rule] : NULL));
	}
	require(uni_cfi_find(t, t->base - 1) == NULL);
	require(uni_cfi_find(t, t->base + t->size) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct uni_cfi_code code = { CODE, 0x100000 };
	const uint64_t entry = CODE + 0x10;
	struct uni_cursor c = uni_cursor_make(data, size);
	uint8_t options = uni_cursor_u8(&c);
	size_t first = uni_cursor_u16(&c);
	struct uni_cfi_section section[2] = { 0 };
	struct uni_cfi_source src = { .arch = &uni_arch_x86_64,
		.section = section,
		.nr_sections = 2,
		.code = &code,
		.nr_code = 1,
		.entry = &entry,
		.nr_entries = (options & ENTRY) != 0 };
	struct uni_cfi *cfi;

	if (c.failed)
		return 0;
	first = uni_min(first, uni_cursor_left(&c));
	for (unsigned i = 0; i < 2; i++) {
		size_t n = i == 0 ? first : uni_cursor_left(&c);

		section[i].size = n;
		section[i].data = uni_cursor_take(&c, n);
		section[i].eh = ((options & DEBUG_FIRST) != 0) == (i == 1);
		section[i].addr = CODE + 0x80000 - ((options & LOW) != 0 ? 1ull << 32 : 0);
	}
	require(uni_cfi_compile(&src, &cfi) == 0);
	if (cfi != NULL)
		check_table(&cfi->table);
	uni_cfi_destroy(cfi);
	return 0;
}
