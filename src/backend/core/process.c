/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linux' notes of threads: the core of a process, for unikernels built as processes. Threads count
 * as vCPUs; memory is virtual.
 */
#include <elf.h>

#include "backend/core/file.h"

static int take_thread(struct uni_core_file *f, const struct uni_core_note *n, struct uni_err *err)
{
	struct uni_regs regs;

	if (!f->ops->prstatus(n->desc, n->size, &regs))
		return uni_err_set(err, UNI_EFORMAT,
			"a thread's note has %zu bytes, which is not Linux on %s", n->size,
			f->arch->name);
	return uni_core_add_vcpu(f, &regs, err);
}

int uni_core_read_notes(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, bool guest, struct uni_err *err)
{
	int rc = uni_core_each_note(f, e, ph, "CORE", NT_PRSTATUS, take_thread, &f->nr_vcpus, err);

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

static bool is_any(
	struct uni_core_file *f, const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	return true;
}

static int open_process(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	return uni_core_read_notes(f, e, ph, false, err);
}

extern const struct uni_core_format uni_core_process;
const struct uni_core_format uni_core_process = { .sniff = is_any, .open = open_process };
