/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a file by offset: a file on disk, or (in tests) in memory. */
#ifndef UNI_BACKEND_CORE_SRC_H
#define UNI_BACKEND_CORE_SRC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct uni_core_src {
	/* [off, off + len) is inside size. Returns 0 or -UNI_EIO; all or nothing. */
	int (*read)(void *ctx, uint64_t off, void *buf, size_t len);
	void *ctx;
	uint64_t size;
};

/* -UNI_ERANGE: not all of it is in the file. */
int uni_core_src_read(const struct uni_core_src *s, uint64_t off, void *buf, size_t len);

/*
 * A regular file, read with pread: a core is larger than memory, and a mapping of a file faults if
 * somebody truncates it.
 */
int uni_core_src_open(const char *path, struct uni_core_src *ret, struct uni_err *err);
void uni_core_src_close(struct uni_core_src *s); /* also if zeroed */

/* data is borrowed. */
struct uni_core_src uni_core_src_memory(const void *data, size_t size);

#endif
