/* SPDX-License-Identifier: BSD-2-Clause */
/* This CPU's tracer state, for C. The assembly has the same in x86_64/hooks.S. */
#ifndef UNI_GUEST_CPU_H
#define UNI_GUEST_CPU_H

#include "uniscope/trace_abi.h"

#define UNI_NOTRACE __attribute__((no_instrument_function))

#define UNI_STR_(x) #x
#define UNI_STR(x)  UNI_STR_(x)

#ifdef UNI_TRACE_GS
static inline struct uni_trace_cpu *uni_trace_this_cpu(void)
{
	struct uni_trace_cpu *c;

	__asm__ volatile("movq %%gs:" UNI_STR(UNI_TRACE_GS) "+24, %0" : "=r"(c));
	return c;
}
#else
extern struct uni_trace_cpu uni_trace_cpu0;

static inline struct uni_trace_cpu *uni_trace_this_cpu(void)
{
	return &uni_trace_cpu0;
}
#endif

#endif
