/* SPDX-License-Identifier: BSD-2-Clause */
/* Searches an image's code in the memory of another process. Nothing is written or paged in. */
#ifndef UNI_BACKEND_VMM_SCAN_H
#define UNI_BACKEND_VMM_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/target.h"
#include "backend/vmm/maps.h"

#define UNI_SCAN_PROBE_MAX 64
#define UNI_SCAN_HITS_MAX  64

/*
 * Guests patch their own code: relocations, alternatives, tracing. With this many differing bytes
 * it still counts as the image's code.
 */
#define UNI_SCAN_DIFFER_PART	 100 /* one byte in so many, in all code */
#define UNI_SCAN_PAGE_DIFFER_MAX 512 /* bytes in any single page */

/* A few bytes of code that are compared first; never across a page's end. */
struct uni_scan_probe {
	uint64_t paddr;
	const uint8_t *bytes; /* borrowed from the hints */
	size_t size;
};

struct uni_scan_hits {
	uint32_t nr;	     /* places kept in hva0[] */
	uint32_t nr_partial; /* places that began like the image, but were something else */
	uint64_t hva0[UNI_SCAN_HITS_MAX];   /* where GPA 0 would be; all code is at hva0 + paddr */
	uint64_t differ[UNI_SCAN_HITS_MAX]; /* bytes of code that differ there */
	uint64_t nr_pages;		    /* that were read */
};

/* Picks the most distinctive bytes of the executable hints; false if there are none. */
bool uni_scan_pick(const struct uni_text_hint *text, size_t nr, struct uni_scan_probe *ret);

/*
 * Are all executable hints at hva0 + paddr, except for *differ_ret bytes (see above)? It is a proof
 * by itself only if *differ_ret is 0. Returns 0, -UNI_EMISMATCH, -UNI_EGONE, ...
 */
int uni_scan_verify(
	int pid, uint64_t hva0, const struct uni_text_hint *text, size_t nr, uint64_t *differ_ret);

/*
 * Finds every place with the code, as above, in present pages of the readable mappings. Bit 63 of
 * pagemap tells which are present, without privilege; reading others would page in the guest's
 * memory.
 */
int uni_scan_image(int pid, const struct uni_vmm_maps *maps, const struct uni_text_hint *text,
	size_t nr, struct uni_scan_hits *ret, struct uni_err *err);

/* Copies from the process: 0, -UNI_EFAULT, -UNI_EGONE, -UNI_EPERM. All or nothing. */
int uni_vmm_copy(int pid, uint64_t hva, void *buf, size_t len);

#endif
