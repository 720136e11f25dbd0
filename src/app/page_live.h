/* SPDX-License-Identifier: BSD-2-Clause */
/* Data for a page of a session that is being recorded, made repeatedly: each time only new data is
 * read. */
#ifndef UNI_APP_PAGE_LIVE_H
#define UNI_APP_PAGE_LIVE_H

#include "base/strbuf.h"
#include "app/source.h"
#include "page/page.h"

struct uni_page_live; /* opaque */

/* args, and what they borrow, must outlive it. NULL: out of memory. */
struct uni_page_live *uni_page_live_create(
	const struct uni_source_args *args, const struct uni_page_whole *whole);
void uni_page_live_destroy(struct uni_page_live *l); /* NULL-safe */
/*
 * Does the same as uni_page_build(), except for the newest data if a vCPU's samples or calls are
 * not there yet. -UNI_ENOTSUP: use that function, because the session was closed, or has more calls
 * than the data may hold.
 */
int uni_page_live_build(struct uni_page_live *l, const char *path, const char *title,
	struct uni_strbuf *ret, struct uni_err *err);

#endif
