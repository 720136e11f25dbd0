/* SPDX-License-Identifier: BSD-2-Clause */
/* An interrupt after each instruction: the trap flag (SDM 3B, 18.3.1.4). */
#include "lab.h"
#include "cpu.h"

#define VECTOR_DEBUG 1
#define RFLAGS	     3 /* in the frame that irq.inc lays out */
#define TRAP_FLAG    (1ULL << 8)

static uint64_t left[LAB_MAX_CPUS];
static void (*step_hook)(void);

/* The CPU has cleared the flag for as long as this runs. */
void lab_step_done(uint64_t *frame)
{
	if (left[lab_cpu_id()]-- > 1)
		step_hook();
	else
		frame[RFLAGS] &= ~TRAP_FLAG;
}

void lab_step_each(uint64_t nr, void (*hook)(void))
{
	step_hook = hook;
	left[lab_cpu_id()] = nr;
	lab_set_gate(VECTOR_DEBUG, lab_irq_step, 0);
	__asm__ volatile("pushfq\n\torq %0, (%%rsp)\n\tpopfq" : : "r"(TRAP_FLAG) : "memory", "cc");
}
