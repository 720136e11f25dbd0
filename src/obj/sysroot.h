/* SPDX-License-Identifier: BSD-2-Clause */
/* Files by build-id and by name, from a directory that has a guest's programs and libraries. */
#ifndef UNI_OBJ_SYSROOT_H
#define UNI_OBJ_SYSROOT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct uni_sysroot;

/*
 * Looks at every regular file below path (or at path itself, if it is a file). Links to folders are
 * not followed. The number of files and the depth are limited.
 */
int uni_sysroot_open(const char *path, struct uni_sysroot **ret, struct uni_err *err);
void uni_sysroot_close(struct uni_sysroot *s);	    /* NULL-safe */
size_t uni_sysroot_nr(const struct uni_sysroot *s); /* ELF files */
/* The i-th file with that build-id; NULL if there are no more. Borrowed. */
const char *uni_sysroot_find(
	const struct uni_sysroot *s, const uint8_t *build_id, size_t len, size_t i);
/*
 * The file of that name, with or without a build-id. Among several, the one with the most similar
 * folders.
 */
const char *uni_sysroot_find_name(const struct uni_sysroot *s, const char *path);

#endif
