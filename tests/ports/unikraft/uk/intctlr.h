/* SPDX-License-Identifier: BSD-2-Clause */
/* Stands in for Unikraft: what the port uses. */
#include <uk/essentials.h>
struct __regs {
	unsigned long rip, rsp, rbp;
};
struct uk_intctlr_event_irq_data {
	struct __regs *regs;
	unsigned long irq;
};
int uk_intctlr_irq_register(unsigned irq, int (*handler)(void *), void *arg);
