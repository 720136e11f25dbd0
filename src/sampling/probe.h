/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of an image by which its code is recognized in a guest's memory. */
#ifndef UNI_SAMPLING_PROBE_H
#define UNI_SAMPLING_PROBE_H

#include "obj/image.h"

#define UNI_PROBE_BYTES 64
#define UNI_PROBES	4 /* pages of an image's segment that are looked for */

/* They are not across a page's end. */
struct uni_probe {
	uint64_t svma;
	uint8_t bytes[UNI_PROBE_BYTES];
};

/*
 * Those of some pages, spread over a segment of code (a guest may have changed one of them): how
 * many. Pages of padding have none.
 */
size_t uni_probes_of(const struct uni_segment *seg, struct uni_probe ret[UNI_PROBES]);

#endif
