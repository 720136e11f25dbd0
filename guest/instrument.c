/* SPDX-License-Identifier: BSD-2-Clause */
/* For toolchains that know no other way: -finstrument-functions calls these two at each function's
 * start and end. They are always compiled in; the guest can only clear control.enable. Inlined
 * functions are traced as well. Modes, minimum duration and depth are those of the control. */
#include "uniscope/trace.h"

#include "cpu.h"
#include "ring.h"

void uni_trace_exit_any(void); /* hooks.S */

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

/* As the hooks count it. */
static int too_deep(void)
{
	const struct uni_trace_control *control = &uni_trace_head.control;
	struct uni_trace_cpu *c = uni_trace_this_cpu();

	if (!control->max_depth)
		return 0;
	if (c->run != control->run) {
		c->depth = 0;
		c->run = control->run;
	}
	return ++c->depth > control->max_depth;
}

UNI_NOTRACE void __cyg_profile_func_enter(void *function, void *caller)
{
	uint64_t word = (uint32_t)(uint64_t)function;
	uint32_t mode = uni_trace_head.control.mode;
	int only = UNI_TRACE_ENTRIES_ONLY(mode);

	if (!uni_trace_head.control.enable || too_deep())
		return;
	if (mode == UNI_TRACE_CALLERS) {
		if ((uint64_t)caller >> 32 == (uint64_t)function >> 32)
			word |= (uint64_t)(((uint32_t)(uint64_t)caller - 1) & ~1u) << 32;
		uni_trace_write(uni_trace_this_cpu(), UNI_TRACE_CALL_FIRST, &word, 1);
	} else if ((word & 15) == 0)
		uni_trace_write(uni_trace_this_cpu(),
			word | (only ? UNI_TRACE_CALL : UNI_TRACE_ENTRY), (void *)0, 0);
	else {
		word |= only ? 0 : (uint64_t)UNI_TRACE_ODD_ENTRY << 32;
		uni_trace_write(uni_trace_this_cpu(),
			UNI_TRACE_EXT | 1 << 4 |
				(only ? UNI_TRACE_CLASS_CALL : UNI_TRACE_CLASS_ENTRY) << 16,
			&word, 1);
	}
}

UNI_NOTRACE void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
	uni_trace_exit_any();
}
