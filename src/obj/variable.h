/* SPDX-License-Identifier: BSD-2-Clause */
/* Global variables of an image, by name: numbers of 1, 2, 4 or 8 bytes. */
#ifndef UNI_OBJ_VARIABLE_H
#define UNI_OBJ_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "obj/debug.h"
#include "obj/image.h"

#define UNI_VARIABLE_NAME 128

struct uni_variable {
	uint64_t svma;
	uint8_t size; /* bytes: 1, 2, 4 or 8 */
	bool is_signed;
};

/*
 * path: a symbol's name. With debug data (or NULL) it may go on to members and elements of arrays,
 * "heap.pool[3].used". Without it, the number has the symbol's size, and no sign. -UNI_ENOENT:
 * there is none. -UNI_ENOTSUP: it is no such number.
 */
int uni_variable_find(const struct uni_image *img, struct uni_debug *d, const char *path,
	struct uni_variable *ret, struct uni_err *err);
/* The contrary: "heap.used", or "heap+8" without debug data, or "0x1000". */
void uni_variable_name(const struct uni_image *img, struct uni_debug *d, uint64_t svma,
	char ret[UNI_VARIABLE_NAME]);

#endif
