/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Page tables on Xen. PVH guests have them as a machine has. In PV guests they hold machine frames
 * and are mapped read-only wherever they are mapped. Xen writes them on request, if it finds
 * nothing wrong with the entry. A physical address of this lab is then the number of a page among
 * the domain's own (PFN), times its size.
 *
 * The domain builder has mapped LAB_IMAGE_OFFSET + PA for the image, what it put behind it, and at
 * least 512 KiB more. We hang a map of all pages (LAB_LINEAR) into its root and go on from there.
 */
#include "lab.h"
#include "../cpu.h"
#include "xen.h"

#define LINEAR_TABLES_MAX 64 /* of 2 MiB each */
#define SPARE_SIZE	  0x80000ULL
#define REGION_ALIGN	  0x400000ULL

static const uint64_t *machine_frames; /* by PFN; the domain builder's list */
static uint64_t nr_pages;

static const uint64_t *const pfn_of_machine = (const uint64_t *)XEN_PV_MACHINE_TO_PHYS;

uint64_t lab_xen_machine(uint64_t pa)
{
	if (!lab_xen_pv)
		return pa;
	if (pa / LAB_PAGE_SIZE >= nr_pages)
		lab_fail("no page of this domain");
	return machine_frames[pa / LAB_PAGE_SIZE] * LAB_PAGE_SIZE + pa % LAB_PAGE_SIZE;
}

uint64_t lab_table_pa(uint64_t entry)
{
	if (!lab_xen_pv)
		return entry & PTE_ADDR;
	return pfn_of_machine[(entry & PTE_ADDR) / LAB_PAGE_SIZE] * LAB_PAGE_SIZE;
}

static bool set_entry(uint64_t entry_ma, uint64_t value)
{
	struct xen_mmu_update update = { .ptr = entry_ma, .val = value };

	return lab_hypercall(XEN_MMU_UPDATE, (uint64_t)&update, 1, 0, XEN_DOMID_SELF) == 0;
}

static bool remap(uint64_t va, uint64_t value)
{
	return lab_hypercall(XEN_UPDATE_VA_MAPPING, va, value, XEN_UVMF_INVLPG, 0) == 0;
}

bool lab_pte_set(uint64_t *entry, uint64_t value)
{
	uint64_t entry_ma;

	if (!lab_xen_pv) {
		*entry = value;
		return true;
	}
	entry_ma = lab_xen_machine((uint64_t)entry - LAB_LINEAR);
	/* Addresses beyond the domain's pages are passed on unchanged, for Xen to refuse. */
	if ((value & PTE_PRESENT) && (value & PTE_ADDR) / LAB_PAGE_SIZE < nr_pages)
		value = lab_xen_machine(value & PTE_ADDR) | (value & ~PTE_ADDR);
	if (set_entry(entry_ma, value))
		return true;
	if (!set_entry(entry_ma, 0))
		lab_fail("an entry cannot even be cleared");
	return false;
}

uint64_t lab_table_alloc(void)
{
	uint64_t pa = lab_page_alloc(1);

	if (lab_xen_pv && !remap(LAB_LINEAR + pa, lab_xen_machine(pa) | PTE_PRESENT | PTE_NX))
		lab_fail("a page cannot be made a table");
	return pa;
}

void lab_tlb_flush(uint64_t va)
{
	struct xen_mmuext_op op = { .cmd = XEN_MMUEXT_INVLPG_LOCAL, .arg1 = va };

	if (lab_xen_pv)
		lab_hypercall(XEN_MMUEXT_OP, (uint64_t)&op, 1, 0, XEN_DOMID_SELF);
	else
		__asm__ volatile("invlpg (%0)" : : "r"(va) : "memory");
}

/* Tables: one of level 3, one of level 2, then those of level 1; tables and what is one stay ro. */
static void fill_linear(uint64_t tables_pa, unsigned nr_tables, uint64_t old_pa, uint64_t old_end)
{
	uint64_t *l3 = (uint64_t *)(LAB_IMAGE_OFFSET + tables_pa);
	uint64_t *l2 = l3 + 512, *l1 = l2 + 512;
	uint64_t end = tables_pa + nr_tables * LAB_PAGE_SIZE;

	memset(l3, 0, nr_tables * LAB_PAGE_SIZE);
	l3[0] = lab_xen_machine(tables_pa + LAB_PAGE_SIZE) | PTE_PRESENT | PTE_WRITE;
	for (unsigned i = 0; i < nr_tables - 2; i++)
		l2[i] = lab_xen_machine(tables_pa + (2 + i) * LAB_PAGE_SIZE) | PTE_PRESENT |
			PTE_WRITE;
	for (uint64_t pfn = 0; pfn < nr_pages; pfn++) {
		uint64_t pa = pfn * LAB_PAGE_SIZE;
		bool is_table = (pa >= tables_pa && pa < end) || (pa >= old_pa && pa < old_end);

		l1[pfn] = lab_xen_machine(pa) | PTE_PRESENT | PTE_NX | (is_table ? 0 : PTE_WRITE);
	}
}

void lab_xen_memory_init(const struct xen_pv_start_info *info)
{
	uint64_t root_pa = info->pt_base - LAB_IMAGE_OFFSET;
	/* Behind the builder's tables lies its stack, then what is ours. */
	uint64_t old_end = root_pa + info->nr_pt_frames * LAB_PAGE_SIZE;
	uint64_t tables_pa = old_end + LAB_PAGE_SIZE;
	uint64_t region_end = (tables_pa + SPARE_SIZE + REGION_ALIGN - 1) & ~(REGION_ALIGN - 1);
	unsigned nr_tables;

	machine_frames = (const uint64_t *)info->mfn_list;
	nr_pages = info->nr_pages;
	if (nr_pages > LINEAR_TABLES_MAX * 512)
		nr_pages = LINEAR_TABLES_MAX * 512;
	if (nr_pages * LAB_PAGE_SIZE <= region_end)
		lab_fail("out of memory: give the domain 32 MiB");
	nr_tables = 2 + (unsigned)((nr_pages + 511) / 512);
	fill_linear(tables_pa, nr_tables, root_pa, old_end);
	for (unsigned i = 0; i < nr_tables; i++) {
		uint64_t pa = tables_pa + i * LAB_PAGE_SIZE;

		if (!remap(LAB_IMAGE_OFFSET + pa, lab_xen_machine(pa) | PTE_PRESENT | PTE_NX))
			lab_fail("a page cannot be made a table");
	}
	/* There are no large leaves: both maps are one. */
	if (!set_entry(lab_xen_machine(root_pa) + LAB_LINEAR_SLOT * 8,
		    lab_xen_machine(tables_pa) | PTE_PRESENT | PTE_WRITE) ||
		!set_entry(lab_xen_machine(root_pa) + LAB_HUGE_SLOT * 8,
			lab_xen_machine(tables_pa) | PTE_PRESENT | PTE_WRITE))
		lab_fail("the linear map is refused");
	lab_page_alloc_init(region_end, nr_pages * LAB_PAGE_SIZE);
	lab_paging_adopt(root_pa);
}
