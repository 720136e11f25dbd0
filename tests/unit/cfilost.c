/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers of a function whose rows count from a register that is not known, as of a thread asleep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/cfiguest.h"

#define SAVED 0x100 /* from STACK: where the function pushed rbp */

/* POPPED sleeps; it was called by BY_FP, of which the registers do not tell the frame. */
static uint64_t open_asleep(struct fixture *f)
{
	uint64_t in_by_fp;

	open_fixture(f);
	in_by_fp = ret_into(f, BY_FP, POPPED);
	word(f, -8, in_by_fp);
	f->regs.valid &= ~(1ull << UNI_X86_RBP);
	return in_by_fp;
}

static void frame_is_found_by_its_call(void **state)
{
	struct fixture f;
	uint64_t a = open_asleep(&f), b = ret_into(&f, BY_FP, BY_SP),
		 c = ret_into(&f, OUTER, BY_FP);

	/* Calls of other functions are no sign of it. */
	word(&f, 0x40, ret_into(&f, OUTER, PLAIN));
	word(&f, SAVED + 8, ret_into(&f, BY_SP, BY_FP));
	word(&f, SAVED + 16 + 16, STACK + 0x200); /* the caller's rbp */
	word(&f, SAVED + 16 + 24, b);
	word(&f, 0x208, c);
	unwind(&f, FN(POPPED));
	/* b is in BY_FP itself: which call is the newest one is not sure. */
	assert_int_equal(f.chain.flags[2], GUESS);
	word(&f, SAVED + 16 + 24, ret_into(&f, OUTER, BY_SP));
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 4, FN(POPPED), EXACT, a, 0, ret_into(&f, BY_SP, BY_FP), 0,
		ret_into(&f, OUTER, BY_SP), 0);
	assert_true(f.chain.sp[2] == STACK + SAVED + 16);
	close_fixture(&f);
}

/* The caller's rbp is the one that the function pushed. */
static void frame_has_the_pushed_register(void **state)
{
	struct fixture f;
	uint64_t a = open_asleep(&f), b = ret_into(&f, OUTER, BY_FP);

	word(&f, SAVED, STACK + 0x400);
	word(&f, SAVED + 8, b);
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 3, FN(POPPED), EXACT, a, 0, b, 0);
	/* The interrupted function itself may be the one. */
	unwind(&f, FN(BY_FP) + 0x20);
	expect(&f, UNI_STOP_ROOT, 2, FN(BY_FP) + 0x20, EXACT, b, 0);
	close_fixture(&f);
}

/* A word behind a call of the function, left over: what lies above it was called by others. */
static void left_over_words_are_guesses(void **state)
{
	const unsigned called[] = { PLAIN, BY_FP };

	for (unsigned i = 0; i < uni_array_len(called); i++) {
		struct fixture f;
		uint64_t a = open_asleep(&f), old = ret_into(&f, BY_SP, BY_FP);

		word(&f, 0x40, old);
		word(&f, 0x48 + 24, ret_into(&f, OUTER, called[i]));
		word(&f, SAVED + 8, ret_into(&f, OUTER, BY_FP));
		unwind(&f, FN(POPPED));
		assert_true(f.chain.nr > 2 && f.chain.pc[1] == a);
		assert_int_equal(f.chain.flags[1], 0);
		assert_int_equal(f.chain.flags[2], GUESS);
		/* Nor does a word that is no code fit. */
		word(&f, 0x48 + 24, FN(OUTER) + 3);
		unwind(&f, FN(POPPED));
		assert_int_equal(f.chain.flags[2], GUESS);
		close_fixture(&f);
	}
}

/* A register that is known is used, whatever lies on the stack. */
static void known_registers_are_used(void **state)
{
	struct fixture f;
	uint64_t a = open_asleep(&f), b = ret_into(&f, OUTER, BY_FP);

	word(&f, 0x48, ret_into(&f, BY_SP, BY_FP));
	word(&f, 0x50 + 24, ret_into(&f, OUTER, BY_SP));
	word(&f, SAVED + 8, b);
	uni_regs_set(&f.regs, UNI_X86_RBP, STACK + SAVED);
	unwind(&f, FN(POPPED));
	expect(&f, UNI_STOP_ROOT, 3, FN(POPPED), EXACT, a, 0, b, 0);
	close_fixture(&f);
}

/* A return address that is too far up is not found. */
static void search_has_an_end(void **state)
{
	const int at[] = { 511 * 8, 512 * 8 };

	for (unsigned i = 0; i < uni_array_len(at); i++) {
		struct fixture f;
		uint64_t a = open_asleep(&f), b = ret_into(&f, OUTER, BY_FP);

		word(&f, at[i], b);
		unwind(&f, FN(POPPED));
		if (i == 0)
			expect(&f, UNI_STOP_ROOT, 3, FN(POPPED), EXACT, a, 0, b, 0);
		else
			assert_int_equal(f.chain.nr, 2);
		close_fixture(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_is_found_by_its_call),
		cmocka_unit_test(frame_has_the_pushed_register),
		cmocka_unit_test(left_over_words_are_guesses),
		cmocka_unit_test(known_registers_are_used),
		cmocka_unit_test(search_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
