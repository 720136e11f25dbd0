/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of a domain that are mapped here. They are kept from sample to sample, as mapping one
 * costs more than the rest of a sample. They are found by frame number (a machine frame of a PV
 * domain, a guest frame of others), never by virtual address. Each sample walks the page tables
 * again, so no translation is out of date. All frames are unmapped from time to time, as a guest
 * frame may become other memory. They are unmapped at once when the domain is dying: a mapping
 * would keep it as a zombie.
 */
#ifndef UNI_BACKEND_XEN_PAGES_H
#define UNI_BACKEND_XEN_PAGES_H

#include "backend/xen/call.h"

#define UNI_XEN_PAGE  4096u
#define UNI_XEN_BATCH 16u /* maximum number of frames in one call */

struct uni_xen_pages; /* opaque */

/* Borrows x. Allocates all memory that it needs, except for the mappings. */
int uni_xen_pages_create(
	struct uni_xen_call *x, uint32_t domid, struct uni_xen_pages **ret, struct uni_err *err);
void uni_xen_pages_destroy(struct uni_xen_pages *p); /* NULL-safe; unmaps */

/* Copies [addr, addr + len), across frames if needed. Returns 0 or -UNI_EFAULT. */
int uni_xen_pages_read(struct uni_xen_pages *p, uint64_t addr, void *buf, size_t len);
/* Maps those frames that are not mapped yet, in one call. nr is at most UNI_XEN_BATCH. */
void uni_xen_pages_map(struct uni_xen_pages *p, const uint64_t *frame, size_t nr);
/* Unmaps all. */
void uni_xen_pages_drop(struct uni_xen_pages *p);
/* Unmaps all, and maps nothing from now on. */
void uni_xen_pages_seal(struct uni_xen_pages *p);

#endif
