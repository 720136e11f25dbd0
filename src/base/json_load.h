/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads JSON that others wrote. A few bytes of it can take very many in memory. */
#ifndef UNI_BASE_JSON_LOAD_H
#define UNI_BASE_JSON_LOAD_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* Bytes of memory for each byte of text: sessions take 6, long arrays of small numbers up to 28. */
#define UNI_JSON_TIMES	       16u
#define UNI_JSON_TIMES_NUMBERS 32u

/* json_loadb() with these flags. It takes at most 1 MB and `times` the size. NULL: see err. */
json_t *uni_json_load(
	const void *data, size_t size, size_t flags, unsigned times, struct uni_err *err);

#endif
