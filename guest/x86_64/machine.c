/* SPDX-License-Identifier: BSD-2-Clause */
/* x86_64's part of the tracer that is no hot path. */
#include "cpu.h"
#include "machine.h"
#include "ring.h"

/* hooks.S */
void uni_trace_entry(void);
void uni_trace_entry_any(void);
void uni_trace_exit(void);
void uni_trace_exit_lite(void);
void uni_trace_exit_min(void);
void __x86_return_thunk(void);

/* Called from hooks.S. */
void uni_trace_slow_word(uint32_t upper);
void uni_trace_slow_entry_any(uint64_t function);

static struct uni_trace_hooks hooks;

void uni_trace_slow_word(uint32_t upper)
{
	uni_trace_write(uni_trace_this_cpu(), upper, (void *)0, 0);
}

void uni_trace_slow_entry_any(uint64_t function)
{
	uint64_t word = (uint32_t)function;

	uni_trace_write(uni_trace_this_cpu(), UNI_TRACE_EXT | 1 << 4 | UNI_TRACE_CLASS_ENTRY << 16,
		&word, 1);
}

uint64_t uni_trace_text(void)
{
	return (uint64_t)uni_trace_entry;
}

void uni_trace_machine_init(struct uni_trace_head *h)
{
	static const uint8_t kinds[16] = {
		[UNI_TRACE_EXIT_UNALIGNED] = UNI_TRACE_KIND_EXIT,
		[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT,
		[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY,
		[UNI_TRACE_ENTRY_BRANCH] = UNI_TRACE_KIND_ENTRY,
		[UNI_TRACE_LEAF] = UNI_TRACE_KIND_LEAF,
		[UNI_TRACE_LEAF_BRANCH] = UNI_TRACE_KIND_LEAF,
		[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC,
		[UNI_TRACE_EXT] = UNI_TRACE_KIND_EXT,
	};

	for (unsigned i = 0; i < sizeof(kinds); i++)
		h->kinds[i] = kinds[i];
	hooks.entry = (uint64_t)uni_trace_entry;
	hooks.entry_any = (uint64_t)uni_trace_entry_any;
	hooks.exit = (uint64_t)uni_trace_exit;
	hooks.exit_lite = (uint64_t)uni_trace_exit_lite;
	hooks.exit_min = (uint64_t)uni_trace_exit_min;
	hooks.plain_exit = (uint64_t)__x86_return_thunk;
	h->hooks = (uint64_t)&hooks;
}
