/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The beginning of an ELF file, from a guest's memory or from disk. It is enough to tell which file
 * it is and where it was loaded.
 */
#ifndef UNI_OBJ_HEADERS_H
#define UNI_OBJ_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "obj/image.h"

#define UNI_HEADERS_MIN	  64 /* bytes of an ELF header */
#define UNI_HEADERS_NOTES 8

struct uni_headers {
	uint64_t base; /* SVMA of the file's first byte */
	bool loaded;   /* some segment has that byte, so base is known */
	size_t nr_notes;
	struct {
		uint64_t svma, offset, size;
	} note[UNI_HEADERS_NOTES];
	uint64_t dynamic, dynamic_size; /* SVMA; size 0: none */
};

/* False: no linked 64-bit little-endian ELF file, or its program headers are not in these bytes. */
bool uni_headers_parse(const void *data, size_t size, struct uni_headers *ret);

/* The build-id among notes: its length, 0 if there is none. */
size_t uni_headers_build_id(
	const uint8_t *notes, size_t size, uint8_t ret[static UNI_BUILD_ID_MAX]);

/* The build-id of a file on disk: its length; 0: it is no such file, or has none. */
size_t uni_file_build_id(int fd, uint8_t ret[static UNI_BUILD_ID_MAX]);

#endif
