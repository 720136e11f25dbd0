/* SPDX-License-Identifier: BSD-2-Clause */
/* Hashing for in-memory tables, and handles in JSON (XXH3 of libxxhash: the same on all machines).
 */
#ifndef UNI_BASE_HASH_H
#define UNI_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t uni_hash_bytes(const void *data, size_t len, uint64_t seed);

/* Two words mixed: for keys such as (parent node, frame). */
static inline uint64_t uni_hash_pair(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;

	h ^= h >> 32;
	h = (h + b) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 29;
}

#endif
