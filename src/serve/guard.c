/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/guard.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/text.h"

static bool is_our_port(const char *s, uint16_t port)
{
	uint64_t v;

	return uni_parse_u64(s, &v) && v == port;
}

/* "localhost", "127.0.0.1:9090", "[::1]:9090" */
static bool is_local(const char *host, uint16_t port)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (unsigned i = 0; i < uni_array_len(names); i++) {
		size_t n = strlen(names[i]);

		if (strncasecmp(host, names[i], n) == 0 &&
			(host[n] == '\0' || (host[n] == ':' && is_our_port(host + n + 1, port))))
			return true;
	}
	return false;
}

const char *uni_serve_refuses(
	const char *host, const char *origin, const char *fetch_site, uint16_t port)
{
	if (host == NULL || !is_local(host, port))
		return "ask for it by the name localhost or 127.0.0.1";
	if (origin != NULL)
		return "web pages may not ask";
	if (fetch_site != NULL && strcmp(fetch_site, "none") != 0 &&
		strcmp(fetch_site, "same-origin") != 0)
		return "other web pages may not ask";
	return NULL;
}

const char *uni_serve_refuses_page(
	const char *host, const char *origin, const char *fetch_site, uint16_t port)
{
	static const char http[] = "http://";
	const size_t len = sizeof(http) - 1;
	const char *why = uni_serve_refuses(host, NULL, fetch_site, port);

	if (why == NULL && origin != NULL &&
		(strncmp(origin, http, len) != 0 || strcasecmp(origin + len, host) != 0))
		why = "other web pages may not ask";
	return why;
}
