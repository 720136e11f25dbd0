/* SPDX-License-Identifier: BSD-2-Clause */
/* Page tables as the CPU has them: plain memory. */
#include "cpu.h"

uint64_t lab_table_alloc(void)
{
	return lab_page_alloc(1);
}

uint64_t lab_table_pa(uint64_t entry)
{
	return entry & PTE_ADDR;
}

bool lab_pte_set(uint64_t *entry, uint64_t value)
{
	*entry = value;
	return true;
}

void lab_tlb_flush(uint64_t va)
{
	__asm__ volatile("invlpg (%0)" : : "r"(va) : "memory");
}
