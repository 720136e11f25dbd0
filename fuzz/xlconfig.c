/* SPDX-License-Identifier: BSD-2-Clause */
/* Configurations of domains: what is taken from them is clean text that fits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "app/xl_config.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t cap)
{
	char clean[4096];
	size_t len = strnlen(text, cap);

	if (len == cap || uni_text_clean(clean, sizeof(clean), text, len) != len ||
		memcmp(clean, text, len) != 0)
		abort();
	told_text(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_xl_config c;

	uni_xl_config_parse((const char *)data, size, &c);
	check(c.name, sizeof(c.name));
	check(c.kernel, sizeof(c.kernel));
	return 0;
}
