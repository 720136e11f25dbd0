/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may ask. A web page in a browser of this machine can send requests here, too: it is known by
 * the headers Origin or Sec-Fetch-Site, and by a Host that is another name for this address.
 */
#ifndef UNI_SERVE_GUARD_H
#define UNI_SERVE_GUARD_H

#include <stdint.h>

/* The headers, NULL where there was none. NULL: it may; else why not, in a few words. */
const char *uni_serve_refuses(
	const char *host, const char *origin, const char *fetch_site, uint16_t port);
/* The same of a page of our own, which a browser may send together with its Origin. */
const char *uni_serve_refuses_page(
	const char *host, const char *origin, const char *fetch_site, uint16_t port);

#endif
