/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of an image's code that its loader and the CPU change. They are told by their values. */
#ifndef UNI_SAMPLING_LOADED_H
#define UNI_SAMPLING_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/image.h"

#define UNI_CODE_PAGE 4096u

/* A page, or the part of it that a piece of code covers, in the guest and in the file. */
struct uni_code_page {
	uint64_t svma;
	size_t len;
	uint8_t now[UNI_CODE_PAGE], file[UNI_CODE_PAGE];
};

/* Is byte i in an address of 4 or 8 bytes that was moved with the image? */
bool uni_code_is_moved(
	const struct uni_image *img, const struct uni_code_page *p, size_t i, uint64_t bias);

/* Is byte i in an entry of a page table in which the CPU has set bits? x86_64. */
bool uni_code_is_table(const struct uni_image *img, const struct uni_code_page *p, size_t i);

#endif
