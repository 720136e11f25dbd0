/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that a guest on Xen offers to other domains: x86_64/xen/store.c. */
#ifndef LAB_GRANT_H
#define LAB_GRANT_H

/*
 * Grants the pages to dom0, to be read, and writes the references into xenstore, decimal, joined by
 * commas. The pages lie in the image; path is relative to the domain's own. Once only.
 */
void lab_grant(const char *path, const void *pages, unsigned nr);
/* The same of one page and any domain, which may write it, and read the path. */
void lab_grant_to(unsigned domid, const char *path, const void *page);

#endif
