/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A harness tells each value that it finds in its inputs, and driver.c compares a sum of all with
 * fuzz/said.txt. So a reader that takes one field for another is seen, not only one that crashes.
 * Values that depend on the host, such as addresses, paths and the version of a library, are not
 * told.
 */
#ifndef UNI_FUZZ_TOLD_H
#define UNI_FUZZ_TOLD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern uint64_t told_sum;
__attribute__((weak)) uint64_t told_sum; /* 0: nothing was told */

static inline void told_u64(uint64_t v)
{
	told_sum = (told_sum ^ v) * 0x9e3779b97f4a7c15ull;
	told_sum ^= told_sum >> 29;
	told_sum += 1;
}

static inline void told(const void *data, size_t size)
{
	const uint8_t *p = data;

	told_u64(size);
	for (uint64_t word = 0; size != 0; word = 0) {
		size_t n = size < sizeof(word) ? size : sizeof(word);

		memcpy(&word, p, n);
		told_u64(word);
		p += n;
		size -= n;
	}
}

static inline void told_text(const char *s)
{
	told(s, strlen(s));
}

#endif
