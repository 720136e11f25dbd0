/* SPDX-License-Identifier: BSD-2-Clause */
/* A domain's UUID ("handle"). Its number may be another domain's tomorrow; the UUID will not. */
#ifndef UNI_BACKEND_XEN_UUID_H
#define UNI_BACKEND_XEN_UUID_H

#include <stdio.h>

#include "backend/xen/call.h"

#define UNI_XEN_UUID_TEXT 37

static inline void uni_xen_uuid_text(
	const uint8_t uuid[UNI_XEN_UUID_BYTES], char ret[UNI_XEN_UUID_TEXT])
{
	size_t n = 0;

	for (size_t i = 0; i < UNI_XEN_UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			ret[n++] = '-';
		(void)snprintf(ret + n, UNI_XEN_UUID_TEXT - n, "%02x", uuid[i]);
		n += 2;
	}
}

#endif
