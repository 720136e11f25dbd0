/* SPDX-License-Identifier: BSD-2-Clause */
/* Suggests the name that a user may have meant by an unknown word. */
#ifndef UNI_APP_NEAREST_H
#define UNI_APP_NEAREST_H

#include <stddef.h>

struct uni_nearest {
	const char *word;
	size_t len;
	const char *name; /* the nearest so far, borrowed; NULL: none is near enough */
	size_t distance;
};

struct uni_nearest uni_nearest_begin(const char *word, size_t len);
void uni_nearest_try(struct uni_nearest *n, const char *name);

#endif
