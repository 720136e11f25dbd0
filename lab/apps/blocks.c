/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long blocks without a branch. QEMU's TCG stops only at the end of a block, so a block that ends
 * in a return looks like its caller. A block that ends in a call looks like its callee.
 *
 * Known answer, by instructions and by time: `returns`, `calls`, `pointed` and `points` are 21 %
 * each, `forks` is 16 %. The blocks of `returns` and `pointed` end in a return, those of `calls`
 * and `points` in a call of `empty`. The calls of `pointed`, and by `points`, are by a pointer.
 * `forks` has a block that one of four calls runs, and one that the others run. Then come one that
 * all run, and a loop of none to three turns. `both` and `empty` are nearly nothing. forks=1: all
 * in `forks`.
 *
 * jumps=1, on x86_64: places behind a call that more leads to than the callee's return. A quarter
 * of all is in `interprets`, which goes there by a pointer, and one in `parts.cold`, which jumps
 * there into `parts`. `blocks_empty` returned there once. A quarter each is in `reached` and
 * `direct`. `through` comes to `reached` by `thunk`, as a call by a pointer is compiled against
 * speculation: the return of `thunk` is a jump. Both return by a jump to `return_thunk`.
 */
#include "lab.h"

#ifdef __aarch64__
/* Each result is used: TCG leaves out divisions whose results are not. */
#define DIVIDE(times)                            \
	__asm__ volatile(".rept " times "\n\t"   \
			 "add w9, w9, #1000\n\t" \
			 "udiv w9, w9, %w0\n\t"  \
			 "add w10, w10, w9\n\t"  \
			 ".endr"                 \
			 :                       \
			 : "r"(3)                \
			 : "w9", "w10")
#else
#define DIVIDE(times)                            \
	__asm__ volatile(".rept " times "\n\t"   \
			 "movl $1000, %%eax\n\t" \
			 "xorl %%edx, %%edx\n\t" \
			 "divl %%ecx\n\t"        \
			 ".endr"                 \
			 :                       \
			 : "c"(3)                \
			 : "eax", "edx", "cc")
#endif

const char lab_app_name[] = "blocks";

LAB_FUNC static void empty(void)
{
	__asm__ volatile("");
}

LAB_FUNC static void returns(void)
{
	DIVIDE("60");
}

LAB_FUNC static void calls(void)
{
	DIVIDE("60");
	empty();
}

LAB_FUNC static void pointed(void)
{
	DIVIDE("60");
}

static void (*volatile blocks_leaf)(void) = empty;
static void (*volatile blocks_pointed)(void) = pointed;

LAB_FUNC static void points(void)
{
	DIVIDE("60");
	blocks_leaf();
	__asm__ volatile(""); /* so that it is no jump */
}

LAB_FUNC static void forks(uint64_t turn)
{
	if ((turn & 3) != 0)
		DIVIDE("10");
	else
		DIVIDE("30");
	DIVIDE("15");
	for (uint64_t n = turn & 3; n-- != 0;)
		DIVIDE("10");
}

LAB_FUNC static void both(uint64_t turns)
{
	while (turns-- != 0) {
		returns();
		calls();
		blocks_pointed();
		points();
		forks(turns);
	}
}

LAB_FUNC static void fork_often(uint64_t turns)
{
	while (turns-- != 0)
		forks(turns);
}

#ifdef __x86_64__
void interprets(void), parts(void), through(void (*f)(void)), reached(void), direct(void);

LAB_FUNC static void jump_often(uint64_t turns)
{
	while (turns-- != 0) {
		interprets();
		parts();
		for (unsigned i = 0; i < 16; i++) {
			through(reached);
			direct();
		}
	}
}
#endif

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(10000), only = lab_arg("forks", 0);

	for (uint64_t i = 0; i < rounds && !lab_stop(); i++) {
#ifdef __x86_64__
		if (lab_arg("jumps", 0) != 0) {
			jump_often(10);
			continue;
		}
#endif
		if (only == 0)
			both(100);
		else
			fork_often(100);
	}
}
