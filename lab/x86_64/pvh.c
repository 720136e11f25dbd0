/* SPDX-License-Identifier: BSD-2-Clause */
/* The PVH start info (Xen's public hvm_start_info, version 0 and 1): command line and RAM map. */
#include "lab.h"
#include "cpu.h"

#define START_INFO_MAGIC 0x336ec578U
#define MEMMAP_RAM	 1U

struct start_info {
	uint32_t magic, version, flags, nr_modules;
	uint64_t modlist_pa, cmdline_pa, rsdp_pa;
	/* version 1 */
	uint64_t memmap_pa;
	uint32_t memmap_entries, reserved;
};

struct module {
	uint64_t pa, size, cmdline_pa, reserved;
};

struct memmap_entry {
	uint64_t addr, size;
	uint32_t type, reserved;
};

extern uint64_t lab_start_info;

static void add_range(struct lab_boot_info *info, const struct memmap_entry *e)
{
	const uint64_t limit = 1ULL << 32;
	uint64_t end = e->addr + e->size;

	if (e->type != MEMMAP_RAM || e->addr >= limit || info->nr_ranges == 16)
		return;
	if (end > limit)
		end = limit;
	info->range[info->nr_ranges].start = e->addr;
	info->range[info->nr_ranges++].end = end;
	if (e->addr <= LAB_IMAGE_PA && end > LAB_IMAGE_PA)
		info->ram_end = end;
}

void lab_pvh_read(struct lab_boot_info *ret)
{
	const struct start_info *si = lab_phys(lab_start_info);
	const struct memmap_entry *map;

	memset(ret, 0, sizeof(*ret));
	if (!lab_start_info || si->magic != START_INFO_MAGIC)
		lab_fail("not booted by PVH");
	if (si->cmdline_pa)
		lab_cmdline_init(lab_phys(si->cmdline_pa));
	if (si->version < 1 || !si->memmap_pa)
		lab_fail("the loader gives no RAM map (PVH version 0)");
	map = lab_phys(si->memmap_pa);
	for (uint32_t i = 0; i < si->memmap_entries; i++)
		add_range(ret, &map[i]);
	if (si->nr_modules) {
		const struct module *m = lab_phys(si->modlist_pa);

		ret->module_pa = m->pa;
		ret->module_size = m->size;
	}
	if (!ret->ram_end)
		lab_fail("the image is not in RAM, says the loader");
}
