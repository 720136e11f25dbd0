/* SPDX-License-Identifier: BSD-2-Clause */
/* pprof's profiles. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[FUZZ_EXPORTS] = { "pprof", "callgrind", "perfetto" };

	return fuzz_import("pprof", formats, data, size);
}
