/* SPDX-License-Identifier: BSD-2-Clause */
/* What a hook hands to C (hooks.inc, into_c): the registers that it pushed. */
#ifndef UNI_GUEST_SAVED_H
#define UNI_GUEST_SAVED_H

#include <stdint.h>

struct saved {
	uint64_t r11; /* entry: the hook's return address; exit: the stack pointer */
	uint64_t r10, r9, r8, rdi, rsi, rdx, rcx, rax;
};

#endif
