/* SPDX-License-Identifier: BSD-2-Clause */
/* Names: short ones that stand for endless ones must end, and what comes out is clean. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "obj/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libiberty forgets some bytes when a Rust name has a part that is no Punycode. */
const char *__lsan_default_suppressions(void)
{
	return "leak:print_ident";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[UNI_TEXT_MAX], text[UNI_TEXT_MAX], clean[UNI_TEXT_MAX];

	/* As all names come to it. */
	(void)uni_text_clean(name, sizeof(name), data, size);
	if (!uni_demangle(name, text, sizeof(text)))
		return 0;
	if (text[0] == '\0' ||
		uni_text_clean(clean, sizeof(clean), text, sizeof(text)) != strlen(text) ||
		strcmp(clean, text) != 0)
		abort();
	return 0;
}
