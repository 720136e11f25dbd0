/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of a guest that tells the tracer of its threads (guest/promise_table.c). Places are
 * those of its hash: 2 and 7 have the same, so that 7 lies behind. */
#include "uniscope/promise.h"

#define FREE                                                              \
	{                                                                 \
		.id = UNI_PROMISE_NOBODY, .waits_for = UNI_PROMISE_NOBODY \
	}
#define OPEN(number, of, on, text)                                      \
	{                                                               \
		.id = number, .type = of, .waits_for = on, .name = text \
	}

struct {
	struct uni_trace_promises head;
	struct uni_trace_promise at[16];
} table = { { .room = 16, .used = 4 },
	{ FREE, FREE, OPEN(2, UNI_PROMISE_ASYNC, 7, "tcp\033"),
		OPEN(7, UNI_PROMISE_CONDITION, UNI_PROMISE_NOBODY, "arp reply"), FREE, FREE, FREE,
		FREE, FREE, OPEN(1, UNI_PROMISE_THREAD, UNI_PROMISE_NOBODY, "netif"), FREE, FREE,
		OPEN(3, UNI_PROMISE_WAIT, 99, ""), FREE, FREE, FREE } };

struct uni_trace_head uni_trace_head = { .nr_cpus = 1, .promises = (uint64_t)&table };

void (*uni_promise_keeper)(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text);

void _start(void)
{
}
