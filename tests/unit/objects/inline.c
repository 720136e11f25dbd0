/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of debug data, which find a line by the word behind its @. Nobody runs this. */
static inline __attribute__((always_inline)) void innermost(void)
{
	__asm__ volatile(".globl spot_inlined\nspot_inlined: nop"); /* @innermost */
}

static inline __attribute__((always_inline)) void middle(void)
{
	innermost(); /* @middle */
}

__attribute__((noinline)) void outer(void)
{
	middle();						/* @outer */
	__asm__ volatile(".globl spot_after\nspot_after: nop"); /* @after */
}

__attribute__((noinline)) void plain(void)
{
	__asm__ volatile(".globl spot_plain\nspot_plain: nop"); /* @plain */
}

__attribute__((noinline)) void _start(void)
{
	outer();
	plain();
	__asm__ volatile("");
}
