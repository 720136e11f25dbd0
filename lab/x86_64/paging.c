/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page tables a profiler has to walk: no identity map, leaves of all sizes, stacks whose
 * physical pages lie in reversed order. README.md draws the map.
 */
#include "lab.h"
#include "cpu.h"

extern char lab_text_start[], lab_text_end[], lab_data_start[], lab_image_end[];

uint64_t lab_boot_cr3;
static uint64_t next_free_pa, free_end_pa;
static uint64_t root_pa;
static bool has_nx, has_huge, is_adopted;
static unsigned nr_stacks;

/* VA - PA of the image: LAB_IMAGE_OFFSET, unless it has moved. */
static uint64_t lab_image_offset(void)
{
	return (uint64_t)lab_text_start - LAB_IMAGE_PA;
}

uint64_t lab_page_alloc(unsigned nr)
{
	uint64_t pa = next_free_pa;

	if (nr * LAB_PAGE_SIZE > free_end_pa - pa)
		lab_fail("out of memory: boot with more than -m 32");
	next_free_pa += nr * LAB_PAGE_SIZE;
	/* It is zero after power-on. `wide` relies on that: a KVM that emulates would take a minute
	 * to clear the rings of 255 vCPUs. */
#ifndef LAB_RAM_IS_ZERO
	memset(lab_phys(pa), 0, nr * LAB_PAGE_SIZE);
#endif
	return pa;
}

void lab_page_alloc_init(uint64_t start, uint64_t end)
{
	next_free_pa = start;
	free_end_pa = end;
}

void *lab_linear_ram(uint64_t *size_ret)
{
	*size_ret = free_end_pa;
	return lab_phys(0);
}

void lab_page_alloc_behind_image(const struct lab_boot_info *info)
{
	/* The boot tables reach 1 GiB; all we need is far below. */
	lab_page_alloc_init((uint64_t)lab_image_end - lab_image_offset(),
		info->ram_end < (1ULL << 30) ? info->ram_end : 1ULL << 30);
}

uint64_t *lab_map_entry(uint64_t va, unsigned size_shift)
{
	uint64_t *table = lab_phys(root_pa);

	for (unsigned shift = 39; shift > size_shift; shift -= 9) {
		uint64_t *entry = &table[(va >> shift) & 511];

		if (!(*entry & PTE_PRESENT))
			lab_pte_set(entry, lab_table_alloc() | PTE_WRITE | PTE_PRESENT);
		else if (*entry & PTE_LARGE)
			lab_fail("a large leaf is in the way");
		table = lab_phys(lab_table_pa(*entry));
	}
	return &table[(va >> size_shift) & 511];
}

void lab_map(uint64_t va, uint64_t pa, uint64_t flags, unsigned size_shift)
{
	if (size_shift > 12)
		flags |= PTE_LARGE;
	if (!has_nx)
		flags &= ~PTE_NX;
	if (!lab_pte_set(lab_map_entry(va, size_shift), pa | flags | PTE_PRESENT))
		lab_fail("a page cannot be mapped");
}

static void map_image(void)
{
	uint64_t va = (uint64_t)lab_text_start;

	for (; va < (uint64_t)lab_image_end; va += LAB_PAGE_SIZE) {
		uint64_t flags = 0;

		if (va >= (uint64_t)lab_text_end)
			flags |= PTE_NX;
		if (va >= (uint64_t)lab_data_start)
			flags |= PTE_WRITE;
		lab_map(va, va - lab_image_offset(), flags, 12);
	}
}

/* All leaves of that size that touch RAM. */
static void map_ram(const struct lab_boot_info *info, uint64_t base, unsigned size_shift)
{
	for (unsigned i = 0; i < info->nr_ranges; i++) {
		uint64_t pa = info->range[i].start >> size_shift << size_shift;

		for (; pa < info->range[i].end; pa += 1ULL << size_shift)
			lab_map(base + pa, pa, PTE_WRITE | PTE_NX, size_shift);
	}
}

bool lab_has_huge(void)
{
	return has_huge;
}

static void look_at_cpu(void)
{
	uint32_t a, b, c, d;

	lab_cpuid(0x80000001, &a, &b, &c, &d);
	has_nx = d >> 20 & 1;
	has_huge = d >> 26 & 1;
}

/* Runs on each vCPU before it loads the tables: NX is a reserved bit otherwise. */
static void enable_nx(void)
{
	if (has_nx)
		lab_wrmsr(MSR_EFER, lab_rdmsr(MSR_EFER) | 0x800);
}

void lab_paging_load(void)
{
	if (is_adopted) /* they are on it, all of them */
		return;
	enable_nx();
	lab_write_cr3(root_pa);
}

void lab_paging_init(const struct lab_boot_info *info)
{
	lab_boot_cr3 = lab_read_cr3();
	look_at_cpu();
	root_pa = lab_page_alloc(1);
	map_image();
	map_ram(info, LAB_LINEAR, 21);
	map_ram(info, LAB_HUGE, has_huge ? 30 : 21);
	lab_map(LAB_APIC, LAB_APIC_PA, PTE_WRITE | PTE_NX | PTE_PCD | PTE_PWT, 12);
	lab_paging_load();
	lab_truth.cr3 = root_pa;
}

void lab_paging_adopt(uint64_t pa)
{
	look_at_cpu();
	root_pa = pa;
	is_adopted = true;
	map_image();
}

uint64_t lab_root_pa(void)
{
	return root_pa;
}

void *lab_linear_alloc(unsigned nr)
{
	return lab_phys(lab_page_alloc(nr));
}

uint64_t lab_stack_alloc(unsigned nr_pages)
{
	/* From the top down: lab_on_stack() then leads from a higher to a lower one, as calls do.
	 */
	uint64_t base = LAB_STACKS + (LAB_MAX_STACKS - ++nr_stacks) * (uint64_t)LAB_STACK_STRIDE;
	uint64_t pa = lab_page_alloc(nr_pages);

	base += LAB_PAGE_SIZE; /* the guard below; the one above is what is left of the stride */
	if ((nr_pages + 2) * LAB_PAGE_SIZE > LAB_STACK_STRIDE)
		lab_fail("stack too large");
	if (nr_stacks > LAB_MAX_STACKS)
		lab_fail("too many stacks");
	for (unsigned i = 0; i < nr_pages; i++)
		lab_map(base + i * LAB_PAGE_SIZE, pa + (nr_pages - 1 - i) * LAB_PAGE_SIZE,
			PTE_WRITE | PTE_NX, 12);
	return base + nr_pages * LAB_PAGE_SIZE;
}
