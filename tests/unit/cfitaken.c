/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers of code that has taken another stack: a register has the old one, or nothing has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/cfiguest.h"
#include "obj/cfi.h"

#define OTHER (STACK + 0x2000) /* the stack that is taken */
#define LEFT  0x100	       /* from STACK: where the old one's pointer is */

static const uint8_t takes[] = {
	0x49, 0x89, 0xe5,	/* mov %rsp,%r13 */
	0x49, 0x8b, 0x66, 0x40, /* mov 0x40(%r14),%rsp */
	0xe8, 0, 0, 0, 0,	/* call */
	0x4c, 0x89, 0xe0,	/* mov %r12,%rax */
	0x49, 0x8b, 0x66, 0x30, /* mov 0x30(%r14),%rsp */
	0xc3,			/* ret */
	0x90,			/* nop: behind a return, nothing is known */
};
#define CALLED (FN(TAKES) + 12)
#define RETURN (FN(TAKES) + 19)
#define BEHIND (FN(TAKES) + 20)

static void open_taken(struct fixture *f)
{
	open_fixture(f);
	for (size_t i = 0; i < sizeof(takes); i++)
		guest_put(&f->g, FN(TAKES) + i, takes[i], 1);
	guest_put(&f->g, CALLED - 4, FN(BY_SP) - CALLED, 4);
	f->regs.sp = OTHER;
	word(f, 0x2000 + 24, CALLED);
	word(f, 0x2000 + 32, STACK + 1); /* no return address */
	uni_regs_set(&f->regs, UNI_X86_R13, STACK + LEFT);
}

/* As OCaml 5's caml_raise_exn calls caml_stash_backtrace. */
static void register_keeps_the_old_stack(void **state)
{
	struct fixture f;
	uint64_t b;

	open_taken(&f);
	b = ret_into(&f, OUTER, TAKES);
	word(&f, LEFT, b);
	/* The code will go on in a handler. */
	uni_regs_set(&f.regs, UNI_X86_R14, STACK + 0x3000);
	word(&f, 0x3030, STACK + 0x3100);
	word(&f, 0x3100, FN(BY_FP) + 0x77);
	unwind(&f, FN(BY_SP));
	expect(&f, UNI_STOP_ROOT, 3, FN(BY_SP), EXACT, CALLED, 0, b, 0);
	/* A call of another function led there: frames may be missing between them. */
	b = ret_into(&f, OUTER, PLAIN);
	word(&f, LEFT, b);
	unwind(&f, FN(BY_SP));
	expect(&f, UNI_STOP_ROOT, 3, FN(BY_SP), EXACT, CALLED, 0, b, GUESS);
	/* No call, no caller. */
	word(&f, LEFT, FN(OUTER) + 3);
	unwind(&f, FN(BY_SP));
	assert_true(f.chain.nr < 3 || f.chain.pc[2] != FN(OUTER) + 3);
	close_fixture(&f);
}

/* Behind the load of the stack pointer, what lies there is a handler. */
static void handlers_are_no_callers(void **state)
{
	struct fixture f;
	uint64_t handler = FN(OUTER) + 0x77, b;

	open_taken(&f);
	f.regs.valid &= ~(1ull << UNI_X86_R13);
	word(&f, 0x2000, handler);
	unwind(&f, RETURN);
	expect(&f, UNI_STOP_ROOT, 2, RETURN, EXACT, handler, GUESS);
	b = ret_into(&f, OUTER, PLAIN);
	word(&f, 0x2000, b);
	unwind(&f, RETURN);
	expect(&f, UNI_STOP_ROOT, 2, RETURN, EXACT, b, GUESS);
	/* A switch of threads: that one called this function, too. */
	b = ret_into(&f, OUTER, TAKES);
	word(&f, 0x2000, b);
	unwind(&f, RETURN);
	expect(&f, UNI_STOP_ROOT, 2, RETURN, EXACT, b, 0);
	/* Before it, and behind the function's return, rows are right. */
	word(&f, 0x2000, handler);
	unwind(&f, FN(TAKES) + 3);
	expect(&f, UNI_STOP_ROOT, 2, FN(TAKES) + 3, EXACT, handler, 0);
	unwind(&f, BEHIND);
	expect(&f, UNI_STOP_ROOT, 2, BEHIND, EXACT, handler, 0);
	close_fixture(&f);
}

#define CODE(...)                                                         \
	{                                                                 \
		{ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }) \
	}

static void code_that_takes_a_stack(void **state)
{
	static const struct {
		struct {
			uint8_t byte[16];
			size_t n;
		} code;
		bool taken, kept;
		unsigned reg, at;
	} row[] = {
		{ CODE(0x48, 0x8b, 0x20), true, false, 0, 0 },		       /* mov (%rax),%rsp */
		{ CODE(0x4c, 0x8b, 0x20), false, false, 0, 0 },		       /* mov (%rax),%r12 */
		{ CODE(0x48, 0x8b, 0xe0), false, false, 0, 0 },		       /* mov %rax,%rsp */
		{ CODE(0x8b, 0x20), false, false, 0, 0 },		       /* mov (%rax),%esp */
		{ CODE(0x90, 0x48, 0x89, 0xe3), false, true, UNI_X86_RBX, 1 }, /* mov %rsp,%rbx */
		{ CODE(0x4c, 0x8b, 0xec), false, true, UNI_X86_R13, 0 },       /* the same, 8b */
		{ CODE(0x48, 0x89, 0xe0), false, false, 0, 0 }, /* to %rax: a call loses it */
		{ CODE(0x48, 0x89, 0xe5), false, false, 0, 0 }, /* to %rbp: a frame pointer */
		/* kept, and then lost: mov %rax,%rbx; lea (%rax),%rbx; pop %rbx; or left alone */
		{ CODE(0x48, 0x89, 0xe3, 0x48, 0x89, 0xc3), false, false, 0, 0 },
		{ CODE(0x48, 0x89, 0xe3, 0x48, 0x8d, 0x18), false, false, 0, 0 },
		{ CODE(0x48, 0x89, 0xe3, 0x5b), false, false, 0, 0 },
		{ CODE(0x48, 0x89, 0xe3, 0x48, 0x89, 0x18), false, true, UNI_X86_RBX, 0 },
		{ CODE(0x48, 0x89, 0xe3, 0x48, 0x8d, 0x00), false, true, UNI_X86_RBX, 0 },
		{ CODE(0x48, 0x89, 0xe3, 0x75, 0x00), false, true, UNI_X86_RBX, 0 },
		/* A stack that was loaded is not the caller's: mov (%rax),%rsp; mov %rsp,%rbx */
		{ CODE(0x48, 0x8b, 0x20, 0x48, 0x89, 0xe3), true, false, 0, 0 },
		/* Behind ret, jmp, jmp *%rax: another way led there. */
		{ CODE(0x48, 0x8b, 0x20, 0xc3), false, false, 0, 0 },
		{ CODE(0x48, 0x8b, 0x20, 0xeb, 0x00), false, false, 0, 0 },
		{ CODE(0x48, 0x8b, 0x20, 0xff, 0xe0), false, false, 0, 0 },
		{ CODE(0x48, 0x8b, 0x20, 0x06), false, false, 0, 0 }, /* no instruction */
	};

	for (size_t i = 0; i < uni_array_len(row); i++) {
		struct uni_taken_stack s;

		uni_arch_x86_64.find_stack(row[i].code.byte, row[i].code.n, &s);
		assert_int_equal(s.taken, row[i].taken);
		assert_int_equal(s.kept, row[i].kept);
		if (row[i].kept) {
			assert_int_equal(s.reg, row[i].reg);
			assert_int_equal(s.at, row[i].at);
		}
	}
	assert_true(uni_arch_x86_64.takes_stack(takes, sizeof(takes)));
	assert_false(uni_arch_x86_64.takes_stack(takes, 5));
	assert_false(uni_arch_x86_64.takes_stack(row[1].code.byte, row[1].code.n));
}

/* .eh_frame of two functions of `takes` and of nothing: CFA is rsp + 8, the caller's pc at CFA - 8.
 */
static size_t put_rows(uint8_t *ret)
{
	static const uint8_t cie[] = { 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8,
		0x90, 1, 0, 0 };
	const uint64_t fde[][3] = { { 0, FN(TAKES), sizeof(takes) },
		{ 0, FN(TAKES) + 0x80, sizeof(takes) } };
	size_t n = sizeof(cie);

	memcpy(ret, cie, n);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t head[] = { 20, (uint32_t)n + 4 };

		memcpy(ret + n, head, sizeof(head));
		memcpy(ret + n + 8, &fde[i][1], 16);
		n += 24;
	}
	return n;
}

static void rows_tell_which_functions_do(void **state)
{
	uint8_t text[0x100] = { 0 }, eh[128];
	const struct uni_cfi_code code = { FN(TAKES), sizeof(text), text, sizeof(text) };
	const struct uni_cfi_section section = { .data = eh, .size = put_rows(eh), .eh = true };
	const struct uni_cfi_source src = { .arch = &uni_arch_x86_64,
		.section = &section,
		.nr_sections = 1,
		.code = &code,
		.nr_code = 1 };
	struct uni_cfi *c;

	memcpy(text, takes, sizeof(takes));
	assert_int_equal(uni_cfi_compile(&src, &c), 0);
	assert_non_null(c);
	assert_int_equal(uni_cfi_find(&c->table, FN(TAKES))->flags, UNI_CFI_TAKES_STACK);
	assert_int_equal(uni_cfi_find(&c->table, FN(TAKES) + 0x80)->flags, 0);
	uni_cfi_destroy(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(register_keeps_the_old_stack),
		cmocka_unit_test(handlers_are_no_callers),
		cmocka_unit_test(code_that_takes_a_stack),
		cmocka_unit_test(rows_tell_which_functions_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
