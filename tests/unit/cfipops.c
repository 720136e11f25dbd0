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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(return_address_is_popped),
		cmocka_unit_test(returns_on_another_stack),
		cmocka_unit_test(rows_behind_a_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
