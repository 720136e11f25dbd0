/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of a vCPU that TCG stopped before a block: put right where only one block can be before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "elf_spec.h"
#include "obj/skid.h"
#include "unwind/unwind.h"

#define TEXT	0x100000u
#define STACK	0x800000u
#define BIAS	0x40000000u
#define NO_CALL UINT32_MAX

/*
 *  00  main:   call plain; call tail; call looped; nop; jmp 0f (behind the call of looped);
 *              call [rax]; call [rbx + 8] (x86_64 only)
 *  20  plain:  nop; ret
 *  30  tail:   jmp plain
 *  40  looped: dec ecx; jne looped; ret
 */
static const uint8_t code[0x50] = {
	[0x00] = 0xe8,
	0x1b,
	0,
	0,
	0,
	0xe8,
	0x26,
	0,
	0,
	0,
	0xe8,
	0x31,
	0,
	0,
	0,
	0x90,
	0xeb,
	0xfd,
	0xff,
	0x10,
	0xff,
	0x53,
	0x08,
	/* test al, 0xeb; in al, dx; ret: two of the bytes look like a jump into main */
	[0x20] = 0xa8,
	0xeb,
	0xec,
	0xc3,
	[0x30] = 0xe9,
	0xeb,
	0xff,
	0xff,
	0xff,
	[0x40] = 0xff,
	0xc9,
	0x75,
	0xfc,
	0xc3,
};

static const struct spec_sym syms[] = {
	{ "main", TEXT, 0x17, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "plain", TEXT + 0x20, 4, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "tail", TEXT + 0x30, 5, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "looped", TEXT + 0x40, 5, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
};

/* The same program for aarch64; its calls are 4 bytes long. */
static const uint32_t a64_code[0x50 / 4] = {
	[0x00 / 4] = 0x94000008, /* bl plain */
	0x9400000b,		 /* bl tail */
	0x9400000e,		 /* bl looped */
	0xd503201f,
	0x17ffffff, /* b 0x0c */
	0xd63f0020, /* blr x1 */
	[0x20 / 4] = 0xd503201f,
	0xd65f03c0,
	[0x30 / 4] = 0x17fffffc, /* b plain */
	[0x40 / 4] = 0xd1000400,
	0xb5ffffe0, /* cbnz x0, looped */
	0xd65f03c0,
};

static const struct spec_sym a64_syms[] = {
	{ "main", TEXT, 0x18, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "plain", TEXT + 0x20, 8, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "tail", TEXT + 0x30, 4, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
	{ "looped", TEXT + 0x40, 12, STT_FUNC, STB_GLOBAL, SPEC_TEXT },
};

static const struct uni_arch *arch = &uni_arch_x86_64;

static struct uni_skid read_calls(void)
{
	bool a64 = arch == &uni_arch_aarch64;
	const struct elf_spec spec = { .machine = arch->elf_machine,
		.text = TEXT,
		.data = TEXT + 0x100000,
		.entry = TEXT,
		.code = a64 ? (const uint8_t *)a64_code : code,
		.code_size = sizeof(code),
		.syms = a64 ? a64_syms : syms,
		.nr_syms = sizeof(syms) / sizeof(syms[0]) };
	static struct elf_image e;
	struct uni_image *img;
	struct uni_err err = { 0 };
	struct uni_skid s;

	elf_spec_write(&spec, &e);
	assert_int_equal(uni_image_from_memory("t", e.data, e.size, &img, &err), 0);
	assert_int_equal(uni_skid_read(img, &s), 0);
	uni_image_destroy(img);
	return s;
}

static uint32_t flags_behind(const struct uni_skid *s, uint64_t ret)
{
	for (size_t i = 0; i < s->nr; i++) {
		if (s->call[i].ret == ret)
			return s->call[i].flags;
	}
	return NO_CALL;
}

static void what_is_certain(void **state)
{
	struct uni_skid s = read_calls();

	assert_int_equal(s.nr, 5);
	assert_int_equal(
		flags_behind(&s, TEXT + 5), UNI_SKID_BEHIND | UNI_SKID_RETURNS | UNI_SKID_ENTERS);
	/* plain has ended, not tail. */
	assert_int_equal(flags_behind(&s, TEXT + 10), UNI_SKID_BEHIND | UNI_SKID_ENTERS);
	/* A jump leads behind the call; and looped begins again at its first byte. */
	assert_int_equal(flags_behind(&s, TEXT + 15), UNI_SKID_RETURNS);
	/* By a pointer. */
	assert_int_equal(flags_behind(&s, TEXT + 0x14), UNI_SKID_BEHIND);
	assert_int_equal(flags_behind(&s, TEXT + 0x17), UNI_SKID_BEHIND);
	assert_int_equal(s.nr_entries, 4);
	for (size_t i = 0; i < s.nr_entries; i++) /* plain by tail, looped by itself */
		assert_int_equal(s.entry[i].is_jumped,
			s.entry[i].svma == TEXT + 0x20 || s.entry[i].svma == TEXT + 0x40);
	uni_skid_deinit(&s);
}

static uint64_t below; /* the stack pointer */

static int read_stack(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	uint8_t stack[4096] = { 0 };

	memcpy(stack + 2048 - 8, &below, sizeof(below));
	memcpy(buf, stack + offset, len);
	return 0;
}

/* The chain at pc, called from a place behind `ret_addr`, after the word below the stack was
 * `word`. */
static struct uni_chain unskid(uint64_t pc, uint64_t ret_addr, uint64_t word, uint8_t vcpu_state)
{
	static const struct uni_gmem_ops ops = { .read = read_stack };
	const struct uni_gmem_region region = { .start = STACK, .size = 4096 };
	struct uni_skid s = read_calls();
	struct uni_unwinder u = { .arch = arch, .skid = &s, .skid_bias = BIAS };
	struct uni_regs regs = { .state = vcpu_state,
		.pc = pc,
		.pc_valid = true,
		.sp = STACK + 2048,
		.sp_valid = true };
	struct uni_chain c = { .nr = 2, .pc = { pc, ret_addr }, .flags = { UNI_FRAME_EXACT, 0 } };
	struct uni_err err = { 0 };
	struct uni_gmem *m;
	struct uni_as *as;

	below = word;
	uni_regs_set(&regs, UNI_A64_LR, word);
	assert_int_equal(uni_gmem_create(&ops, NULL, UNI_GMEM_VIRTUAL, &region, 1, &m, &err), 0);
	assert_int_equal(uni_as_create(m, &uni_as_budget_default, &as, &err), 0);
	uni_as_begin(as, NULL);
	uni_unwind_unskid(&u, as, &regs, &c);
	uni_as_destroy(as);
	uni_gmem_destroy(m);
	uni_skid_deinit(&s);
	return c;
}

static void callee_is_put_back(void **state)
{
	const uint64_t at = TEXT + BIAS + 5, above = 0x1234;
	struct uni_chain c = unskid(at, above, at, UNI_VCPU_RUNNING);

	assert_int_equal(c.nr, 3);
	assert_int_equal(c.pc[0], TEXT + BIAS + 0x20);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_MOVED);
	assert_int_equal(c.pc[1], at);
	assert_int_equal(c.flags[1], 0); /* a return address now */
	assert_int_equal(c.pc[2], above);
	/* It has not returned just now, or the vCPU does not run. */
	c = unskid(at, above, at + 1, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT);
	c = unskid(at, above, at, UNI_VCPU_HALTED);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT);
}

/* A callee has ended, but which one? Called by a pointer, or by a jump from the one that was
 * called.
 */
static void unknown_callee(void **state)
{
	const uint64_t behind[] = { TEXT + BIAS + 0x14, TEXT + BIAS + 0x17, TEXT + BIAS + 10 };

	for (size_t i = 0; i < 3; i++) {
		struct uni_chain c = unskid(behind[i], 0x1234, behind[i], UNI_VCPU_RUNNING);

		assert_int_equal(c.nr, 3);
		assert_int_equal(c.pc[0], 0);
		assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_MOVED);
		assert_int_equal(c.pc[1], behind[i]);
		assert_int_equal(c.flags[1], 0);
	}
}

static void uncertain_is_marked(void **state)
{
	const uint64_t behind[] = { TEXT + BIAS + 15, TEXT + BIAS + 7 };

	for (size_t i = 0; i < 2; i++) {
		struct uni_chain c = unskid(behind[i], 0x1234, behind[i], UNI_VCPU_RUNNING);

		assert_int_equal(c.nr, 2);
		assert_int_equal(c.pc[0], behind[i]);
		assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	}
}

static void first_byte_is_the_callers(void **state)
{
	struct uni_chain c = unskid(TEXT + BIAS + 0x20, TEXT + BIAS + 5, 0, UNI_VCPU_RUNNING);

	assert_int_equal(c.nr, 1);
	assert_int_equal(c.pc[0], TEXT + BIAS + 4); /* in the call */
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_MOVED);
	/* looped may have begun again, and plain was entered by a jump from tail. */
	c = unskid(TEXT + BIAS + 0x40, TEXT + BIAS + 15, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	c = unskid(TEXT + BIAS + 0x20, TEXT + BIAS + 10, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	/* Called by a pointer: tail, to which no jump leads; and plain, to which one does. */
	c = unskid(TEXT + BIAS + 0x30, TEXT + BIAS + 0x14, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.pc[0], TEXT + BIAS + 0x13);
	c = unskid(TEXT + BIAS + 0x20, TEXT + BIAS + 0x14, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	/* Not a function's first byte. */
	c = unskid(TEXT + BIAS + 0x31, TEXT + BIAS + 0x14, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT);
}

/* The link register has the return address, signed or not. */
static void aarch64(void **state)
{
	const uint64_t first = TEXT + BIAS + 4, signed_too = first | 0x001a000000000000;
	struct uni_skid s;
	struct uni_chain c;

	arch = &uni_arch_aarch64;
	s = read_calls();
	assert_int_equal(s.nr, 4);
	assert_int_equal(
		flags_behind(&s, TEXT + 4), UNI_SKID_BEHIND | UNI_SKID_RETURNS | UNI_SKID_ENTERS);
	assert_int_equal(flags_behind(&s, TEXT + 8), UNI_SKID_BEHIND | UNI_SKID_ENTERS);
	assert_int_equal(flags_behind(&s, TEXT + 12), UNI_SKID_RETURNS);
	assert_int_equal(flags_behind(&s, TEXT + 0x18), UNI_SKID_BEHIND);
	uni_skid_deinit(&s);
	for (unsigned i = 0; i < 2; i++) {
		c = unskid(first, 0x1234, i == 0 ? first : signed_too, UNI_VCPU_RUNNING);
		assert_int_equal(c.nr, 3);
		assert_int_equal(c.pc[0], TEXT + BIAS + 0x20);
		assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_MOVED);
	}
	/* The callee left by a jump, or was called by a pointer. */
	for (uint64_t pc = first + 4; pc <= first + 0x14; pc += 0x10) {
		c = unskid(pc, 0x1234, pc, UNI_VCPU_RUNNING);
		assert_int_equal(c.nr, 3);
		assert_int_equal(c.pc[0], 0);
	}
	/* A jump leads there; it has not returned. */
	c = unskid(first + 8, 0x1234, first + 8, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	c = unskid(first, 0x1234, first + 4, UNI_VCPU_RUNNING);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT);
	c = unskid(TEXT + BIAS + 0x20, first, first, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.pc[0], first - 1);
	c = unskid(TEXT + BIAS + 0x40, TEXT + BIAS + 12, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	arch = &uni_arch_x86_64;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_certain),
		cmocka_unit_test(callee_is_put_back),
		cmocka_unit_test(unknown_callee),
		cmocka_unit_test(uncertain_is_marked),
		cmocka_unit_test(first_byte_is_the_callers),
		cmocka_unit_test(aarch64),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
