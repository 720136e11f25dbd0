/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of QEMU's dump-guest-memory for an aarch64 guest (target/arm/arch_dump.c): Linux'
 * notes for vCPUs, and blocks of RAM with physical addresses.
 */
#include <elf.h>

#include "backend/core/file.h"

static bool is_guest(
	struct uni_core_file *f, const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	bool any = false;

	for (uint32_t i = 0; i < e->nr_ph; i++) {
		if (ph[i].type != PT_LOAD)
			continue;
		if (ph[i].paddr == 0 && ph[i].vaddr != 0)
			return false;
		any = true;
	}
	return any && f->ops->qemu_notes;
}

static int open_guest(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	return uni_core_read_notes(f, e, ph, true, err);
}

extern const struct uni_core_format uni_core_qemu_notes;
const struct uni_core_format uni_core_qemu_notes = { .sniff = is_guest, .open = open_guest };
