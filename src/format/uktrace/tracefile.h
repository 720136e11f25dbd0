/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file in which Unikraft's scripts keep a fetched trace. It has Python pickles one after the
 * other: the image's key-value pairs, its path (some scripts omit it), a pointer's size, the
 * definitions, the buffer. It is read without Python, by a subset of the pickle machine that cannot
 * make an object run code.
 */
#ifndef UNI_FORMAT_UKTRACE_TRACEFILE_H
#define UNI_FORMAT_UKTRACE_TRACEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"

#define UNI_UKT_VERSION 1 /* format_version that is known */

struct uni_ukt_file {
	uint64_t version; /* format_version; 0: not stated */
	/* Our own fetch adds these to the pairs, if known. */
	uint64_t bias;	   /* of the image */
	uint64_t capacity; /* bytes of the guest's buffer; 0: not known */
	bool full;	   /* the guest stopped tracing, because it found no room */
	bool cut;	   /* of a file: it ends within the buffer */
	char *elf;	   /* path of the image; NULL: not stated */
	unsigned ptr_size;
	uint8_t *defs, *buffer;
	size_t defs_size, buffer_size;
};

/* Looks like one? */
bool uni_ukt_file_is(const void *data, size_t size);
/* ret needs no initialization; free it whenever this returned 0. Copies the data. */
int uni_ukt_file_read(const void *data, size_t size, struct uni_ukt_file *ret, struct uni_err *err);
void uni_ukt_file_free(struct uni_ukt_file *f); /* of a zeroed one nothing */

/*
 * with_elf: five objects, as Unikraft's own fetch writes them; else the four that its own list
 * reads. Whether the sink failed it does not ask.
 */
void uni_ukt_file_write(const struct uni_ukt_file *f, bool with_elf, struct uni_sink *out);

#endif
