/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "backend/stream/link.h"

#define FILE_MAX 4096

int uni_link_key(const char *path, uint8_t ret[UNI_STREAM_KEY_BYTES], struct uni_err *err)
{
	_cleanup_free_ char *text = NULL;
	uint8_t key[UNI_STREAM_KEY_BYTES];
	size_t size, at = 0;
	int rc = uni_read_file(path, FILE_MAX, &text, &size, err);

	if (rc != 0)
		return rc;
	while (size != 0 && isspace((unsigned char)text[size - 1]))
		size--;
	for (; size == 2 * sizeof(key) && at < sizeof(key); at++) {
		int high = uni_hex_digit((unsigned char)text[2 * at]);
		int low = uni_hex_digit((unsigned char)text[2 * at + 1]);

		if (high < 0 || low < 0)
			break;
		key[at] = (uint8_t)(high << 4 | low);
	}
	if (at != sizeof(key))
		return uni_err_set(err, UNI_EFORMAT,
			"%s holds no key: %d hexadecimal digits, as `openssl rand -hex %d` makes",
			path, 2 * UNI_STREAM_KEY_BYTES, UNI_STREAM_KEY_BYTES);
	memcpy(ret, key, sizeof(key));
	return 0;
}
