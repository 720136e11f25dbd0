/* SPDX-License-Identifier: BSD-2-Clause */
/* Plain memory (QEMU's pmemsave, a file that backs RAM), with registers from elsewhere. */
#include "backend/core/file.h"

int uni_core_file_raw(struct uni_core_file *f, const struct uni_core_src *src,
	const struct uni_arch *arch, uint64_t base, const char *regs, struct uni_err *err)
{
	int rc;

	f->kind = "raw memory";
	f->arch = arch != NULL ? arch : &uni_arch_x86_64;
	f->ops = uni_core_arch_of(f->arch);
	f->space = UNI_GMEM_PHYSICAL;
	if (f->ops == NULL)
		return uni_err_set(
			err, UNI_ENOTSUP, "registers of %s cannot be given as text", f->arch->name);
	rc = uni_core_regs_text(f, regs, err);
	if (rc == 0)
		rc = uni_core_add_memory(f, src, base, 0, src->size, err);
	if (rc == 0 && f->region.nr == 0)
		rc = uni_err_set(err, UNI_EFORMAT, "the memory file is empty");
	return rc;
}
