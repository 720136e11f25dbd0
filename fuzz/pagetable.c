/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The input: CR0, CR3, CR4, EFER and one address (8 bytes each), one byte of options, then guest
 * memory from 0. If the options say aarch64, the registers are SCTLR, TTBR0, TTBR1, TCR. For any
 * input, a walk loads no more entries than there are levels, gives the same result twice, and never
 * reads outside of the memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/support/guest.h"
#include "arch/arch.h"
#include "base/cursor.h"
#include "told.h"

#define RAM_MAX (64u << 10)
#define VAS	16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct uni_as *as, uint64_t va, uint64_t phys_mask)
{
	uint32_t before = uni_as_stats(as)->table_loads;
	uint64_t page = 0, again_page = 0;
	uni_gpa gpa = { 0 }, again = { 0 };
	int rc = uni_as_translate(as, uni_gva_of(va), &gpa, &page);
	uint8_t buf[24];

	if (uni_as_stats(as)->table_loads - before > UNI_PT_LEVELS_MAX)
		abort();
	told_u64((uint64_t)rc);
	told_u64(uni_as_stats(as)->table_loads - before);
	if (rc != 0)
		return;
	told_u64(gpa.v);
	told_u64(page);
	if (page < 4096 || (page & (page - 1)) != 0 || ((gpa.v ^ va) & (page - 1)) != 0)
		abort();
	if ((gpa.v & ~phys_mask) != 0)
		abort();
	if (uni_as_translate(as, uni_gva_of(va), &again, &again_page) != 0 || again.v != gpa.v ||
		again_page != page)
		abort();
	(void)uni_as_read(as, uni_gva_of(va), buf, sizeof(buf));
	told(buf, uni_as_read_some(as, uni_gva_of(va), buf, sizeof(buf)));
}

static void walk(struct guest *g, struct uni_cursor c)
{
	static const struct uni_as_budget budget = { .bytes = 1u << 20, .table_loads = 1000 };
	struct uni_regs regs = { 0 };
	struct uni_pt_root root;
	const struct uni_arch *arch;
	struct uni_as *as = NULL;
	uint64_t va;
	uint8_t options;

	/* Both number theirs from 0: CR0 to EFER, SCTLR to TCR. */
	for (unsigned i = 0; i < 4; i++)
		uni_regs_set_sys(&regs, i, uni_cursor_u64(&c));
	va = uni_cursor_u64(&c);
	options = uni_cursor_u8(&c);
	uni_gmem_set_granule(g->m, (size_t)64 << (options & 7));
	g->mutate = (options & 8) != 0 ? 1000 : 0;
	arch = (options & 16) != 0 ? &uni_arch_aarch64 : &uni_arch_x86_64;
	if (arch->paging(&regs, &root) != 0 || uni_as_create(g->m, &budget, &as, NULL) != 0)
		return;
	uni_as_begin(as, &root);
	for (unsigned i = 0; i < VAS; i++) {
		check(as, va, root.phys_mask);
		va = va * 0x5851f42d4c957f2dull + 0x14057b7ef767814full;
		if (root.geometry->va_bits == 48)
			va = (uint64_t)((int64_t)(va << 16) >> 16);
	}
	if (uni_as_stats(as)->table_loads > budget.table_loads ||
		uni_as_stats(as)->bytes > budget.bytes)
		abort();
	uni_as_destroy(as);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	const size_t head = 41;
	struct guest g;

	if (size <= head || size - head > RAM_MAX)
		return 0;
	if (guest_init(&g, 0, size - head, UNI_GMEM_PHYSICAL)) {
		memcpy(g.ram, data + head, g.size);
		walk(&g, c);
	}
	guest_deinit(&g);
	return 0;
}
