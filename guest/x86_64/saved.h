/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers that a hook pushed before it calls C (hooks.inc, into_c). */
#ifndef UNI_GUEST_SAVED_H
#define UNI_GUEST_SAVED_H

#include <stdint.h>

struct saved {
	uint64_t r11; /* entry: the hook's return address; exit: the stack pointer */
	uint64_t r10, r9, r8, rdi, rsi, rdx, rcx, rax;
};

/* In the C of an entry hook: where the traced call's return address lies. Behind the registers are
 * rbp and two return addresses. */
static inline uint64_t saved_place(const struct saved *s)
{
	return (uint64_t)(s + 1) + 3 * sizeof(uint64_t);
}

/* There, too: the function (within it), and its caller if it is in the same window. */
static inline uint64_t saved_call(const struct saved *s)
{
	uint64_t caller = *(const volatile uint64_t *)saved_place(s);
	uint64_t function = (uint32_t)(s->r11 - 5);

	if (caller >> 32 != s->r11 >> 32)
		return function;
	return function | (uint64_t)(((uint32_t)caller - 1) & ~1u) << 32;
}

#endif
