/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hash.h"

#include <xxhash.h>

uint64_t uni_hash_bytes(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}
