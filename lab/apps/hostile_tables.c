/* SPDX-License-Identifier: BSD-2-Clause */
/* Page tables that refer to themselves or change while the guest runs. */
#include "cpu.h"
#include "hostile.h"

#define NR_FRAMES    16
#define SCRATCH	     0xffffd00000000000ULL /* what flips, 2 MiB */
#define RECURSIVE    0xffffd10000000000ULL /* its table serves as a stack */
#define SELF_SLOT    480ULL
#define SELF_BASE    (0xffffULL << 48 | SELF_SLOT << 39)
#define ROOT_BY_SELF (SELF_BASE | SELF_SLOT << 30 | SELF_SLOT << 21 | SELF_SLOT << 12)

static uint64_t table_va; /* a page table, by way of the self-referencing slot */
static uint64_t page_a, page_b;
static uint64_t *pt_entry, *pd_entry, pd_value;

/*
 * Entries that are not present may hold anything even: frames, here. The chain goes up through the
 * table and ends in the root itself, whose entries are no frames.
 */
static void prepare_recursive(void)
{
	uint64_t *self = lab_map_entry(SELF_BASE, 39), *f = lab_map_entry(RECURSIVE, 12);

	if (!lab_pte_set(self, lab_root_pa() | PTE_PRESENT))
		lab_fail("no self-referencing slot is allowed here: leave mode=recursive out");
	table_va = SELF_BASE | (RECURSIVE >> 9 & 0x7ffffffff8);
	for (unsigned i = 0; i < NR_FRAMES; i++) {
		lab_pte_set(&f[2 * i],
			i + 1 < NR_FRAMES ? table_va + (i + 1) * 16 : ROOT_BY_SELF + 256 * 8);
		lab_pte_set(&f[2 * i + 1], hostile_text(i));
	}
	if (*(volatile uint64_t *)table_va != f[0])
		lab_fail("the self-referencing slot does not work");
}

static struct hostile_regs step_recursive(uint64_t turn)
{
	return (struct hostile_regs){ .rbp = table_va };
}

static void prepare_flip(void)
{
	struct frame *f;

	if (page_a) /* two modes share it, and the first leaves a large leaf behind */
		return;
	page_a = lab_page_alloc(1);
	page_b = lab_page_alloc(1);
	f = lab_phys(page_a);
	for (unsigned i = 0; i < NR_FRAMES; i++) {
		f[i].next = i + 1 < NR_FRAMES ? SCRATCH + (i + 1) * sizeof(*f) : 0;
		f[i].ret = hostile_text(i);
	}
	f = lab_phys(page_b);
	f[0].next = SCRATCH;
	f[0].ret = hostile_text(1);
	pt_entry = lab_map_entry(SCRATCH, 12);
	pd_entry = lab_map_entry(SCRATCH, 21);
	pd_value = lab_table_pa(*pd_entry) | PTE_PRESENT | PTE_WRITE;
}

/*
 * In turn: a good chain, a cycle, nothing, no table, and a large leaf over the image's own text. A
 * hypervisor that checks tables turns the last into nothing.
 */
static struct hostile_regs step_flip(uint64_t turn)
{
	lab_pte_set(pd_entry, pd_value);
	switch (turn % 5) {
	case 0:
		lab_pte_set(pt_entry, page_a | PTE_PRESENT | PTE_WRITE);
		break;
	case 1:
		lab_pte_set(pt_entry, page_b | PTE_PRESENT | PTE_WRITE);
		break;
	case 2:
		lab_pte_set(pt_entry, 0);
		break;
	case 3:
		lab_pte_set(pd_entry, 0);
		break;
	default:
		lab_pte_set(pd_entry, LAB_IMAGE_PA | PTE_PRESENT | PTE_LARGE);
	}
	lab_tlb_flush(SCRATCH);
	return (struct hostile_regs){ .rbp = SCRATCH };
}

/* Entries that a walker must not follow: reserved bits, or beyond all memory. */
static struct hostile_regs step_beyond(uint64_t turn)
{
	lab_pte_set(pd_entry, pd_value);
	lab_pte_set(pt_entry, PTE_PRESENT | PTE_WRITE | 0x000ffffffffff000ULL);
	if (turn & 1)
		lab_pte_set(pd_entry, PTE_PRESENT | PTE_WRITE | 0x0000fff000000000ULL);
	lab_tlb_flush(SCRATCH);
	return (struct hostile_regs){ .rbp = SCRATCH };
}

const struct hostile_mode hostile_tables[] = {
	{ "recursive", prepare_recursive, step_recursive },
	{ "flip", prepare_flip, step_flip },
	{ "beyond", prepare_flip, step_beyond },
	{ NULL, NULL, NULL },
};
