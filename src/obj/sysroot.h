/* SPDX-License-Identifier: BSD-2-Clause */
/* Files by build-id and by name: what lies below a directory, where a guest's programs and
 * libraries are. */
#ifndef UNI_OBJ_SYSROOT_H
#define UNI_OBJ_SYSROOT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct uni_sysroot;

/* Looks at every regular file below path (or at path itself, if it is a file); links to folders are
 * not followed. The number of files and the depth are bounded. */
int uni_sysroot_open(const char *path, struct uni_sysroot **ret, struct uni_err *err);
void uni_sysroot_close(struct uni_sysroot *s);	    /* NULL-safe */
size_t uni_sysroot_nr(const struct uni_sysroot *s); /* ELF files */
/* The i-th file with that build-id, NULL if there are no more. Borrowed. */
const char *uni_sysroot_find(
	const struct uni_sysroot *s, const uint8_t *build_id, size_t len, size_t i);
/* The file of that name, with or without a build-id: of several, whose folders are most alike. */
const char *uni_sysroot_find_name(const struct uni_sysroot *s, const char *path);

#endif
