/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbol tables as text: what is accepted keeps the promises of a symbol source. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "obj/symtext.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* Which of two aliases is taken does not change where there are symbols. */
static void same_places(const struct uni_symtab *s, const uint8_t *data, size_t size)
{
	struct uni_symtab *other;
	struct uni_err err = { 0 };

	require(uni_symtab_of_nm("fuzz", data, size, &other, &err) == 0);
	require(uni_symtab_nr(other) == uni_symtab_nr(s));
	uni_symtab_destroy(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_symtab *s;
	struct uni_err err = { 0 };

	if (uni_symtab_of_text("fuzz", data, size, &s, &err) != 0) {
		told_text(err.msg);
		return 0;
	}
	same_places(s, data, size);
	require(uni_symtab_nr(s) != 0 && uni_symtab_nr(s) <= size);
	for (uint64_t a = 0; a < 256; a++) {
		const uint64_t probes[] = { a, a << 8, a << 56, 0x1000 + a, UINT64_MAX - a };

		for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
			const char *name;
			char clean[UNI_TEXT_MAX];
			uint64_t off;

			if (!uni_symtab_lookup(s, probes[i], &name, &off))
				continue;
			told_text(name);
			told_u64(off);
			require(off <= probes[i] && name[0] != '\0');
			require(uni_text_clean(clean, sizeof(clean), name, strlen(name)) ==
				strlen(name));
			require(strcmp(clean, name) == 0);
		}
	}
	uni_symtab_destroy(s);
	return 0;
}
