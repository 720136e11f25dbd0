/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring in static memory, for guests that link this file. Before any allocator is there, an image
 * of `uniscope trace prepare --on` records its calls from the first one on. */
#include "uniscope/trace.h"

#include "machine.h"
#include "ring.h"

#ifndef UNI_TRACE_BOOT_KIB
#define UNI_TRACE_BOOT_KIB 512
#endif

_Static_assert(UNI_TRACE_BOOT_KIB * 1024 >= UNI_TRACE_SUB_MIN * UNI_TRACE_SUB_SIZE, "too small");

static uint8_t memory[UNI_TRACE_BOOT_KIB * 1024 + UNI_TRACE_SUB_SIZE];

int uni_trace_boot(struct uni_trace_cpu *c)
{
	static uint64_t began; /* interrupts meanwhile find no room */

	if (!uni_trace_head.control.enable || c == &uni_trace_early ||
		!uni_machine_swap(&began, 0, 1))
		return 0;
	uni_trace_begin(c, memory, sizeof(memory));
	return 1;
}
