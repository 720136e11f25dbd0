/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page tables that a profiler has to walk: 4 KiB granule, both halves of the space, pages and
 * blocks of both sizes. Physical pages of stacks lie in reversed order; there is no identity map.
 */
#include "lab.h"
#include "cpu.h"

#define NORMAL (PTE_NORMAL | PTE_SHARED | PTE_UXN)
#define DATA   (NORMAL | PTE_PXN)

extern char lab_text_start[], lab_text_end[], lab_data_start[], lab_image_end[];

static uint64_t next_free_pa, free_end_pa;
static uint64_t low_root, high_root; /* TTBR0, TTBR1 */
static unsigned nr_stacks;

uint64_t lab_page_alloc(unsigned nr)
{
	uint64_t pa = next_free_pa;

	if (nr * LAB_PAGE_SIZE > free_end_pa - pa)
		lab_fail("out of memory: boot with more than -m 32");
	next_free_pa += nr * LAB_PAGE_SIZE;
	memset(lab_phys(pa), 0, nr * LAB_PAGE_SIZE);
	return pa;
}

void lab_page_alloc_init(uint64_t ram_end)
{
	const uint64_t reach = LAB_RAM_PA + (1ULL << 30); /* of the boot tables */

	next_free_pa = (uint64_t)lab_image_end - LAB_IMAGE_OFFSET;
	free_end_pa = ram_end < reach ? ram_end : reach;
}

/* Maps one leaf; size_shift is 12, 21 or 30. */
static void map(uint64_t va, uint64_t pa, uint64_t flags, unsigned size_shift)
{
	uint64_t *table = lab_phys(va >> 63 ? high_root : low_root);

	for (unsigned shift = 39; shift > size_shift; shift -= 9) {
		uint64_t *entry = &table[(va >> shift) & 511];

		if (!(*entry & PTE_VALID))
			*entry = lab_page_alloc(1) | PTE_TABLE | PTE_VALID;
		else if (!(*entry & PTE_TABLE))
			lab_fail("a block is in the way");
		table = lab_phys(*entry & PTE_ADDR);
	}
	table[(va >> size_shift) & 511] =
		pa | flags | PTE_AF | PTE_VALID | (size_shift == 12 ? PTE_TABLE : 0);
}

static void map_image(void)
{
	for (uint64_t va = (uint64_t)lab_text_start; va < (uint64_t)lab_image_end;
		va += LAB_PAGE_SIZE) {
		uint64_t flags = NORMAL;

		if (va >= (uint64_t)lab_text_end)
			flags |= PTE_PXN;
		if (va < (uint64_t)lab_data_start)
			flags |= PTE_RO;
		map(va, va - LAB_IMAGE_OFFSET, flags, 12);
	}
}

static void map_ram(uint64_t ram_end, uint64_t base, unsigned size_shift)
{
	for (uint64_t pa = LAB_RAM_PA; pa < ram_end; pa += 1ULL << size_shift)
		map(base + pa, pa, DATA, size_shift);
}

static void map_device(uint64_t pa)
{
	map(LAB_LINEAR + pa, pa, PTE_DEVICE | PTE_PXN | PTE_UXN, 12);
}

void lab_paging_load(void)
{
	__asm__ volatile("dsb ishst");
	lab_write_sysreg(ttbr0_el1, low_root);
	lab_write_sysreg(ttbr1_el1, high_root);
	__asm__ volatile("tlbi vmalle1\n\tdsb sy\n\tisb" : : : "memory");
}

void lab_paging_init(uint64_t ram_end)
{
	low_root = lab_page_alloc(1);
	high_root = lab_page_alloc(1);
	map_image();
	map_ram(ram_end, LAB_LINEAR, 21);
	map_ram(ram_end, LAB_HUGE, 30);
	map_device(LAB_GICD_PA);
	map_device(LAB_GICC_PA);
	map_device(LAB_UART_PA);
	lab_paging_load();
	lab_truth.cr3 = high_root;
}

void *lab_linear_alloc(unsigned nr)
{
	return lab_phys(lab_page_alloc(nr));
}

uint64_t lab_stack_alloc(unsigned nr_pages)
{
	/* The guard below; the one above is what is left of the stride. */
	uint64_t base = LAB_STACKS + (LAB_MAX_STACKS - ++nr_stacks) * (uint64_t)LAB_STACK_STRIDE +
			LAB_PAGE_SIZE;
	uint64_t pa = lab_page_alloc(nr_pages);

	if ((nr_pages + 2) * LAB_PAGE_SIZE > LAB_STACK_STRIDE)
		lab_fail("stack too large");
	if (nr_stacks > LAB_MAX_STACKS)
		lab_fail("too many stacks");
	for (unsigned i = 0; i < nr_pages; i++)
		map(base + i * LAB_PAGE_SIZE, pa + (nr_pages - 1 - i) * LAB_PAGE_SIZE, DATA, 12);
	__asm__ volatile("dsb ishst\n\tisb" : : : "memory");
	return base + nr_pages * LAB_PAGE_SIZE;
}
