/* SPDX-License-Identifier: BSD-2-Clause */
/* All that a guest's page tables map, page by page. */
#ifndef UNI_SESSION_PAGES_H
#define UNI_SESSION_PAGES_H

#include "mem/as.h"

#define UNI_PAGE_BYTES 4096u

/* Called for each page that can be read; false ends it. bytes are a copy, borrowed. */
typedef bool (*uni_page_fn)(void *ctx, uint64_t gva, bool exec, const uint8_t *bytes);

/*
 * root NULL: a virtual gmem, all of whose regions are mapped. Bounded in pages and in time
 * (time_ns), and a page that lies at several addresses comes several times. 0 or -UNI_EGONE,
 * -UNI_ENOMEM.
 */
int uni_pages_each(struct uni_gmem *m, const struct uni_pt_root *root, uint64_t time_ns,
	uni_page_fn fn, void *ctx);

#endif
