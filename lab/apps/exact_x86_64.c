/* SPDX-License-Identifier: BSD-2-Clause */
/* exact.c on x86_64. */
#include "lab.h"
#include "cpu.h"
#include "exact_arch.h"

#define PAGE_VA 0xffffffffc0003000

void exact_split(uint64_t turns); /* 5 instructions a turn, and 2 */

static uint64_t *page_entry;
static uint64_t page_value;

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

void exact_more(void)
{
	exact_split(1000);
}
