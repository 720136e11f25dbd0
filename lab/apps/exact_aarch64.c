/* SPDX-License-Identifier: BSD-2-Clause */
/* exact.c on aarch64. */
#include "lab.h"
#include "cpu.h"
#include "exact_arch.h"

extern char exact_vectors[];

static volatile uint64_t *page_entry;
static uint64_t page_va, page_value;

/* By the page fault's handler. */
void exact_map(void)
{
	*page_entry = page_value;
	__asm__ volatile("dsb ishst\n\tisb" : : : "memory");
}

volatile void *exact_page_prepare(void)
{
	volatile uint64_t *table = lab_phys(lab_read_sysreg(ttbr0_el1) & PTE_ADDR);

	page_va = lab_stack_alloc(1) - LAB_PAGE_SIZE;
	for (unsigned shift = 39; shift > 12; shift -= 9)
		table = lab_phys(table[page_va >> shift & 511] & PTE_ADDR);
	page_entry = &table[page_va >> 12 & 511];
	page_value = *page_entry;
	lab_write_sysreg(vbar_el1, (uint64_t)exact_vectors);
	return (volatile void *)page_va;
}

void exact_page_hide(void)
{
	*page_entry = 0;
	__asm__ volatile("dsb ishst\n\ttlbi vaae1, %0\n\tdsb sy\n\tisb"
			 :
			 : "r"(page_va >> 12)
			 : "memory");
}

volatile void *exact_register(void)
{
	return (char *)lab_phys(LAB_UART_PA) + 0x18;
}

void exact_more(void)
{
}
