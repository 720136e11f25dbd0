/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of a vCPU that TCG stopped before a block: put right where only one block can be before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "obj/disasm.h"
#include "skid_code.h"

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

static struct uni_skid read_calls(void)
{
	bool a64 = arch == &uni_arch_aarch64;

	return read_code(a64 ? (const uint8_t *)a64_code : code, sizeof(code),
		a64 ? a64_syms : syms, uni_array_len(syms), NULL);
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

static struct uni_chain unskid(uint64_t pc, uint64_t ret_addr, uint64_t word, uint8_t vcpu_state)
{
	struct uni_skid s = read_calls();
	struct uni_chain c = unskid_by(&s, pc, ret_addr, word, vcpu_state);

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
	/* Another word is below the stack (`ret N`): not the caller, but who? */
	c = unskid(at, above, at + 1, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	/* A jump leads there, or the vCPU does not run. */
	c = unskid(TEXT + BIAS + 15, above, at, UNI_VCPU_RUNNING);
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
	/* looped may have begun again. */
	c = unskid(TEXT + BIAS + 0x40, TEXT + BIAS + 15, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	/* plain was entered by a jump from tail, which ran. */
	c = unskid(TEXT + BIAS + 0x20, TEXT + BIAS + 10, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.pc[0], TEXT + BIAS + 0x30);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_MOVED);
	assert_int_equal(c.pc[1], TEXT + BIAS + 10);
	/* Called by a pointer: tail, to which no jump leads; and plain, to which one does. */
	c = unskid(TEXT + BIAS + 0x30, TEXT + BIAS + 0x14, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.pc[0], TEXT + BIAS + 0x13);
	c = unskid(TEXT + BIAS + 0x20, TEXT + BIAS + 0x14, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.pc[0], 0); /* plain did not run itself, in either case */
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_MOVED | UNI_FRAME_UNSURE);
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
	/* No jump leads there, and it is no plain return. */
	c = unskid(first, 0x1234, first + 4, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 2);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	c = unskid(TEXT + BIAS + 0x20, first, first, UNI_VCPU_RUNNING);
	assert_int_equal(c.nr, 1);
	assert_int_equal(c.pc[0], first - 1);
	c = unskid(TEXT + BIAS + 0x40, TEXT + BIAS + 12, 0, UNI_VCPU_RUNNING);
	assert_int_equal(c.flags[0], UNI_FRAME_EXACT | UNI_FRAME_UNSURE);
	arch = &uni_arch_x86_64;
}

static const struct spec_sym odd_syms[] = {
	FUNC("pointer", 0x00, 0x0e),
	FUNC("switch", 0x10, 0x12),
	FUNC("f", 0x28, 0x0b),
	FUNC("f.cold", 0x38, 5),
	FUNC("to_thunk", 0x40, 0x0a),
	FUNC("thunk", 0x50, 0x0e),
	FUNC("pushes", 0x70, 2),
	FUNC("falls", 0x74, 2),
	FUNC("behind", 0x76, 1),
	FUNC("unreadable", 0x78, 2),
	FUNC("plain", 0x80, 1),
	FUNC("ping", 0x84, 2),
	FUNC("pong", 0x88, 2),
	FUNC("calls", 0x90, 0x24),
};

static const struct piece odd_code[] = {
	/* call plain; nop; jmp *%rax; call plain; ret */
	PIECE(0x00, 0xe8, 0x7b, 0, 0, 0, 0x90, 0xff, 0xe0, 0xe8, 0x73, 0, 0, 0, 0xc3),
	/* call plain; call plain; jmp *table(,%rax,8); ret */
	PIECE(0x10, 0xe8, 0x6b, 0, 0, 0, 0xe8, 0x66, 0, 0, 0, 0xff, 0x24, 0xc5, 0x60, 0, 0x10, 0,
		0xc3),
	/* call plain; call thunk; ret */
	PIECE(0x28, 0xe8, 0x53, 0, 0, 0, 0xe8, 0x1e, 0, 0, 0, 0xc3),
	PIECE(0x38, 0xe9, 0xf0, 0xff, 0xff, 0xff),	       /* jmp behind the call of plain */
	PIECE(0x40, 0xe8, 0x3b, 0, 0, 0, 0xe9, 0x06, 0, 0, 0), /* call plain; jmp thunk */
	/* call 1f; jmp .; 1: mov %rax,(%rsp); mov %eax,%eax; ret */
	PIECE(0x50, 0xe8, 0x02, 0, 0, 0, 0xeb, 0xfe, 0x48, 0x89, 0x04, 0x24, 0x89, 0xc0, 0xc3),
	PIECE(0x60, 0x15, 0, 0x10), /* table: behind the first call */
	PIECE(0x70, 0x50, 0xc3),    /* push %rax; ret */
	PIECE(0x74, 0x89, 0xc0, 0xc3),
	PIECE(0x78, 0x06, 0xc3),
	PIECE(0x80, 0xc3),
	PIECE(0x84, 0xeb, 0x02), /* jmp pong, and back */
	PIECE(0x88, 0xeb, 0xfa),
	/* call pushes, falls, behind, unreadable, pointer, switch, ping; ret */
	PIECE(0x90, 0xe8, 0xdb, 0xff, 0xff, 0xff, 0xe8, 0xda, 0xff, 0xff, 0xff, 0xe8, 0xd7, 0xff,
		0xff, 0xff, 0xe8, 0xd4, 0xff, 0xff, 0xff, 0xe8, 0x57, 0xff, 0xff, 0xff, 0xe8, 0x62,
		0xff, 0xff, 0xff, 0xe8, 0xd1, 0xff, 0xff, 0xff, 0xc3),
};

static struct uni_skid read_odd(const struct uni_cfi_table *rows)
{
	return read_pieces(
		odd_code, uni_array_len(odd_code), odd_syms, uni_array_len(odd_syms), rows);
}

/* More leads behind a call than the return of its callee. */
static void jumps_behind_a_call(void **state)
{
	const uint32_t returned = UNI_SKID_RETURNS | UNI_SKID_ENTERS;
	struct uni_skid s = read_odd(NULL);

	assert_int_equal(flags_behind(&s, TEXT + 0x05), returned); /* by a pointer */
	assert_int_equal(flags_behind(&s, TEXT + 0x0d), returned);
	assert_int_equal(flags_behind(&s, TEXT + 0x15), returned); /* by a table */
	assert_int_equal(flags_behind(&s, TEXT + 0x1a), returned | UNI_SKID_BEHIND);
	assert_int_equal(flags_behind(&s, TEXT + 0x2d), returned); /* from f.cold */
	assert_int_equal(flags_behind(&s, TEXT + 0x45), returned); /* by a thunk */
	/* To first bytes: by its own pointer, from the function before, by no way, directly. */
	for (size_t i = 0; i < s.nr_entries; i++) {
		uint64_t at = s.entry[i].svma - TEXT;

		if (at == 0 || at == 0x76 || at == 0x80 || at == 0x84)
			assert_int_equal(s.entry[i].is_jumped, at != 0x80);
	}
	uni_skid_deinit(&s);
}

static void returns_that_go_elsewhere(void **state)
{
	struct uni_skid s = read_odd(NULL);

	assert_int_equal(flags_behind(&s, TEXT + 0x32) & UNI_SKID_RETURNS, 0); /* thunk */
	assert_int_equal(flags_behind(&s, TEXT + 0x32) & UNI_SKID_BEHIND, UNI_SKID_BEHIND);
	assert_int_equal(flags_behind(&s, TEXT + 0x95) & UNI_SKID_RETURNS, 0); /* pushes */
	assert_int_equal(flags_behind(&s, TEXT + 0x9a) & UNI_SKID_RETURNS, 0); /* falls */
	assert_int_equal(flags_behind(&s, TEXT + 0x9f),
		UNI_SKID_BEHIND | UNI_SKID_RETURNS | UNI_SKID_ENTERS);
	assert_int_equal(flags_behind(&s, TEXT + 0xa4) & UNI_SKID_RETURNS, 0); /* unreadable */
	/* It may begin again by its pointer; the table is known to lead elsewhere. */
	assert_int_equal(flags_behind(&s, TEXT + 0xa9), UNI_SKID_BEHIND);
	assert_int_equal(flags_behind(&s, TEXT + 0xae),
		UNI_SKID_BEHIND | UNI_SKID_RETURNS | UNI_SKID_ENTERS);
	/* ping is begun again by pong. */
	assert_int_equal(flags_behind(&s, TEXT + 0xb3), UNI_SKID_BEHIND);
	uni_skid_deinit(&s);
}

/* By its rows, `pointer` has given up its frame before it jumps: that leads out of it. */
static void another_frame_is_not_reached(void **state)
{
	const struct uni_cfi_rule rule[] = { { .cfa = { .how = UNI_CFI_NONE } },
		{ .cfa = { 16, UNI_CFI_REG, UNI_X86_RSP, 0, 0 } },
		{ .cfa = { 8, UNI_CFI_REG, UNI_X86_RSP, 0, 0 } } };
	const struct uni_cfi_row row[] = { { 0, 1 }, { 6, 2 }, { 8, 1 }, { 0x10, 0 } };
	const uint32_t bucket[] = { 0 };
	const struct uni_cfi_table rows = { .base = TEXT + BIAS,
		.row = row,
		.bucket = bucket,
		.rule = rule,
		.nr_rows = uni_array_len(row),
		.nr_buckets = 1,
		.nr_rules = uni_array_len(rule),
		.size = 0x10,
		.shift = 12 };
	const uint32_t all = UNI_SKID_BEHIND | UNI_SKID_RETURNS | UNI_SKID_ENTERS;
	struct uni_skid s = read_odd(&rows);

	assert_int_equal(flags_behind(&s, TEXT + 0x05), all);
	assert_int_equal(flags_behind(&s, TEXT + 0x0d), all);
	assert_int_equal(flags_behind(&s, TEXT + 0x15) & UNI_SKID_BEHIND, 0);
	uni_skid_deinit(&s);
}

/* Capstone's lengths of all instructions of this program. */
static void lengths(void **state)
{
	struct uni_image *img;
	struct uni_err err = { 0 };
	struct uni_disasm *d = NULL;
	size_t nr = 0;

	assert_int_equal(uni_image_load("/proc/self/exe", &img, &err), 0);
	if (uni_image_arch(img) != &uni_arch_x86_64) {
		uni_image_destroy(img);
		skip();
	}
	assert_int_equal(uni_disasm_open(uni_image_arch(img), &d, &err), 0);
	for (size_t i = 0; i < uni_image_nr_symbols(img); i++) {
		const struct uni_symbol *f = uni_image_symbol(img, i);
		struct uni_insn insn = { .size = 1 };
		uint8_t bytes[16384];

		if (f->guessed_size || f->size > sizeof(bytes) ||
			!uni_image_bytes(img, f->addr, bytes, (size_t)f->size))
			continue;
		for (size_t at = 0; at < f->size; at += insn.size, nr++) {
			size_t n = (size_t)f->size - at;

			uni_disasm_one(d, bytes + at, n, f->addr + at, &insn);
			if (insn.kind != UNI_INSN_BAD &&
				uni_arch_x86_64.insn_size(bytes + at, n) != insn.size)
				fail_msg("%#lx: %s", (unsigned long)insn.addr, insn.text);
		}
	}
	assert_true(nr > 1000);
	uni_disasm_close(d);
	uni_image_destroy(img);
}

/* By the manual: prefixes, immediates whose size depends on them, and vectors. */
static void rare_lengths(void **state)
{
	static const struct {
		size_t want;
		uint8_t code[12];
	} c[] = {
		{ 10, { 0x48, 0xb8 } },			    /* movabs */
		{ 4, { 0x66, 0xb8 } },			    /* mov $16 bits,%ax */
		{ 9, { 0xa1 } },			    /* mov moffs,%eax */
		{ 3, { 0xf6, 0xc0 } },			    /* test $1,%al */
		{ 2, { 0xf7, 0xd8 } },			    /* neg %eax */
		{ 3, { 0xc2 } },			    /* ret $16 bits */
		{ 8, { 0x42, 0x8b, 0x04, 0x25 } },	    /* mov disp32(,%r12,1),%eax */
		{ 3, { 0x3e, 0xff, 0xe0 } },		    /* notrack jmp *%rax */
		{ 6, { 0x66, 0x0f, 0x3a, 0x0f } },	    /* palignr */
		{ 3, { 0xc5, 0xf8, 0x77 } },		    /* vzeroupper */
		{ 6, { 0xc4, 0xe3, 0x7d, 0x39, 0xc1, 1 } }, /* vextracti128 */
		{ 7, { 0x62, 0xf3, 0x7d, 0x48, 0x39, 0xc1, 1 } },
		{ 0, { 0x06 } },
		{ 0, { 0x62, 0x00 } },
	};

	for (size_t i = 0; i < uni_array_len(c); i++) {
		assert_int_equal(
			uni_arch_x86_64.insn_size(c[i].code, sizeof(c[i].code)), c[i].want);
		/* Whatever part of an instruction is missing, it is none. */
		for (size_t n = 0; n < c[i].want; n++)
			assert_int_equal(uni_arch_x86_64.insn_size(c[i].code, n), 0);
	}
}

static enum uni_branch x86(uint64_t bytes)
{
	const uint64_t to_be_loaded = bytes;
	uint64_t target;

	return uni_arch_x86_64.branch((const uint8_t *)&to_be_loaded, 8, TEXT, &target);
}

static enum uni_branch a64(uint32_t insn)
{
	uint64_t target;

	return uni_arch_aarch64.branch((const uint8_t *)&insn, 4, TEXT, &target);
}

/* By the manuals; bytes of x86 from the last to the first. */
static void kinds(void **state)
{
	static const uint64_t top[] = { 0x50, 0x5041, 0x68, 0x6a, 0x2434ff, 0x24048948, 0x24048748,
		0x2404c748 };
	static const uint32_t pointer[] = { 0xd61f0020, 0xd65f0020,
		0xd71f0822 }; /* br, ret, braa */

	for (size_t i = 0; i < uni_array_len(top); i++)
		assert_int_equal(x86(top[i]), UNI_BRANCH_TOP);
	assert_int_equal(x86(0x0824448948), UNI_BRANCH_NONE); /* mov %rax,8(%rsp) */
	assert_int_equal(x86(0x0824648d48), UNI_BRANCH_DROP);
	assert_int_equal(x86(0x08c48348), UNI_BRANCH_DROP);
	assert_int_equal(x86(0x59), UNI_BRANCH_DROP);	/* pop */
	assert_int_equal(x86(0x5c41), UNI_BRANCH_DROP); /* pop %r12 */
	assert_int_equal(x86(0x08ec8348), UNI_BRANCH_ROOM);
	assert_int_equal(x86(0x00ec8148), UNI_BRANCH_ROOM);
	assert_int_equal(x86(0x10c48348), UNI_BRANCH_NONE);
	assert_int_equal(x86(0x08c48349), UNI_BRANCH_NONE); /* add $8,%r12 */
	assert_int_equal(x86(0xc3f3), UNI_BRANCH_RETURN);
	assert_int_equal(x86(0xc2), UNI_BRANCH_RETURN);
	assert_int_equal(x86(0x0b0f), UNI_BRANCH_END);
	assert_int_equal(x86(0xcf48), UNI_BRANCH_AWAY);
	assert_int_equal(x86(0x070f48), UNI_BRANCH_AWAY);
	assert_int_equal(x86(0x80cd), UNI_BRANCH_TRAP);
	assert_int_equal(x86(0x050f), UNI_BRANCH_TRAP);
	assert_int_equal(x86(0xfeeb), UNI_BRANCH_GOTO);
	assert_int_equal(x86(0xfe75), UNI_BRANCH_JUMP);
	assert_int_equal(x86(0xe0ff3e), UNI_BRANCH_INDIRECT);
	assert_int_equal(x86(0x9066), UNI_BRANCH_PAD);
	assert_int_equal(x86(0xa4f3), UNI_BRANCH_JUMP);	  /* rep movsb */
	assert_int_equal(x86(0xab48f3), UNI_BRANCH_JUMP); /* rep stosq */
	assert_int_equal(x86(0xaef2), UNI_BRANCH_JUMP);	  /* repne scasb */
	assert_int_equal(x86(0xaa), UNI_BRANCH_NONE);
	assert_int_equal(x86(0xa8f3), UNI_BRANCH_NONE);
	assert_int_equal(x86(0x441f0f), UNI_BRANCH_PAD);
	for (size_t i = 0; i < uni_array_len(pointer); i++)
		assert_int_equal(a64(pointer[i]), UNI_BRANCH_INDIRECT);
	assert_int_equal(a64(0xd65f03c0), UNI_BRANCH_RETURN);
	assert_int_equal(a64(0xd65f0bff), UNI_BRANCH_RETURN); /* retaa, retab */
	assert_int_equal(a64(0xd65f0fff), UNI_BRANCH_RETURN);
	assert_int_equal(a64(0xd73f0822), UNI_BRANCH_POINTER); /* blraa */
	assert_int_equal(a64(0xd69f03e0), UNI_BRANCH_AWAY);    /* eret */
	assert_int_equal(a64(0xd4200000), UNI_BRANCH_END);     /* brk */
	assert_int_equal(a64(0xd4000001), UNI_BRANCH_TRAP);    /* svc */
	assert_int_equal(a64(0xd4001fe3), UNI_BRANCH_TRAP);    /* smc */
	assert_int_equal(a64(0xd4000000), UNI_BRANCH_NONE);
	assert_int_equal(a64(0xd503201f), UNI_BRANCH_PAD);
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
		cmocka_unit_test(jumps_behind_a_call),
		cmocka_unit_test(returns_that_go_elsewhere),
		cmocka_unit_test(another_frame_is_not_reached),
		cmocka_unit_test(lengths),
		cmocka_unit_test(rare_lengths),
		cmocka_unit_test(kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
