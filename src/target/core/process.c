/* SPDX-License-Identifier: BSD-2-Clause */
/* A Linux process's core, for unikernels built as processes: threads for vCPUs, virtual memory. */
#include <elf.h>

#include "target/core/file.h"

static int take_thread(struct uni_core_file *f, const struct uni_core_note *n, struct uni_err *err)
{
	struct uni_regs regs;

	if (!uni_core_x86_64_prstatus(n->desc, n->size, &regs))
		return uni_err_set(err, UNI_EFORMAT,
			"a thread's note has %zu bytes, which is not Linux on x86_64", n->size);
	return uni_core_add_vcpu(f, &regs, err);
}

int uni_core_parse_process(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	int rc = uni_core_each_note(f, e, ph, "CORE", NT_PRSTATUS, take_thread, &f->nr_vcpus, err);

	f->kind = "process core";
	f->space = UNI_GMEM_VIRTUAL;
	for (uint32_t i = 0; rc == 0 && i < e->nr_ph; i++) {
		if (ph[i].type == PT_LOAD)
			rc = uni_core_add_memory(
				f, e->src, ph[i].vaddr, ph[i].offset, ph[i].file_size, err);
	}
	if (rc == 0)
		uni_core_join_memory(f, false);
	return rc;
}
