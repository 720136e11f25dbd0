/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes Unikraft's tracepoints into memory: definitions and records, as a compiler and a guest
 * would lay them out. */
#ifndef UNI_TESTS_UKT_MAKE_H
#define UNI_TESTS_UKT_MAKE_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define UKT_MAX 65536

struct ukt_bytes {
	uint8_t b[UKT_MAX];
	size_t n;
};

static inline void ukt_put(struct ukt_bytes *o, uint64_t v, size_t size)
{
	assert(o->n + size <= UKT_MAX && size <= 8);
	for (size_t i = 0; i < size; i++)
		o->b[o->n++] = (uint8_t)(v >> 8 * i);
}

static inline void ukt_bytes(struct ukt_bytes *o, const void *p, size_t size)
{
	assert(o->n + size <= UKT_MAX);
	memcpy(o->b + o->n, p, size);
	o->n += size;
}

static inline void ukt_align(struct ukt_bytes *o, size_t to)
{
	while (o->n % to != 0)
		ukt_put(o, 0, 1);
}

/* args: a digit for an integer of so many bytes, 's' for a string. align: where the next begins. */
static inline void ukt_define(struct ukt_bytes *o, uint64_t cookie, const char *name,
	const char *format, const char *args, size_t align)
{
	size_t nr = strlen(args), size = 19 + 2 * nr + strlen(name) + 1 + strlen(format) + 1;

	ukt_align(o, align);
	ukt_put(o, 0x65645054, 4);
	ukt_put(o, (size + 7) & ~(size_t)7, 4);
	ukt_put(o, cookie, 8);
	ukt_put(o, nr, 1);
	ukt_put(o, strlen(name) + 1, 1);
	ukt_put(o, strlen(format) + 1, 1);
	for (size_t i = 0; i < nr; i++)
		ukt_put(o, args[i] == 's' ? 8 : (uint64_t)(args[i] - '0'), 1);
	for (size_t i = 0; i < nr; i++)
		ukt_put(o, args[i] == 's', 1);
	ukt_bytes(o, name, strlen(name) + 1);
	ukt_bytes(o, format, strlen(format) + 1);
	ukt_align(o, 8);
}

/* A record's head; its size is set by ukt_end(). Returns where it begins. */
static inline size_t ukt_begin(struct ukt_bytes *o, uint64_t ns, uint64_t cookie, unsigned ptr_size)
{
	size_t at = o->n;

	ukt_put(o, 0x64685254, 4);
	ukt_put(o, 0, 4);
	ukt_put(o, ns, 8);
	ukt_put(o, cookie, ptr_size);
	ukt_put(o, 0, 8 - ptr_size);
	return at;
}

static inline void ukt_string(struct ukt_bytes *o, const char *s)
{
	ukt_put(o, strlen(s), 1);
	ukt_bytes(o, s, strlen(s));
}

static inline void ukt_end(struct ukt_bytes *o, size_t at)
{
	uint32_t size = (uint32_t)(o->n - at - 24);

	memcpy(o->b + at + 4, &size, 4);
}

#endif
