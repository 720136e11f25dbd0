/* SPDX-License-Identifier: BSD-2-Clause */
/* All that a guest's page tables map, page by page. */
#ifndef UNI_SAMPLING_PAGES_H
#define UNI_SAMPLING_PAGES_H

#include "mem/as.h"

#define UNI_PAGE_BYTES 4096u

struct uni_pages; /* a walk through them */

/* root NULL: a virtual gmem, with all regions mapped. Borrows m. -UNI_ENOMEM. */
int uni_pages_create(struct uni_gmem *m, const struct uni_pt_root *root, struct uni_pages **ret);

/* Called for each page that can be read; false ends it. bytes are a copy, borrowed. */
typedef bool (*uni_page_fn)(void *ctx, uint64_t gva, bool exec, const uint8_t *bytes);

/*
 * Goes on from the last call, for about time_ns. Returns 1 if there is more, 0 if all was seen or
 * fn ended it, or -UNI_EGONE. Bounded in pages; a page with several addresses comes several
 * times.
 */
int uni_pages_step(struct uni_pages *p, uint64_t time_ns, uni_page_fn fn, void *ctx);
void uni_pages_destroy(struct uni_pages *p); /* NULL-safe */

/* All of it in one go, in time_ns at most. 0 or -UNI_EGONE, -UNI_ENOMEM. */
int uni_pages_each(struct uni_gmem *m, const struct uni_pt_root *root, uint64_t time_ns,
	uni_page_fn fn, void *ctx);

#endif
