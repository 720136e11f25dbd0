/* SPDX-License-Identifier: BSD-2-Clause */
/* IDT, TSS, and what happens when something goes wrong. */
#include "lab.h"
#include "cpu.h"

#define NR_GATES     256
#define IST_STACK    8192
#define GATE_PRESENT 0x8e00ULL /* interrupt gate, ring 0 */
#define TSS_SIZE     104

struct gate {
	uint64_t lo, hi;
};

struct tss {
	uint32_t reserved0;
	uint64_t rsp[3];
	uint64_t reserved1;
	uint64_t ist[7];
	uint64_t reserved2;
	uint32_t iomap;
} __attribute__((packed));

_Static_assert(sizeof(struct tss) == TSS_SIZE, "layout");

struct table_ptr {
	uint16_t limit;
	uint64_t base;
} __attribute__((packed));

extern char lab_trap_entries[];
extern uint64_t lab_gdt[];
void lab_irq_timer(void);
void lab_irq_spurious(void);

static struct gate idt[NR_GATES] __attribute__((aligned(16)));
static struct tss tss[LAB_MAX_CPUS] __attribute__((aligned(16)));
static char ist_stack[LAB_MAX_CPUS][IST_STACK] __attribute__((aligned(16)));

static void set_gate(unsigned vector, uint64_t entry, unsigned ist)
{
	idt[vector].lo = (entry & 0xffff) | LAB_SEL_CODE << 16 | (uint64_t)ist << 32 |
			 GATE_PRESENT << 32 | (entry >> 16 & 0xffff) << 48;
	idt[vector].hi = entry >> 32;
}

void lab_set_gate(unsigned vector, void (*entry)(void), unsigned ist)
{
	set_gate(vector, (uint64_t)entry, ist);
}

void lab_trap_init(void)
{
	for (unsigned v = 0; v < 32; v++)
		set_gate(v, (uint64_t)lab_trap_entries + 16 * v, 1);
	for (unsigned v = 32; v < NR_GATES; v++)
		lab_set_gate(v, lab_irq_spurious, 0);
	lab_set_gate(32, lab_irq_timer, 0);
}

void lab_trap_init_cpu(unsigned cpu)
{
	uint64_t base = (uint64_t)&tss[cpu];
	uint64_t *desc = &lab_gdt[(LAB_SEL_TSS + 16 * cpu) / 8];
	struct table_ptr ptr = { .limit = sizeof(idt) - 1, .base = (uint64_t)idt };

	tss[cpu].ist[0] = (uint64_t)ist_stack[cpu] + IST_STACK;
	tss[cpu].iomap = (uint32_t)TSS_SIZE << 16;
	desc[0] = (TSS_SIZE - 1) | (base & 0xffffff) << 16 | 0x89ULL << 40 |
		  (base >> 24 & 0xff) << 56;
	desc[1] = base >> 32;
	__asm__ volatile("ltr %w0" : : "r"(LAB_SEL_TSS + 16 * cpu));
	__asm__ volatile("lidt %0" : : "m"(ptr));
}

/* For images without such a port, stepping or sampling. */
__attribute__((weak)) void lab_port_irq(void)
{
}

__attribute__((weak)) void lab_step_done(uint64_t *frame)
{
}

__attribute__((weak)) void lab_tick_other(const uint64_t *frame)
{
}

void lab_trap(const struct lab_trap_frame *f)
{
	lab_printf("\nlab: TRAP vector %lu error %lx rip %lx rsp %lx cr2 %lx\n", f->vector,
		f->error, f->rip, f->rsp, lab_read_cr2());
	lab_exit(LAB_EXIT_TRAP + (unsigned)f->vector);
}
