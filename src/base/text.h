/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text from a guest, a file or a socket is cleaned once on entry. Then it is valid UTF-8 of bounded
 * length, without control bytes and bidirectional overrides. Each output escapes it again for its
 * own format.
 */
#ifndef UNI_BASE_TEXT_H
#define UNI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNI_TEXT_MAX 4096 /* bytes kept of one name */

/*
 * Copies at most cap - 1 bytes of cleaned text and a NUL to out; stops at a NUL in the input.
 * Invalid UTF-8 and control characters become U+FFFD or '?' where that does not fit. Returns the
 * length written. cap must be at least 1.
 */
size_t uni_text_clean(char *out, size_t cap, const void *data, size_t len);

/* The value of a hexadecimal digit; -1: it is no such digit. */
static inline int uni_hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' ^ 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Strict unsigned number: the whole string, base 10 or 0x..., no sign, no blanks; false if not. */
bool uni_parse_u64(const char *s, uint64_t *ret);
/* Strict non-negative decimal such as "99" or "0.5"; false if not. */
bool uni_parse_double(const char *s, double *ret);
/*
 * A number and its unit, such as "10ms" or "1.5s" (ns, us, ms, s), in nanoseconds. A number without
 * a unit counts units of bare_ns; with 0 it is refused. False if malformed, below 1 ns or more than
 * 10^9 s.
 */
bool uni_parse_time(const char *s, double bare_ns, uint64_t *ret_ns);
/* Bytes with an optional suffix K, M, G (1024-based); false if malformed or too large. */
bool uni_parse_size(const char *s, uint64_t *ret);
/*
 * Does name match a shell-style glob (*, ?, [a-z])? At worst, time is pattern length times name
 * length.
 */
bool uni_glob_match(const char *glob, const char *name);

/* The ending of a noun behind that number: "1 sample", "0 samples". */
static inline const char *uni_plural(uint64_t nr)
{
	return nr == 1 ? "" : "s";
}

#endif
