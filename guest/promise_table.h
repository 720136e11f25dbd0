/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UNI_GUEST_PROMISE_TABLE_H
#define UNI_GUEST_PROMISE_TABLE_H

#include <stdint.h>

/* Set by uni_promise_keep(): a guest that keeps no table need not link it. */
extern void (*uni_promise_keeper)(
	unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text);

#endif
