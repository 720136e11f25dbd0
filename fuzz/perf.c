/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of perf script. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[FUZZ_EXPORTS] = { "folded", "perf", "firefox" };

	return fuzz_import("perf", formats, data, size);
}
