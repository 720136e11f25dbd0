/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paging modes of x86 as data: Intel SDM volume 3A chapter 4, tables 4-4 to 4-20. Ignored bits are
 * left out. Reserved bits (those that make the CPU raise a page fault) are checked. A large leaf
 * keeps PAT in bit 12, which is not part of the address.
 */
#include "arch/x86_64/x86_64.h"

#define BITS(hi, lo) ((UINT64_MAX >> (63 - (hi))) & (UINT64_MAX << (lo)))
#define PRESENT	     1ull
#define PS	     (1ull << 7)
#define NX	     (1ull << 63)

#define CR0_PE	   (1ull << 0)
#define CR0_PG	   (1ull << 31)
#define CR4_PSE	   (1ull << 4)
#define CR4_PAE	   (1ull << 5)
#define CR4_LA57   (1ull << 12)
#define EFER_LME   (1ull << 8)
#define EFER_LMA   (1ull << 10)
#define EFER_NXE   (1ull << 11)
#define PHYS_MASK  BITS(51, 0) /* no CPU has more; the guest's CPUID is not available */
#define TABLE_ADDR BITS(51, 12)

/* Tables of 512 entries of 8 bytes. */
#define LEVEL_TABLES(s)                                       \
	{                                                     \
		.shift = (s), .bits = 9, .reserved_table = PS \
	}
#define LEVEL_1G                                                                                 \
	{                                                                                        \
		.shift = 30, .bits = 9, .leaf_allowed = true, .leaf_mask = PS, .leaf_value = PS, \
		.reserved_leaf = BITS(29, 13)                                                    \
	}
#define LEVEL_2M                                                                                 \
	{                                                                                        \
		.shift = 21, .bits = 9, .leaf_allowed = true, .leaf_mask = PS, .leaf_value = PS, \
		.reserved_leaf = BITS(20, 13)                                                    \
	}
#define LEVEL_4K                                             \
	{                                                    \
		.shift = 12, .bits = 9, .leaf_allowed = true \
	}

static const struct uni_pt_geometry unpaged = { .name = "x86 unpaged" };

/* SDM 4.3; without CR4.PSE bit 7 of a PDE is ignored. */
static const struct uni_pt_geometry two_level = {
	.name = "x86 32-bit 2-level",
	.nr_levels = 2,
	.entry_size = 4,
	.present_mask = PRESENT,
	.present_value = PRESENT,
	.table_addr = BITS(31, 12),
	.leaf_addr = BITS(31, 12),
	.level = {
		{ .shift = 22, .bits = 10 },
		{ .shift = 12, .bits = 10, .leaf_allowed = true },
	},
};

/* With 4 MiB leaves, which keep bits 39:32 of the address in bits 20:13 (PSE-36). */
static const struct uni_pt_geometry two_level_pse = {
	.name = "x86 32-bit 2-level with 4 MiB pages",
	.nr_levels = 2,
	.entry_size = 4,
	.present_mask = PRESENT,
	.present_value = PRESENT,
	.table_addr = BITS(31, 12),
	.leaf_addr = BITS(31, 12),
	.level = {
		{ .shift = 22, .bits = 10, .leaf_allowed = true, .leaf_mask = PS,
			.leaf_value = PS, .reserved_leaf = BITS(21, 21),
			.leaf_high = BITS(20, 13), .leaf_high_shift = 32 - 13 },
		{ .shift = 12, .bits = 10, .leaf_allowed = true },
	},
};

/* SDM 4.4; bits 62:52 are reserved everywhere, and more in the four top entries. */
static const struct uni_pt_geometry pae = {
	.name = "x86 PAE",
	.nr_levels = 3,
	.entry_size = 8,
	.present_mask = PRESENT,
	.present_value = PRESENT,
	.table_addr = TABLE_ADDR,
	.leaf_addr = TABLE_ADDR,
	.no_exec = NX,
	.level = {
		{ .shift = 30, .bits = 2,
			.reserved_table = BITS(63, 52) | BITS(8, 5) | BITS(2, 1) },
		{ .shift = 21, .bits = 9, .leaf_allowed = true, .leaf_mask = PS,
			.leaf_value = PS, .reserved_leaf = BITS(62, 52) | BITS(20, 13),
			.reserved_table = BITS(62, 52) },
		{ .shift = 12, .bits = 9, .leaf_allowed = true,
			.reserved_leaf = BITS(62, 52) },
	},
};

/* SDM 4.5; bits 62:52 are ignored, or protection keys. */
static const struct uni_pt_geometry four_level = {
	.name = "x86_64 4-level",
	.nr_levels = 4,
	.entry_size = 8,
	.va_bits = 48,
	.canonical = true,
	.present_mask = PRESENT,
	.present_value = PRESENT,
	.table_addr = TABLE_ADDR,
	.leaf_addr = TABLE_ADDR,
	.no_exec = NX,
	.level = { LEVEL_TABLES(39), LEVEL_1G, LEVEL_2M, LEVEL_4K },
};

static const struct uni_pt_geometry five_level = {
	.name = "x86_64 5-level",
	.nr_levels = 5,
	.entry_size = 8,
	.va_bits = 57,
	.canonical = true,
	.present_mask = PRESENT,
	.present_value = PRESENT,
	.table_addr = TABLE_ADDR,
	.leaf_addr = TABLE_ADDR,
	.no_exec = NX,
	.level = { LEVEL_TABLES(48), LEVEL_TABLES(39), LEVEL_1G, LEVEL_2M, LEVEL_4K },
};

static struct uni_pt_root root_of(const struct uni_pt_geometry *g, uint64_t cr3, uint64_t cr3_mask)
{
	return (struct uni_pt_root){
		.geometry = g, .root = uni_gpa_of(cr3 & cr3_mask), .phys_mask = PHYS_MASK
	};
}

int uni_x86_64_paging(const struct uni_regs *regs, struct uni_pt_root *ret)
{
	uint64_t cr0, cr3, cr4, efer;
	bool long_mode;

	if (!uni_regs_get_sys(regs, UNI_X86_CR0, &cr0))
		return -UNI_EINVAL;
	if ((cr0 & CR0_PG) == 0) {
		*ret = root_of(&unpaged, 0, 0);
		return 0;
	}
	if ((cr0 & CR0_PE) == 0 || !uni_regs_get_sys(regs, UNI_X86_CR3, &cr3) ||
		!uni_regs_get_sys(regs, UNI_X86_CR4, &cr4))
		return -UNI_EINVAL;
	/* If the backend cannot read EFER, assume long mode. */
	if (!uni_regs_get_sys(regs, UNI_X86_EFER, &efer))
		efer = (cr4 & CR4_PAE) != 0 ? EFER_LME | EFER_LMA | EFER_NXE : 0;
	long_mode = (efer & EFER_LMA) != 0;
	if (long_mode && ((cr4 & CR4_PAE) == 0 || (efer & EFER_LME) == 0))
		return -UNI_EINVAL;
	if (!long_mode && (efer & EFER_LME) != 0)
		return -UNI_EINVAL;
	if ((cr4 & CR4_PAE) == 0) {
		*ret = root_of(
			(cr4 & CR4_PSE) != 0 ? &two_level_pse : &two_level, cr3, BITS(31, 12));
		return 0;
	}
	if (!long_mode)
		*ret = root_of(&pae, cr3, BITS(31, 5));
	else
		*ret = root_of((cr4 & CR4_LA57) != 0 ? &five_level : &four_level, cr3, TABLE_ADDR);
	if ((efer & EFER_NXE) == 0)
		ret->reserved = NX;
	return 0;
}
