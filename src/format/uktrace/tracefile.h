/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file in which Unikraft's scripts keep what they fetched: Python pickles one behind the other,
 * of the key-value pairs of the image, the image's path (some leave it out), the size of a
 * pointer, the definitions and the buffer. Read without Python: what such a file needs of the
 * pickle machine, and nothing that makes an object run.
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
	uint64_t version; /* format_version; 0: not told */
	/* What our own fetch adds to the pairs, where known. */
	uint64_t bias;	   /* of the image */
	uint64_t capacity; /* bytes of the guest's buffer; 0: not known */
	bool full;	   /* the guest stopped tracing, for it found no room */
	bool cut;	   /* of a file: it ends within the buffer */
	char *elf;	   /* path of the image; NULL: not told */
	unsigned ptr_size;
	uint8_t *defs, *buffer;
	size_t defs_size, buffer_size;
};

/* Looks like one? */
bool uni_ukt_file_is(const void *data, size_t size);
/* ret needs no initialization; free it in any case where this returned 0. Copies the data. */
int uni_ukt_file_read(const void *data, size_t size, struct uni_ukt_file *ret, struct uni_err *err);
void uni_ukt_file_free(struct uni_ukt_file *f); /* of a zeroed one nothing */

/*
 * with_elf: five objects, as Unikraft's own fetch writes them; else the four that its own list
 * reads. Whether the sink failed it does not ask.
 */
void uni_ukt_file_write(const struct uni_ukt_file *f, bool with_elf, struct uni_sink *out);

#endif
