/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unwinder against a guest that may change its memory at every read. The input: pc, sp, fp (8
 * bytes each), options, number of functions. Then (offset, size, flags) of 2, 2 and 1 bytes each,
 * then memory at BASE. A chain ends within its bounds, rises, and stays within its budget.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/support/guest.h"
#include "base/cursor.h"
#include "unwind/unwind.h"
#include "told.h"

#define BASE	  0x100000ull
#define RAM_MAX	  (128u << 10)
#define FUNCS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	NO_HINTS = 1,
	MUTATE = 2,
	GONE = 4,
	TOP = 8, /* the memory ends where the space ends */
	SMALL = 16,
	AARCH64 = 32, /* x30 is the first word of the memory */
};

static void check(const struct uni_chain *c, const struct uni_as *as, uint32_t bytes)
{
	if (c->nr < 1 || c->nr > UNI_CHAIN_MAX || c->stop >= UNI_STOP_NR)
		abort();
	if (c->flags[0] != UNI_FRAME_EXACT || uni_as_stats(as)->bytes > bytes)
		abort();
	for (unsigned i = 1; i < c->nr; i++) {
		told_u64(c->pc[i]);
		told_u64(c->flags[i]);
		if (c->pc[i] == 0)
			abort();
	}
	if (c->stop == UNI_STOP_LIMIT && c->nr != UNI_CHAIN_INNER + UNI_CHAIN_OUTER)
		abort();
}

static size_t read_hints(
	struct uni_cursor *c, uint64_t base, struct uni_func_hint *func, struct uni_unwind_hints *h)
{
	size_t nr = uni_cursor_u8(c) % (FUNCS_MAX + 1);
	uint64_t at = base;

	for (size_t i = 0; i < nr; i++) { /* sorted and apart, as the image's loader promises */
		at += uni_cursor_u16(c);
		func[i] = (struct uni_func_hint){ .start = at, .size = uni_cursor_u16(c) };
		func[i].flags = uni_cursor_u8(c) & 3;
		at += func[i].size;
	}
	*h = (struct uni_unwind_hints){ func, nr, base, at - base };
	return nr;
}

static uint64_t first_word(const uint8_t *ram, size_t size)
{
	struct uni_cursor c = uni_cursor_make(ram, size);

	return uni_cursor_u64(&c);
}

static void run(const uint8_t *ram, size_t size, struct uni_cursor *c)
{
	struct uni_regs regs = { .pc_valid = true, .sp_valid = true };
	struct uni_as_budget budget = uni_as_budget_default;
	struct uni_func_hint func[FUNCS_MAX];
	struct uni_unwind_hints hints;
	struct uni_unwinder u;
	struct uni_chain chain;
	struct uni_as *as = NULL;
	const struct uni_arch *arch;
	struct guest g;
	uint8_t options;
	uint64_t fp;

	regs.pc = uni_cursor_u64(c);
	regs.sp = uni_cursor_u64(c);
	fp = uni_cursor_u64(c);
	options = uni_cursor_u8(c);
	arch = (options & AARCH64) != 0 ? &uni_arch_aarch64 : &uni_arch_x86_64;
	uni_regs_set(&regs, arch->fp_reg, fp);
	if (arch == &uni_arch_aarch64)
		uni_regs_set(&regs, UNI_A64_LR, first_word(ram, size));
	(void)read_hints(c, BASE, func, &hints);
	budget.wall_ns = 0;
	if ((options & SMALL) != 0)
		budget.bytes = 10000;
	if (guest_init(
		    &g, (options & TOP) != 0 ? 0 - (uint64_t)size : BASE, size, UNI_GMEM_VIRTUAL) &&
		uni_as_create(g.m, &budget, &as, NULL) == 0) {
		memcpy(g.ram, ram, size);
		g.mutate = (options & MUTATE) != 0 ? 50 : 0;
		g.gone_at = (options & GONE) != 0 ? 2 : 0;
		uni_unwinder_init(&u, arch, (options & NO_HINTS) != 0 ? NULL : &hints);
		uni_unwind(&u, as, &regs, &chain);
		check(&chain, as, budget.bytes);
	}
	uni_as_destroy(as);
	guest_deinit(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t head = 26 + 5 * FUNCS_MAX;
	struct uni_cursor c = uni_cursor_make(data, size);

	if (size > head && size - head <= RAM_MAX)
		run(data + head, size - head, &c);
	return 0;
}
