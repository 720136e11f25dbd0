/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains from code that has popped its return address, or returns on a stack that its rows do not
 * know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/cfiguest.h"

/*
 * The code has popped its return address, as OCaml 4's caml_c_call does. If that cannot be read,
 * what lies above is of an earlier call.
 */
static void return_address_is_popped(void **state)
{
	struct fixture f;
	uint64_t b;

	open_fixture(&f);
	b = ret_into(&f, OUTER, POPPED);
	word(&f, -8, b);
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 2, FN(POPPED), EXACT, b, 0);
	f.regs.sp = BASE; /* below it is nothing */
	guest_put64(&f.g, BASE, b);
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_FAULT, 1, FN(POPPED), EXACT);
	close_fixture(&f);
}

/* Another stack was taken, and the code returns there: pop [r14+16], ret. The rows know nothing of
 * it. */
static void returns_on_another_stack(void **state)
{
	static const unsigned in[] = { POPPED, BY_SP };
	struct fixture f;
	uint64_t handler, b;

	for (unsigned i = 0; i < 2; i++) {
		open_fixture(&f);
		handler = FN(BY_SP) + 0x40; /* no call stands before it */
		b = ret_into(&f, OUTER, BY_SP);
		guest_put(&f.g, FN(in[i]) + 0x80, 0x10468f41, 4);
		guest_put(&f.g, FN(in[i]) + 0x84, 0xc3, 1);
		word(&f, -8, FN(OUTER) + 0x99); /* of an earlier call */
		word(&f, 0, STACK + 0x100);	/* the handler before */
		word(&f, 8, handler);
		word(&f, 16 + 24, b);
		word(&f, 24, BASE + SIZE + 16); /* no code, by BY_SP's rows */
		word(&f, 32, BASE + SIZE + 16);
		unwind(&f, FN(in[i]) + 0x80);
		expect(&f, UNI_STOP_ROOT, 3, FN(in[i]) + 0x80, EXACT, handler, 0, b, 0);
		assert_int_equal(f.chain.sp[1], STACK + 16);
		f.regs.sp += 8;
		unwind(&f, FN(in[i]) + 0x84);
		expect(&f, UNI_STOP_ROOT, 3, FN(in[i]) + 0x84, EXACT, handler, 0, b, 0);
		close_fixture(&f);
	}
}

/* Behind a return, rows still say that all is popped: or rax, 2; jmp to where it is not, or on. */
static void rows_behind_a_return(void **state)
{
	static const struct {
		uint64_t code;
		unsigned size;
		bool far;
	} c[] = { { 0x02c88348, 4, false }, { 0, 0, false }, { 0x02c88348, 4, true } };

	for (unsigned i = 0; i < uni_array_len(c); i++) {
		struct fixture f;
		uint64_t at = FN(POPPED) + 0x80, b;

		open_fixture(&f);
		b = ret_into(&f, OUTER, BY_SP);
		guest_put(&f.g, at, c[i].code, c[i].size);
		if (c[i].far) {
			guest_put(&f.g, at + c[i].size, 0xe9, 1);
			guest_put(&f.g, at + c[i].size + 1, FN(BY_SP) - (at + c[i].size + 5), 4);
		} else {
			guest_put(&f.g, at + c[i].size, 0x7ceb, 2);
			guest_put(&f.g, at + c[i].size + 0x7e, 0x90, 1);
		}
		word(&f, -8, BASE + SIZE + 16); /* no code */
		word(&f, 24, c[i].far ? b : BASE + SIZE + 16);
		unwind(&f, at);
		if (c[i].far)
			expect(&f, UNI_STOP_ROOT, 2, at, EXACT, b, 0);
		else
			assert_int_not_equal(f.chain.pc[1], b);
		close_fixture(&f);
	}
}

static void code(struct fixture *f, uint64_t at, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		guest_put(&f->g, at + i, (uint8_t)bytes[i], 1);
}
#define CODE(f, at, bytes) code((f), (at), (bytes), sizeof(bytes) - 1)

#define STATE (STACK + 0x800)  /* OCaml's, in r14 */
#define FIBER (STACK + 0x1000) /* lies higher than the stack of C */

/*
 * OCaml 5 handles an exception of a callback from C on OCaml's stack, with rows of another place.
 * The handler is 3 instructions long and jumps to 7 others, of which the last loads rsp.
 */
static const uint8_t handler_len[] = { 4, 3, 5 }, leave_len[] = { 4, 4, 4, 3, 4, 3, 4 };

static uint64_t put_handler(struct fixture *f)
{
	uint64_t at = FN(BY_SP) + 0x80, to = FN(POPPED) - 26;

	CODE(f, at, "\x48\x83\xc8\x02\x49\x89\xe2\xe9"); /* or rax, 2; mov r10, rsp; jmp */
	guest_put(&f->g, at + 8, to - (at + 12), 4);
	CODE(f, to,
		"\x4d\x8b\x5a\x08"   /* mov r11, [r10+8] */
		"\x4d\x89\x5e\x20"   /* mov [r14+32], r11 */
		"\x49\x83\xc2\x10"   /* add r10, 16 */
		"\x4d\x89\x3e"	     /* mov [r14], r15 */
		"\x4d\x8b\x5e\x08"   /* mov r11, [r14+8] */
		"\x4d\x89\x13"	     /* mov [r11], r10 */
		"\x49\x8b\x66\x40"); /* mov rsp, [r14+64] */
	return at;
}

static void set_state(struct fixture *f, uint64_t c_stack)
{
	f->regs.sp = FIBER;
	f->func[BY_SP].flags |= UNI_FUNC_CALLED; /* no zero is their end */
	f->func[BY_R10].flags |= UNI_FUNC_CALLED;
	uni_regs_set(&f->regs, UNI_X86_R10, FIBER);
	uni_regs_set(&f->regs, UNI_X86_R11, STATE + 0x100);
	uni_regs_set(&f->regs, UNI_X86_R14, STATE);
	guest_put64(&f->g, STATE + 8, STATE + 0x100);
	guest_put64(&f->g, STATE + 64, c_stack);
}

static void exception_leaves_a_callback(void **state)
{
	struct fixture f;
	uint64_t at, b;

	open_fixture(&f);
	b = ret_into(&f, OUTER, BY_SP);
	at = put_handler(&f);
	set_state(&f, STACK);
	word(&f, -8, b);
	for (int i = -8; i < 64; i += 8) /* what rows name, is no code */
		guest_put64(&f.g, FIBER + (uint64_t)(int64_t)i, 0);
	for (unsigned i = 0; i < 10; i++) {
		if (i == 3)
			at = FN(POPPED) - 26;
		unwind(&f, at);
		expect(&f, UNI_STOP_ROOT, 2, at, EXACT, b, 0);
		assert_true(f.chain.sp[1] == STACK);
		at += i < 3 ? handler_len[i] : leave_len[i - 3];
	}
	close_fixture(&f);
}

/* If the code goes on in a way that is not known, rows stay what they are. */
static void code_that_is_not_followed(void **state)
{
	static const struct {
		unsigned at;
		const char *bytes;
	} c[] = {
		{ 12, "\x74\x01\x90" },	    /* je */
		{ 12, "\xff\xd0\x90" },	    /* call rax */
		{ 12, "\xf3\x0f\x1e" },	    /* something else */
		{ 4, "\x4d\x89\x5e\x40" },  /* what is read below is written: mov [r14+64], r11 */
		{ 4, "\x4d\x89\x5e\x41" },  /* in part */
		{ 22, "\x49\x8b\x66\x48" }, /* the stack that is taken has no caller */
		{ 22, "\x48\x8b\x64\xc4" }, /* an index */
	};

	for (unsigned i = 0; i < uni_array_len(c); i++) {
		struct fixture f;

		open_fixture(&f);
		(void)put_handler(&f);
		set_state(&f, STACK);
		word(&f, -8, ret_into(&f, OUTER, BY_SP));
		code(&f, FN(POPPED) - 26 + c[i].at, c[i].bytes, strlen(c[i].bytes));
		unwind(&f, FN(BY_SP) + 0x80);
		assert_int_equal(f.chain.nr, 1);
		close_fixture(&f);
	}
}

/* A fiber's handler leaves its stack by lea and loads; raising with a backtrace, by a return. */
static void exception_leaves_a_stack(void **state)
{
	struct fixture f;
	uint64_t at = FN(BY_SP) + 0x80, b, handler = FN(BY_FP) + 0x40;

	open_fixture(&f);
	b = ret_into(&f, OUTER, BY_R10);
	set_state(&f, STACK);
	/* lea r11, [rsp+16]; mov r10, [r11+8]; jmp to BY_R10's code, whose row is right */
	CODE(&f, at, "\x4c\x8d\x5c\x24\x10\x4d\x8b\x53\x08\xe9");
	guest_put(&f.g, at + 10, FN(BY_R10) + 0x10 - (at + 14), 4);
	guest_put64(&f.g, FIBER + 24, 0x123456789);
	unwind(&f, at);
	assert_int_equal(f.chain.nr, 1);
	guest_put64(&f.g, FIBER + 24, STACK + 0x40);
	word(&f, 0x38, b);
	unwind(&f, at);
	expect(&f, UNI_STOP_ROOT, 2, at, EXACT, b, 0);
	/* mov rax, r12; mov rsp, [r14+64]; pop [r14+64]; ret. At rsp is the zero of C's stack. */
	CODE(&f, at, "\x4c\x89\xe0\x49\x8b\x66\x40\x41\x8f\x46\x40\xc3");
	f.regs.sp = FIBER;
	word(&f, 0, 0);
	word(&f, 8, handler);
	guest_put64(&f.g, FIBER + 24, 0);
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK + 0x100);
	uni_regs_set(&f.regs, UNI_X86_R12, 2);
	word(&f, 0x108, b);
	unwind(&f, at);
	expect(&f, UNI_STOP_ROOT, 3, at, EXACT, handler, 0, b, 0);
	close_fixture(&f);
}

/* A zero at the place of a return address ends a chain. It is whole where nobody calls. */
static void zero_in_a_called_function(void **state)
{
	struct fixture f;
	uint64_t b;

	open_fixture(&f);
	uni_unwinder_use(&f.u, "cfi,fp", NULL);
	b = ret_into(&f, BY_SP, POPPED);
	word(&f, -8, b);
	word(&f, 24, 0);
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 2, FN(POPPED), EXACT, b, 0);
	f.func[BY_SP].flags |= UNI_FUNC_CALLED;
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_BADPC, 2, FN(POPPED), EXACT, b, 0);
	f.func[BY_SP].flags |= UNI_FUNC_CLEARS_FP;
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 2, FN(POPPED), EXACT, b, 0);
	/* Frames by frame pointers may have this mark. */
	b = ret_into(&f, PLAIN, POPPED);
	word(&f, -8, b);
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK + 0x40);
	f.func[PLAIN].flags = UNI_FUNC_CALLED;
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 2, FN(POPPED), EXACT, b, 0);
	close_fixture(&f);
}

/* Data may be executable: a word that points there is a caller if a call stands before it. */
static void words_that_are_no_callers(void **state)
{
	struct fixture f;
	uint64_t there = STACK + 0x2000;

	open_fixture(&f);
	word(&f, 24, there);
	unwind(&f, FN(BY_SP));
	expect(&f, UNI_STOP_BADPC, 1, FN(BY_SP), EXACT);
	guest_put(&f.g, there - 5, 0xe8, 1);
	unwind(&f, FN(BY_SP));
	assert_true(f.chain.nr == 2 && f.chain.pc[1] == there);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(return_address_is_popped),
		cmocka_unit_test(returns_on_another_stack),
		cmocka_unit_test(rows_behind_a_return),
		cmocka_unit_test(exception_leaves_a_callback),
		cmocka_unit_test(code_that_is_not_followed),
		cmocka_unit_test(exception_leaves_a_stack),
		cmocka_unit_test(zero_in_a_called_function),
		cmocka_unit_test(words_that_are_no_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
