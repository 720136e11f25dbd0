/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes as instructions: they go forward, stay within the bytes, and their text is clean. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "obj/disasm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* The first byte chooses the architecture. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct uni_arch *arch =
		size != 0 && data[0] % 2 != 0 ? &uni_arch_aarch64 : &uni_arch_x86_64;
	char clean[UNI_INSN_TEXT];
	struct uni_disasm *d;

	if (size == 0 || uni_disasm_open(arch, &d, NULL) != 0)
		return 0;
	for (size_t at = 1; at < size;) {
		struct uni_insn i;

		uni_disasm_one(d, data + at, size - at, 0x1000 + at, &i);
		require(i.addr == 0x1000 + at && i.size != 0 && i.size <= size - at);
		require(i.text[0] != '\0' && strlen(i.text) < sizeof(i.text));
		(void)uni_text_clean(clean, sizeof(clean), i.text, strlen(i.text));
		require(strcmp(clean, i.text) == 0);
		require(i.target == 0 || i.kind == UNI_INSN_JUMP || i.kind == UNI_INSN_CALL);
		at += i.size;
	}
	uni_disasm_close(d);
	return 0;
}
