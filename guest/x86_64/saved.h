/* SPDX-License-Identifier: BSD-2-Clause */
/* The registers that a hook pushed before it calls C (hooks.inc, into_c). */
#ifndef UNI_GUEST_SAVED_H
#define UNI_GUEST_SAVED_H

#include <stdint.h>

struct saved {
	uint64_t r11; /* entry: the hook's return address; exit: the stack pointer */
	uint64_t r10, r9, r8, rdi, rsi, rdx, rcx, rax;
};

#endif
