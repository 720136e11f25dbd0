/* SPDX-License-Identifier: BSD-2-Clause */
/* exact.c on x86_64. */
#include "lab.h"
#include "lab_thread.h"
#include "cpu.h"
#include "exact_arch.h"

#define PAGE_VA	 0xffffffffc0003000
#define LATE_VA	 0xffffffffc0008000 /* stacks; all others are lower */
#define LOWER_VA 0xffffffffc0006000

#define VECTOR	  64
#define SELF	  0x40000	      /* the APIC's command: to this CPU */
#define WRITE_ANY (UINT64_C(1) << 16) /* of CR0, if it is 0 */

void exact_split(uint64_t turns);   /* 5 instructions a turn, and 2 */
void exact_patched(uint64_t turns); /* 5 instructions a turn, and 4 */
void exact_hook(void);
void exact_late(volatile uint32_t *apic, uint32_t command);
void exact_interrupt(void);
void exact_called(void);
void exact_served(void);
void lab_switch(struct lab_thread *from, struct lab_thread *to);
void lab_thread_entry(void);

static uint64_t *page_entry;
static uint64_t page_value;
static struct lab_thread higher, lower;

/* By the page fault's handler. */
void exact_map(void)
{
	lab_pte_set(page_entry, page_value);
}

volatile void *exact_page_prepare(void)
{
	lab_map(PAGE_VA, (uint64_t)lab_page_alloc(1), PTE_WRITE | PTE_NX, 12);
	page_entry = lab_map_entry(PAGE_VA, 12);
	page_value = *page_entry;
	lab_set_gate(14, exact_page_fault, 1);
	return (volatile void *)PAGE_VA;
}

void exact_page_hide(void)
{
	lab_pte_set(page_entry, 0);
	lab_tlb_flush(PAGE_VA);
}

volatile void *exact_register(void)
{
	return (volatile void *)(LAB_APIC + 0x20);
}

static volatile uint32_t *apic_reg(unsigned offset)
{
	return (volatile uint32_t *)(LAB_APIC + offset);
}

LAB_FUNC static void acknowledge(void)
{
	*apic_reg(0xb0) = 0;
}

/* By the interrupt's handler, which has a stack of its own. */
void exact_served(void)
{
	acknowledge();
	__asm__ volatile("");
}

/* As a tracer switches a function on. */
static void patch(void)
{
	union {
		uint64_t word;
		uint8_t byte[8];
	} code = { .word = *(volatile uint64_t *)exact_patched };
	uint32_t to = (uint32_t)((uint64_t)exact_hook - (uint64_t)exact_patched - 5);
	uint64_t cr0;

	code.byte[0] = 0xe8;
	for (unsigned i = 0; i < 4; i++)
		code.byte[1 + i] = (uint8_t)(to >> 8 * i);
	__asm__ volatile("mov %%cr0, %0" : "=r"(cr0));
	__asm__ volatile("mov %0, %%cr0" : : "r"(cr0 & ~WRITE_ANY) : "memory");
	*(volatile uint64_t *)exact_patched = code.word;
	__asm__ volatile("mov %0, %%cr0" : : "r"(cr0) : "memory");
}

static uint64_t stack_at(uint64_t va)
{
	lab_map(va, (uint64_t)lab_page_alloc(1), PTE_WRITE | PTE_NX, 12);
	__asm__("" : "+r"(va));
	return va + LAB_PAGE_SIZE;
}

LAB_FUNC static void exact_lower(void *arg)
{
	lab_switch(&lower, arg);
}

LAB_FUNC static void exact_higher(void *arg)
{
	exact_late(apic_reg(0x300), SELF | VECTOR);
	lab_switch(&higher, arg);
	exact_called();
	lab_switch(&higher, arg);
}

/* The second thread's stack lies between the first one's and that of the handler. */
static void interrupt_threads(void)
{
	static struct lab_thread self;

	higher.saved_rsp =
		lab_first_frame(stack_at(LATE_VA), lab_thread_entry, exact_higher, &self);
	lower.saved_rsp = lab_first_frame(stack_at(LOWER_VA), lab_thread_entry, exact_lower, &self);
	lab_switch(&self, &higher);
	lab_switch(&self, &lower);
	lab_switch(&self, &higher);
}

void exact_more(void)
{
	exact_split(1000);
	exact_patched(10);
	patch();
	exact_patched(20);
	lab_outb(0x21, 0xff); /* interrupts of the firmware's devices */
	lab_outb(0xa1, 0xff);
	*apic_reg(0xf0) = 0x1ff;
	lab_set_gate(VECTOR, exact_interrupt, 1);
	interrupt_threads();
	exact_late(apic_reg(0x300), SELF | VECTOR);
}
