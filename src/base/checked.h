/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges are (start, size). They may end exactly at the top of the number space. Hand-written
 * comparisons with start + size get that wrong, so they are forbidden elsewhere; a style test greps
 * for them.
 */
#ifndef UNI_BASE_CHECKED_H
#define UNI_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is [addr, addr + len) inside [start, start + size)? True for len 0 at or inside either end. */
static inline bool uni_range_contains(uint64_t start, uint64_t size, uint64_t addr, uint64_t len)
{
	return addr >= start && addr - start <= size && len <= size - (addr - start);
}

/* Is the byte at addr inside [start, start + size)? */
static inline bool uni_range_has(uint64_t start, uint64_t size, uint64_t addr)
{
	return addr >= start && addr - start < size;
}

/* Do the two ranges share a byte? */
static inline bool uni_range_overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	if (a_size == 0 || b_size == 0)
		return false;
	return a <= b ? b - a < a_size : a - b < b_size;
}

/* Can (start, size) exist without wrapping? Ending exactly at the top is legal. */
static inline bool uni_range_ok(uint64_t start, uint64_t size)
{
	return size == 0 || size - 1 <= UINT64_MAX - start;
}

#define uni_array_len(a) (sizeof(a) / sizeof((a)[0]))
#define uni_min(a, b)	 ((a) < (b) ? (a) : (b))
#define uni_max(a, b)	 ((a) > (b) ? (a) : (b))

#endif
