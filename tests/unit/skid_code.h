/* SPDX-License-Identifier: BSD-2-Clause */
/* Made code, what obj/skid.c reads in it, and chains of a vCPU that stopped there. */
#ifndef UNI_TESTS_SKID_CODE_H
#define UNI_TESTS_SKID_CODE_H

#include <string.h>

#include "base/checked.h"
#include "elf_spec.h"
#include "obj/skid.h"
#include "unwind/unwind.h"

#define TEXT	0x100000u
#define STACK	0x800000u
#define BIAS	0x40000000u
#define NO_CALL UINT32_MAX

static const struct uni_arch *arch = &uni_arch_x86_64;

static inline struct uni_skid read_code(const uint8_t *bytes, size_t size,
	const struct spec_sym *sym, size_t nr, const struct uni_cfi_table *rows)
{
	const struct elf_spec spec = { .machine = arch->elf_machine,
		.text = TEXT,
		.data = TEXT + 0x100000,
		.entry = TEXT,
		.code = bytes,
		.code_size = size,
		.syms = sym,
		.nr_syms = nr };
	static struct elf_image e;
	struct uni_image *img;
	struct uni_err err = { 0 };
	struct uni_skid s;

	elf_spec_write(&spec, &e);
	assert_int_equal(uni_image_from_memory("t", e.data, e.size, &img, &err), 0);
	assert_int_equal(uni_skid_read(img, rows, BIAS, &s), 0);
	uni_image_destroy(img);
	return s;
}

static inline uint32_t flags_behind(const struct uni_skid *s, uint64_t ret)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (s->call[i].ret == ret)
			return s->call[i].flags;
	}
	return NO_CALL;
}

#define FUNC(name, at, size)                                             \
	{                                                                \
		name, TEXT + (at), size, STT_FUNC, STB_GLOBAL, SPEC_TEXT \
	}
#define PIECE(at, ...)                                  \
	{                                               \
		at, sizeof((uint8_t[]){ __VA_ARGS__ }), \
		{                                       \
			__VA_ARGS__                     \
		}                                       \
	}

struct piece {
	size_t at, size;
	uint8_t byte[0x24];
};

static inline struct uni_skid read_pieces(const struct piece *v, size_t nr,
	const struct spec_sym *sym, size_t nr_syms, const struct uni_cfi_table *rows)
{
	uint8_t bytes[0x140] = { 0 };

	for (size_t i = 0; i < nr; i++)
		memcpy(bytes + v[i].at, v[i].byte, v[i].size);
	return read_code(bytes, sizeof(bytes), sym, nr_syms, rows);
}

static uint64_t below;	     /* the stack pointer */
static uint8_t caller_flags; /* UNI_FRAME_EXACT: it was interrupted */

static inline int read_stack(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	uint8_t stack[4096] = { 0 };

	memcpy(stack + 2048 - 8, &below, sizeof(below));
	memcpy(buf, stack + offset, len);
	return 0;
}

/* The chain at pc, called from a place behind `ret_addr`, after the word below the stack was
 * `word`. */
static inline struct uni_chain unskid_by(
	const struct uni_skid *s, uint64_t pc, uint64_t ret_addr, uint64_t word, uint8_t vcpu_state)
{
	static const struct uni_gmem_ops ops = { .read = read_stack };
	const struct uni_gmem_region region = { .start = STACK, .size = 4096 };
	struct uni_unwinder u = { .arch = arch, .skid = s, .skid_bias = BIAS };
	struct uni_regs regs = { .state = vcpu_state,
		.pc = pc,
		.pc_valid = true,
		.sp = STACK + 2048,
		.sp_valid = true };
	struct uni_chain c = {
		.nr = 2, .pc = { pc, ret_addr }, .flags = { UNI_FRAME_EXACT, caller_flags }
	};
	struct uni_err err = { 0 };
	struct uni_gmem *m;
	struct uni_as *as;

	below = word;
	uni_regs_set(&regs, UNI_A64_LR, word);
	assert_int_equal(uni_gmem_create(&ops, NULL, UNI_GMEM_VIRTUAL, &region, 1, &m, &err), 0);
	assert_int_equal(uni_as_create(m, &uni_as_budget_once, &as, &err), 0);
	uni_as_begin(as, NULL);
	uni_unwind_unskid(&u, as, &regs, &c);
	uni_as_destroy(as);
	uni_gmem_destroy(m);
	return c;
}

#endif
