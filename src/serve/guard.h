/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which requests are allowed. A web page in a browser of this machine can send requests
 * here, too. Such a request has the header Origin or Sec-Fetch-Site, or its Host is another name
 * for this address.
 */
#ifndef UNI_SERVE_GUARD_H
#define UNI_SERVE_GUARD_H

#include <stdint.h>

/*
 * Takes the headers, NULL if missing. Returns NULL if the request is allowed, else the reason in a
 * few words.
 */
const char *uni_serve_refuses(
	const char *host, const char *origin, const char *fetch_site, uint16_t port);
/* The same for a page of our own, whose requests may have our Origin. */
const char *uni_serve_refuses_page(
	const char *host, const char *origin, const char *fetch_site, uint16_t port);

#endif
