/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of a domain that are mapped here, kept from sample to sample: mapping one costs more than
 * the rest of a sample. They are known by frame number (a machine frame of a PV domain, a guest
 * frame of others), never by virtual address: who reads through page tables walks these again for
 * each sample, so a translation cannot go stale. All of them are dropped from time to time, for
 * a guest frame may come to stand for other memory, and at once when the domain is dying: what is
 * mapped would keep it as a zombie.
 */
#ifndef UNI_BACKEND_XEN_PAGES_H
#define UNI_BACKEND_XEN_PAGES_H

#include "backend/xen/call.h"

#define UNI_XEN_PAGE  4096u
#define UNI_XEN_BATCH 16u /* frames that are mapped in one call at most */

struct uni_xen_pages; /* opaque */

/* Borrows x. All memory it needs is allocated here, but for the mappings. */
int uni_xen_pages_create(
	struct uni_xen_call *x, uint32_t domid, struct uni_xen_pages **ret, struct uni_err *err);
void uni_xen_pages_destroy(struct uni_xen_pages *p); /* NULL-safe; unmaps */

/* Copies [addr, addr + len), crossing frames if it must. 0 or -UNI_EFAULT. */
int uni_xen_pages_read(struct uni_xen_pages *p, uint64_t addr, void *buf, size_t len);
/* Maps those of the frames that are not mapped yet, in one call. nr up to UNI_XEN_BATCH. */
void uni_xen_pages_map(struct uni_xen_pages *p, const uint64_t *frame, size_t nr);
/* Unmaps all. */
void uni_xen_pages_drop(struct uni_xen_pages *p);
/* Also nothing may be mapped from now on. */
void uni_xen_pages_seal(struct uni_xen_pages *p);

#endif
