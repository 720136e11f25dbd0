/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbol files, with the checksum put right so that the parser behind it is reached. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "obj/usym.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix_checksum(uint8_t *data, size_t size)
{
	uint64_t h = 0xcbf29ce484222325ull;

	memset(data + 56, 0, 8);
	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * 0x100000001b3ull;
	memcpy(data + 56, &h, 8);
}

static void check_places(const struct uni_symtab *s, uint64_t addr)
{
	struct uni_place place[UNI_INLINE_MAX];
	size_t n = uni_symtab_places(s, addr, place);

	if (n > UNI_INLINE_MAX)
		abort();
	for (size_t i = 0; i < n; i++) {
		told_text(place[i].function != NULL ? place[i].function : "none");
		told_text(place[i].file != NULL ? place[i].file : "none");
		told_u64(place[i].line);
		if (place[i].function != NULL && strlen(place[i].function) == 0)
			abort();
		if (place[i].file != NULL && strlen(place[i].file) == 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	struct uni_symtab *s;
	struct uni_err err = { 0 };

	if (copy == NULL)
		return 0;
	if (size != 0)
		memcpy(copy, data, size);
	if (size >= 64)
		fix_checksum(copy, size);
	if (uni_symtab_parse(copy, size, &s, &err) == 0) {
		const char *name;
		uint64_t off;

		for (uint64_t a = 0; a < 64; a++) {
			if (!uni_symtab_lookup(s, a * 0x400000000000000 + a * 8, &name, &off))
				continue;
			if (off > a * 0x400000000000000 + a * 8 || strlen(name) == 0)
				abort();
			told_text(name);
			told_u64(off);
		}
		for (uint64_t a = 0; a < 0x2000; a += 5)
			check_places(s, a);
		if (strpbrk(uni_symtab_id(s), "/.") != NULL)
			abort();
		told_text(uni_symtab_id(s));
		told_text(uni_symtab_path(s));
		uni_symtab_destroy(s);
	}
	told_text(err.msg);
	free(copy);
	return 0;
}
