/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux' notes of threads. A process's core, for unikernels built as processes: threads for vCPUs,
 * virtual memory. And what QEMU's dump-guest-memory writes of an aarch64 guest (target/arm/
 * arch_dump.c): the same notes, of vCPUs, and blocks of RAM, which have physical addresses.
 */
#include <elf.h>

#include "backend/core/file.h"

static int take_thread(struct uni_core_file *f, const struct uni_core_note *n, struct uni_err *err)
{
	bool arm = f->arch == &uni_arch_aarch64;
	struct uni_regs regs;

	if (!(arm ? uni_core_aarch64_prstatus(n->desc, n->size, &regs)
		  : uni_core_x86_64_prstatus(n->desc, n->size, &regs)))
		return uni_err_set(err, UNI_EFORMAT,
			"a thread's note has %zu bytes, which is not Linux on %s", n->size,
			f->arch->name);
	return uni_core_add_vcpu(f, &regs, err);
}

static bool is_guest(
	const struct uni_core_file *f, const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	bool any = false;

	for (uint32_t i = 0; i < e->nr_ph; i++) {
		if (ph[i].type != PT_LOAD)
			continue;
		if (ph[i].paddr == 0 && ph[i].vaddr != 0)
			return false;
		any = true;
	}
	return any && f->arch == &uni_arch_aarch64;
}

int uni_core_parse_process(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	int rc = uni_core_each_note(f, e, ph, "CORE", NT_PRSTATUS, take_thread, &f->nr_vcpus, err);
	bool guest = is_guest(f, e, ph);

	f->kind = guest ? "QEMU dump" : "process core";
	f->space = guest ? UNI_GMEM_PHYSICAL : UNI_GMEM_VIRTUAL;
	for (uint32_t i = 0; rc == 0 && i < e->nr_ph; i++) {
		if (ph[i].type == PT_LOAD)
			rc = uni_core_add_memory(f, e->src, guest ? ph[i].paddr : ph[i].vaddr,
				ph[i].offset, ph[i].file_size, err);
	}
	if (rc == 0)
		uni_core_join_memory(f, false);
	return rc;
}
