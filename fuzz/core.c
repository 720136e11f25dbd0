/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cores and registers as text: what loads is unwound, each vCPU. Input that is no ELF file is text
 * up to its first NUL and raw memory behind it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backend/core/file.h"
#include "unwind/unwind.h"
#include "told_regs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_src(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	/* No region may reach behind the file. */
	if (uni_core_src_read(ctx, r->cookie + offset, buf, len) != 0)
		abort();
	return 0;
}

static const struct uni_gmem_ops ops = { .read = read_src };

static void unwind_all(const struct uni_core_file *f, struct uni_gmem *m)
{
	struct uni_as *as = NULL;
	struct uni_unwinder u;
	struct uni_chain chain;
	uint8_t b;

	for (size_t i = 0; i < uni_gmem_nr_regions(m); i++) {
		const struct uni_gmem_region *r = uni_gmem_region(m, i);

		told_u64(r->start);
		told_u64(r->size);
		if (uni_gmem_read(m, uni_gpa_of(r->start + (r->size - 1)), &b, 1) != 0)
			abort();
	}
	uni_unwinder_init(&u, f->arch, NULL);
	if (uni_as_create(m, &uni_as_budget_once, &as, NULL) != 0)
		return;
	for (size_t i = 0; i < f->vcpu.nr; i++) {
		tell_regs(&f->vcpu.v[i]);
		uni_unwind(&u, as, &f->vcpu.v[i], &chain);
		if (chain.nr > UNI_CHAIN_MAX || chain.stop >= UNI_STOP_NR)
			abort();
	}
	uni_as_destroy(as);
}

static int load(struct uni_core_file *f, struct uni_core_src *src, const uint8_t *data, size_t size,
	struct uni_err *err)
{
	size_t text = strnlen((const char *)data, size);

	*src = uni_core_src_memory(data, size);
	if (size == 0 || data[0] == 0x7f || text == size) {
		int rc = uni_core_file_elf(f, src, err);

		/* The root is in the memory that QEMU gives a machine. */
		return rc != 0 ? rc
			       : uni_core_file_complete(f, "ttbr0=40001000 ttbr1=40000000", err);
	}
	*src = uni_core_src_memory(data + text + 1, size - text - 1);
	return uni_core_file_raw(
		f, src, data[0] == 'P' ? &uni_arch_aarch64 : NULL, 0x1000, (const char *)data, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_core_file f = { 0 };
	struct uni_err err = { 0 };
	struct uni_core_src src;
	struct uni_gmem *m = NULL;

	if (load(&f, &src, data, size, &err) != 0) {
		if (err.code == 0)
			abort(); /* each refusal has a message */
		told_text(err.msg);
	} else {
		/* The reader's regions must be valid for gmem. */
		if (f.vcpu.nr == 0 || f.vcpu.nr > UNI_VCPU_MAX ||
			uni_gmem_create(&ops, &src, f.space, f.region.v, f.region.nr, &m, &err) !=
				0)
			abort();
		unwind_all(&f, m);
		uni_gmem_destroy(m);
	}
	uni_core_file_deinit(&f);
	return 0;
}
