/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes about a Xen domain that others wrote: those of xl, those of its image, and the references
 * of pages that it grants. A vCPU's context, whatever is in it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "obj/elffile.h"
#include "backend/xen/store.h"
#include "backend/xen/vcpu.h"
#include "backend/xen/xen.h"
#include "told_regs.h"

#define REFS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_context(const struct uni_xen_arch *arch, const uint8_t *data, size_t size)
{
	uint8_t *ctx = calloc(1, arch->ctx_bytes), before[UNI_XEN_WAIT_BYTES] = { 0 };
	struct uni_more_regs more;
	struct uni_regs r = { 0 };

	if (ctx == NULL)
		abort();
	memcpy(before, data, uni_min(size, sizeof(before)));
	told_u64(arch->may_wait(before));
	/* The larger part of a context is of no interest: the input is there several times. */
	for (size_t at = 0; at < arch->ctx_bytes && size != 0; at += size)
		memcpy(ctx + at, data, uni_min(size, arch->ctx_bytes - at));
	for (int pv = 0; pv < 2; pv++) {
		arch->regs(ctx, pv != 0, &r);
		tell_regs(&r);
		if (!r.pc_valid || !r.sp_valid ||
			(r.state != UNI_VCPU_RUNNING && r.state != UNI_VCPU_OFFLINE))
			abort();
	}
	if (arch->more != NULL)
		arch->more(ctx, &more);
	free(ctx);
}

static void try_refs(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint32_t ref[REFS_MAX];
	int nr;

	if (text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	nr = uni_xen_grant_refs(text, ref, REFS_MAX);
	if (nr > REFS_MAX || nr == 0)
		abort();
	told_u64((uint64_t)nr);
	if (nr > 0)
		told(ref, (size_t)nr * sizeof(ref[0]));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_elf_notes notes = { 0 };
	char kernel[64];

	uni_xen_store_kernel_of((const char *)data, size, kernel, sizeof(kernel));
	for (const char *p = kernel; p < kernel + strnlen(kernel, sizeof(kernel)); p++) {
		if ((unsigned char)*p < 32)
			abort();
	}
	if (strnlen(kernel, sizeof(kernel)) == sizeof(kernel))
		abort();
	told_text(kernel);
	uni_elf_notes_parse(data, size, &notes);
	if (notes.build_id_len > UNI_BUILD_ID_MAX)
		abort();
	try_context(&uni_xen_arch_x86_64, data, size);
	try_context(&uni_xen_arch_aarch64, data, size);
	try_refs(data, size);
	return 0;
}
