/* SPDX-License-Identifier: BSD-2-Clause */
/* The text of source files that debug data names. */
#ifndef UNI_ANNOTATE_LINES_H
#define UNI_ANNOTATE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct uni_debug;
struct uni_lines; /* opaque */

/*
 * dirs (borrowed) are searched for the file's path, then for its last parts: src/a.c, a.c. Next
 * come files within debug data. Last comes the path itself, if it begins with '/'. NULL: out of
 * memory.
 */
struct uni_lines *uni_lines_create(const char *const *dirs, size_t nr);
/* Borrowed. False: out of memory. */
bool uni_lines_add_debug(struct uni_lines *l, const struct uni_debug *debug);
void uni_lines_destroy(struct uni_lines *l); /* NULL-safe */
/* Line `line`, from 1 on, cleaned, tabs as blanks, at most cap - 1 bytes; "" if there is none.
 * Returns ret. */
const char *uni_lines_get(
	struct uni_lines *l, const char *file, uint32_t line, char *ret, size_t cap);

#endif
