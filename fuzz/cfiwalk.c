/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile image in a hostile guest: 17 registers (8 bytes each), options, 2 bytes of size and so
 * many of .eh_frame, then the memory. Chains end within their bounds whatever the rows say.
 */
#include <stdlib.h>
#include <string.h>

#include "../tests/support/guest.h"
#include "base/checked.h"
#include "base/cursor.h"
#include "obj/cfi.h"
#include "unwind/unwind.h"
#include "told.h"

#define BASE	0x100000ull
#define RAM_MAX (64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTATE = 1, GONE = 2, SCAN_ONLY = 4 };

static void check(const struct uni_chain *c)
{
	if (c->nr < 1 || c->nr > UNI_CHAIN_MAX || c->stop >= UNI_STOP_NR)
		abort();
	for (unsigned i = 1; i < c->nr; i++) {
		told_u64(c->pc[i]);
		told_u64(c->flags[i]);
		if (c->pc[i] == 0 || (c->flags[i - 1] & ~c->flags[i] & UNI_FRAME_GUESS) != 0)
			abort();
	}
}

static void walk(const struct uni_regs *regs, const struct uni_unwind_hints *hints, uint8_t options,
	const uint8_t *ram, size_t size)
{
	struct uni_as_budget budget = uni_as_budget_default;
	struct uni_as *as = NULL;
	struct uni_unwinder u;
	struct uni_chain chain;
	struct guest g;

	budget.wall_ns = 0;
	if (guest_init(&g, BASE, size, UNI_GMEM_VIRTUAL) &&
		uni_as_create(g.m, &budget, &as, NULL) == 0) {
		memcpy(g.ram, ram, size);
		g.mutate = (options & MUTATE) != 0 ? 50 : 0;
		g.gone_at = (options & GONE) != 0 ? 3 : 0;
		uni_unwinder_init(&u, &uni_arch_x86_64, hints);
		if ((options & SCAN_ONLY) != 0 && uni_unwinder_use(&u, "scan", NULL) != 0)
			abort();
		uni_unwind(&u, as, regs, &chain);
		check(&chain);
	}
	uni_as_destroy(as);
	guest_deinit(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct uni_cfi_code code = { BASE, RAM_MAX };
	struct uni_cursor c = uni_cursor_make(data, size);
	struct uni_regs regs = { .pc_valid = true, .sp_valid = true };
	struct uni_unwind_hints hints = { .text_start = BASE, .text_size = RAM_MAX };
	struct uni_cfi_section section = { .addr = BASE, .eh = true };
	struct uni_cfi_source src = { .arch = &uni_arch_x86_64,
		.section = &section,
		.nr_sections = 1,
		.code = &code,
		.nr_code = 1 };
	struct uni_cfi *cfi;
	uint8_t options;

	for (unsigned i = 0; i < UNI_X86_NR_REGS; i++)
		uni_regs_set(&regs, i, uni_cursor_u64(&c));
	regs.pc = regs.r[UNI_X86_RIP];
	regs.sp = regs.r[UNI_X86_RSP];
	options = uni_cursor_u8(&c);
	section.size = uni_cursor_u16(&c);
	section.data = uni_cursor_take(&c, section.size);
	if (c.failed || uni_cursor_left(&c) == 0 || uni_cursor_left(&c) > RAM_MAX)
		return 0;
	if (uni_cfi_compile(&src, &cfi) != 0)
		abort();
	hints.cfi = cfi != NULL ? &cfi->table : NULL;
	walk(&regs, &hints, options, data + c.pos, uni_cursor_left(&c));
	uni_cfi_destroy(cfi);
	return 0;
}
