/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes about a Xen domain that others wrote: those of xl, and those of its image. */
#include <stdlib.h>
#include <string.h>

#include "obj/elffile.h"
#include "backend/xen/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	uni_elf_notes_parse(data, size, &notes);
	if (notes.build_id_len > UNI_BUILD_ID_MAX)
		abort();
	return 0;
}
