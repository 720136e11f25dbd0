/* SPDX-License-Identifier: BSD-2-Clause */
/* speedscope's profiles. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[FUZZ_EXPORTS] = { "speedscope", "chrome", "fxt" };

	return fuzz_import("speedscope", formats, data, size);
}
