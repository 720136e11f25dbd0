/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long blocks without a branch. QEMU's TCG stops only at the end of a block, so a block that ends
 * in a return looks like its caller. A block that ends in a call looks like its callee.
 *
 * Known answer, by instructions and by time: `returns` and `calls` are one half each. The block of
 * `returns` ends in a return, the block of `calls` in a call of `empty`. `both` and `empty` are
 * nearly nothing.
 */
#include "lab.h"

#ifdef __aarch64__
/* Each result is used: TCG leaves out divisions whose results are not. */
#define DIVIDE_MANY                              \
	__asm__ volatile(".rept 60\n\t"          \
			 "add w9, w9, #1000\n\t" \
			 "udiv w9, w9, %w0\n\t"  \
			 "add w10, w10, w9\n\t"  \
			 ".endr"                 \
			 :                       \
			 : "r"(3)                \
			 : "w9", "w10")
#else
#define DIVIDE_MANY                              \
	__asm__ volatile(".rept 60\n\t"          \
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
	DIVIDE_MANY;
}

LAB_FUNC static void calls(void)
{
	DIVIDE_MANY;
	empty();
}

LAB_FUNC static void both(uint64_t turns)
{
	while (turns-- != 0) {
		returns();
		calls();
	}
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(10000);

	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		both(100);
}
