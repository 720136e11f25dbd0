/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stage 1 translation at EL1 as data: Arm ARM, D8.2 and D8.3. There are three granules. Each also
 * has a form with 52-bit addresses: FEAT_LPA for 64 KiB (selected by TCR.IPS), FEAT_LPA2 for the
 * others (TCR.DS). Smaller spaces (T0SZ, T1SZ) start at a lower level; mem/as takes care of that.
 * The access flag and permissions are ignored: they do not bind a reader from outside.
 */
#include "arch/aarch64/aarch64.h"

#define BITS(hi, lo) ((UINT64_MAX >> (63 - (hi))) & (UINT64_MAX << (lo)))
#define VALID	     1ull
#define TABLE	     2ull /* else a block; at the last level a page, else nothing */
#define PXN	     (1ull << 53)
#define PXN_TABLE    (1ull << 59)

#define SCTLR_M	     1ull
#define TCR_EPD0     (1ull << 7)
#define TCR_EPD1     (1ull << 23)
#define TCR_TBI0     (1ull << 37)
#define TCR_TBI1     (1ull << 38)
#define TCR_DS	     (1ull << 59)
#define TTBR_ADDR    BITS(47, 1) /* below: CnP; above: ASID */
#define TTBR_ADDR_52 BITS(47, 6) /* bits 5:2 are 51:48 of the address */
#define VA_BITS_MIN  16
#define VA_BITS_MAX  52
#define VA_BITS_DEF  48

/* A level without blocks refuses them: their valid bit counts as reserved. */
#define LEVEL_TABLES(s, b)                                                           \
	{                                                                            \
		.shift = (s), .bits = (b), .leaf_allowed = true, .leaf_mask = TABLE, \
		.reserved_leaf = VALID                                               \
	}
#define LEVEL_BLOCKS(s, b, high, by)                                                 \
	{                                                                            \
		.shift = (s), .bits = (b), .leaf_allowed = true, .leaf_mask = TABLE, \
		.leaf_high = (high), .leaf_high_shift = (by)                         \
	}
#define LEVEL_PAGES(s, b, high, by)                                                  \
	{                                                                            \
		.shift = (s), .bits = (b), .leaf_allowed = true, .leaf_mask = TABLE, \
		.leaf_value = TABLE, .leaf_high = (high), .leaf_high_shift = (by)    \
	}
#define GEOMETRY(text, levels, va, addr)                                                          \
	.name = (text), .nr_levels = (levels), .entry_size = 8, .va_bits = (va),                  \
	.present_mask = VALID, .present_value = VALID, .table_addr = (addr), .leaf_addr = (addr), \
	.no_exec_leaf = PXN, .no_exec_table = PXN_TABLE

static const struct uni_pt_geometry unpaged = { .name = "aarch64 unpaged", .va_bits = 52 };

/* A half without tables: nothing is ever mapped in it. */
static const struct uni_pt_geometry unused = {
	.name = "aarch64 unused half",
	.nr_levels = 1,
	.entry_size = 8,
	.va_bits = 48,
	.present_value = VALID, /* a mask of no bits: never true */
	.level = { { .shift = 47, .bits = 1 } },
};

static const struct uni_pt_geometry granule_4k = {
	GEOMETRY("aarch64 4 KiB granule", 4, 48, BITS(47, 12)),
	.level = { LEVEL_TABLES(39, 9), LEVEL_BLOCKS(30, 9, 0, 0), LEVEL_BLOCKS(21, 9, 0, 0),
		LEVEL_PAGES(12, 9, 0, 0) },
};

static const struct uni_pt_geometry granule_16k = {
	GEOMETRY("aarch64 16 KiB granule", 4, 48, BITS(47, 14)),
	.level = { LEVEL_TABLES(47, 5), LEVEL_TABLES(36, 11), LEVEL_BLOCKS(25, 11, 0, 0),
		LEVEL_PAGES(14, 11, 0, 0) },
};

static const struct uni_pt_geometry granule_64k = {
	GEOMETRY("aarch64 64 KiB granule", 3, 52, BITS(47, 16)),
	.level = { LEVEL_TABLES(42, 10), LEVEL_BLOCKS(29, 13, 0, 0), LEVEL_PAGES(16, 13, 0, 0) },
};

/* Bits 9:8 are 51:50 of the address. */
static const struct uni_pt_geometry granule_4k_52 = {
	GEOMETRY("aarch64 4 KiB granule, 52 bits", 5, 52, BITS(49, 12)),
	.table_high = BITS(9, 8),
	.table_high_shift = 42,
	.level = { LEVEL_TABLES(48, 4), LEVEL_BLOCKS(39, 9, BITS(9, 8), 42),
		LEVEL_BLOCKS(30, 9, BITS(9, 8), 42), LEVEL_BLOCKS(21, 9, BITS(9, 8), 42),
		LEVEL_PAGES(12, 9, BITS(9, 8), 42) },
};

static const struct uni_pt_geometry granule_16k_52 = {
	GEOMETRY("aarch64 16 KiB granule, 52 bits", 4, 52, BITS(49, 14)),
	.table_high = BITS(9, 8),
	.table_high_shift = 42,
	.level = { LEVEL_TABLES(47, 5), LEVEL_BLOCKS(36, 11, BITS(9, 8), 42),
		LEVEL_BLOCKS(25, 11, BITS(9, 8), 42), LEVEL_PAGES(14, 11, BITS(9, 8), 42) },
};

/* Bits 15:12 are 51:48 of the address. */
static const struct uni_pt_geometry granule_64k_52 = {
	GEOMETRY("aarch64 64 KiB granule, 52 bits", 3, 52, BITS(47, 16)),
	.table_high = BITS(15, 12),
	.table_high_shift = 36,
	.level = { LEVEL_BLOCKS(42, 10, BITS(15, 12), 36), LEVEL_BLOCKS(29, 13, BITS(15, 12), 36),
		LEVEL_PAGES(16, 13, BITS(15, 12), 36) },
};

enum granule { KIB_4, KIB_16, KIB_64, GRANULE_NONE };

/* TCR.TG0 and TCR.TG1 number the granules differently. */
static enum granule granule_of(uint64_t tcr, bool high)
{
	static const uint8_t tg0[] = { KIB_4, KIB_64, KIB_16, GRANULE_NONE };
	static const uint8_t tg1[] = { GRANULE_NONE, KIB_16, KIB_4, KIB_64 };

	return (enum granule)(high ? tg1[tcr >> 30 & 3] : tg0[tcr >> 14 & 3]);
}

/* Bits of physical addresses (TCR.IPS). */
static unsigned phys_bits(uint64_t tcr)
{
	static const uint8_t bits[] = { 32, 36, 40, 42, 44, 48, 52, 52 };

	return bits[tcr >> 32 & 7];
}

static unsigned va_bits_of(uint64_t tcr, bool high)
{
	return 64 - (unsigned)(tcr >> (high ? 16 : 0) & 63);
}

unsigned uni_aarch64_va_bits(const struct uni_regs *regs, uint64_t va)
{
	uint64_t tcr;
	unsigned bits;

	if (!uni_regs_get_sys(regs, UNI_A64_TCR, &tcr))
		return VA_BITS_DEF;
	bits = va_bits_of(tcr, (va >> 55 & 1) != 0);
	return bits >= VA_BITS_MIN && bits <= VA_BITS_MAX ? bits : VA_BITS_DEF;
}

struct half {
	const struct uni_pt_geometry *geometry;
	uint64_t table;
	uint8_t va_bits;
	bool ignore_top;
};

static struct half half_of(uint64_t tcr, uint64_t ttbr, bool high)
{
	static const struct uni_pt_geometry *const narrow[] = { &granule_4k, &granule_16k,
		&granule_64k };
	static const struct uni_pt_geometry *const wide[] = { &granule_4k_52, &granule_16k_52,
		&granule_64k_52 };
	enum granule g = granule_of(tcr, high);
	unsigned bits = va_bits_of(tcr, high);
	struct half h = { .geometry = &unused,
		.ignore_top = (tcr & (high ? TCR_TBI1 : TCR_TBI0)) != 0 };
	bool is_wide = g == KIB_64 ? phys_bits(tcr) == 52 : (tcr & TCR_DS) != 0;

	if (g == GRANULE_NONE || (tcr & (high ? TCR_EPD1 : TCR_EPD0)) != 0)
		return h;
	if (bits < VA_BITS_MIN || bits > (is_wide ? wide[g] : narrow[g])->va_bits)
		return h;
	h.geometry = is_wide ? wide[g] : narrow[g];
	h.va_bits = (uint8_t)bits;
	h.table = ttbr & TTBR_ADDR;
	if (is_wide && phys_bits(tcr) == 52)
		h.table = (ttbr & TTBR_ADDR_52) | (ttbr & BITS(5, 2)) << 46;
	return h;
}

int uni_aarch64_paging(const struct uni_regs *regs, struct uni_pt_root *ret)
{
	uint64_t sctlr, tcr, ttbr0, ttbr1, pstate;
	struct half low, high;

	/* At EL2 and EL3 other registers would be in force, which no stub provides. */
	if (uni_regs_get_sys(regs, UNI_A64_PSTATE, &pstate) && (pstate >> 2 & 3) > 1)
		return -UNI_EINVAL;
	if (!uni_regs_get_sys(regs, UNI_A64_SCTLR, &sctlr))
		return -UNI_EINVAL;
	if ((sctlr & SCTLR_M) == 0) {
		*ret = (struct uni_pt_root){ .geometry = &unpaged, .phys_mask = BITS(51, 0) };
		return 0;
	}
	if (!uni_regs_get_sys(regs, UNI_A64_TCR, &tcr) ||
		!uni_regs_get_sys(regs, UNI_A64_TTBR0, &ttbr0) ||
		!uni_regs_get_sys(regs, UNI_A64_TTBR1, &ttbr1))
		return -UNI_EINVAL;
	low = half_of(tcr, ttbr0, false);
	high = half_of(tcr, ttbr1, true);
	*ret = (struct uni_pt_root){
		.geometry = low.geometry,
		.root = uni_gpa_of(low.table),
		.va_bits = low.va_bits,
		.ignore_top = low.ignore_top,
		.geometry_high = high.geometry,
		.root_high = uni_gpa_of(high.table),
		.va_bits_high = high.va_bits,
		.ignore_top_high = high.ignore_top,
		.phys_mask = UINT64_MAX >> (64 - phys_bits(tcr)),
	};
	return 0;
}
