/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The output of QEMU's dump-guest-memory: a note for each vCPU, and all RAM, block after block. Its
 * program headers list the blocks. In a dump made with paging, they list the guest's mappings
 * instead. Each of those is cut off where a block ends. Memory without a mapping is in the file,
 * but not listed; the page tables may be there. Its place is inferred from the others' places.
 */
#include <elf.h>

#include "base/checked.h"
#include "backend/core/file.h"

static int take_vcpu(struct uni_core_file *f, const struct uni_core_note *n, struct uni_err *err)
{
	struct uni_regs regs;

	if (!f->ops->qemu(n->desc, n->size, &regs))
		return uni_err_set(err, UNI_EFORMAT,
			"a vCPU's note has %zu bytes, which is not a QEMU of x86_64", n->size);
	return uni_core_add_vcpu(f, &regs, err);
}

static bool is_qemu(
	struct uni_core_file *f, const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	uint64_t nr;

	return f->ops->qemu != NULL &&
	       uni_core_each_note(f, e, ph, "QEMU", 0, NULL, &nr, NULL) == 0 && nr != 0;
}

static bool lists_mappings(const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	for (uint32_t i = 0; i < e->nr_ph; i++) {
		if (ph[i].type == PT_LOAD && ph[i].vaddr != 0 && ph[i].vaddr != ph[i].paddr)
			return true;
		if (ph[i].type == PT_LOAD && ph[i].mem_size > ph[i].file_size &&
			ph[i].file_size != 0)
			return true;
	}
	return false;
}

/* The last region goes on to the end of the mappings, if the file reaches that far. */
static void extend_last_region(
	struct uni_core_file *f, const struct uni_core_elf *e, const struct uni_core_ph *ph)
{
	struct uni_gmem_region *last = &f->region.v[f->region.nr - 1];
	uint64_t room = e->src->size - last->cookie, end = 0;

	for (uint32_t i = 0; i < e->nr_ph; i++) {
		uint64_t one;

		if (ph[i].type == PT_LOAD &&
			!__builtin_add_overflow(ph[i].paddr, ph[i].mem_size, &one))
			end = uni_max(end, one);
	}
	if (end > last->start)
		last->size = uni_max(last->size, uni_min(end - last->start, room));
}

static int open_qemu(struct uni_core_file *f, const struct uni_core_elf *e,
	const struct uni_core_ph *ph, struct uni_err *err)
{
	bool mappings = lists_mappings(e, ph);
	int rc = uni_core_each_note(f, e, ph, "QEMU", 0, take_vcpu, &f->nr_vcpus, err);

	f->kind = "QEMU dump";
	f->space = UNI_GMEM_PHYSICAL;
	f->inferred = mappings;
	for (uint32_t i = 0; rc == 0 && i < e->nr_ph; i++) {
		if (ph[i].type == PT_LOAD)
			rc = uni_core_add_memory(
				f, e->src, ph[i].paddr, ph[i].offset, ph[i].file_size, err);
	}
	if (rc != 0)
		return rc;
	uni_core_join_memory(f, mappings);
	if (!mappings || f->region.nr == 0)
		return 0;
	extend_last_region(f, e, ph);
	f->mem_bytes = f->missing; /* mappings overlap: their union counts */
	uni_vec_foreach (r, &f->region) {
		f->mem_bytes += r->size;
	}
	return 0;
}

extern const struct uni_core_format uni_core_qemu;
const struct uni_core_format uni_core_qemu = { .sniff = is_qemu, .open = open_qemu };
