/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Searches a guest's memory (page tables at 0, ELF headers anywhere) for an image. The image's file
 * is the memory itself, if it can be loaded.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "obj/headers.h"
#include "sampling/locate.h"

#define RAM 0x10000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_ram(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	memcpy(buf, (const uint8_t *)ctx + offset, len);
	return 0;
}

static const struct uni_gmem_ops ops = { .read = read_ram };

static void locate(struct uni_gmem *m, struct uni_image *img, uint64_t cr3)
{
	struct uni_regs regs = { .state = UNI_VCPU_RUNNING, .sp = 0x1000, .sp_valid = true };
	struct uni_located list[UNI_IMAGES_MAX] = { { .image = img } };
	struct uni_locate_args args = {
		.gmem = m, .arch = &uni_arch_x86_64, .regs = &regs, .nr_regs = 1, .time_ns = 500000
	};
	bool found[UNI_IMAGES_MAX];
	size_t nr = img != NULL ? 1 : 0;

	uni_regs_set_sys(&regs, UNI_X86_CR0, 0x80000001);
	uni_regs_set_sys(&regs, UNI_X86_CR3, cr3);
	uni_regs_set_sys(&regs, UNI_X86_CR4, 0x20);
	uni_regs_set_sys(&regs, UNI_X86_EFER, 0xd00);
	(void)uni_locate(&args, list, found, &nr, NULL);
	if (nr > 1)
		abort(); /* there is no sysroot */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct uni_gmem_region region = { .size = RAM };
	struct uni_image *img = NULL;
	struct uni_gmem *m = NULL;
	uint8_t id[UNI_BUILD_ID_MAX];
	struct uni_headers h;
	uint8_t *ram = calloc(1, RAM);

	if (ram == NULL)
		return 0;
	if (uni_headers_parse(data, size, &h) && h.nr_notes > UNI_HEADERS_NOTES)
		abort();
	if (uni_headers_build_id(data, size, id) > UNI_BUILD_ID_MAX)
		abort();
	memcpy(ram, data, size < RAM ? size : RAM);
	/* The file begins on the second page, behind the table that the CPU starts at. */
	if (size > 4096)
		(void)uni_image_from_memory("fuzz", data + 4096, size - 4096, &img, NULL);
	if (uni_gmem_create(&ops, ram, UNI_GMEM_PHYSICAL, &region, 1, &m, NULL) == 0)
		locate(m, img, 0);
	uni_image_destroy(img);
	uni_gmem_destroy(m);
	free(ram);
	return 0;
}
