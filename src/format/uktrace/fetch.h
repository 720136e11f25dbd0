/* SPDX-License-Identifier: BSD-2-Clause */
/* Unikraft's trace buffer out of a guest's memory: running, paused or dead. The guest is not
 * written to, and need not be stopped: it only ever adds to the buffer. */
#ifndef UNI_FORMAT_UKTRACE_FETCH_H
#define UNI_FORMAT_UKTRACE_FETCH_H

#include "obj/image.h"
#include "trace/ring.h"
#include "format/uktrace/tracefile.h"

/* The definitions in the image, or in its file with debug data. -UNI_ENOENT: it has none. */
int uni_ukt_image_defs(const struct uni_image *img, struct uni_ukt_file *ret, struct uni_err *err);

/* Definitions and buffer; bias as uni_image_hints(). ret needs no initialization; free it whenever
 * this returned 0. */
int uni_ukt_fetch(const struct uni_image *img, uint64_t bias, const struct uni_ring_source *memory,
	struct uni_ukt_file *ret, struct uni_err *err);

#endif
