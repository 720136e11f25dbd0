/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A page that a guest of Xen shares with the domain that we run in, which need not be dom0. xen/
 * maps it, stream/ communicates through it.
 */
#ifndef UNI_BACKEND_GRANT_H
#define UNI_BACKEND_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define UNI_GRANT_PAGE 4096u

struct uni_grant {
	uint32_t domid, ref;
	bool has_ref; /* otherwise it is in xenstore: data/uniscope/ring-ref below the domain's path
		       */
};

struct uni_grant_page {
	void *at; /* UNI_GRANT_PAGE bytes, to be read and written; the guest does the same meanwhile
		   */
	int fd[2];  /* descriptors that hold it; -1: none */
	bool stays; /* as long as this process lives */
	uint32_t domid, ref;
};

/* Parses DOMID or DOMID:REF; false: it is neither. */
bool uni_grant_parse(const char *text, struct uni_grant *ret);
/* -UNI_EBUSY: another process of this domain has mapped it. */
int uni_grant_map(const struct uni_grant *g, struct uni_grant_page *ret, struct uni_err *err);
void uni_grant_unmap(struct uni_grant_page *p);

#endif
