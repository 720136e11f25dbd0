/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A byte cursor that cannot overrun: reads past the end give zeros and set `failed`, so a parser
 * checks once per structure. Integers are little endian unless the name says otherwise.
 */
#ifndef UNI_BASE_CURSOR_H
#define UNI_BASE_CURSOR_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Little-endian numbers at any address. */
static inline uint64_t uni_le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline uint32_t uni_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

struct uni_cursor {
	const uint8_t *data; /* borrowed */
	size_t size, pos;
	bool failed;
	size_t failed_at; /* position of the first read that did not fit */
};

static inline struct uni_cursor uni_cursor_make(const void *data, size_t size)
{
	return (struct uni_cursor){ .data = data, .size = size };
}

static inline size_t uni_cursor_left(const struct uni_cursor *c)
{
	return c->size - c->pos;
}

/* Borrowed pointer to the next len bytes, or NULL (and failed) if there are fewer. */
static inline const uint8_t *uni_cursor_take(struct uni_cursor *c, size_t len)
{
	const uint8_t *p;

	if (c->failed || len > uni_cursor_left(c)) {
		if (!c->failed)
			c->failed_at = c->pos;
		c->failed = true;
		return NULL;
	}
	p = c->data + c->pos;
	c->pos += len;
	return p;
}

static inline void uni_cursor_copy(struct uni_cursor *c, void *out, size_t len)
{
	const uint8_t *p = uni_cursor_take(c, len);

	if (p != NULL)
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

static inline uint8_t uni_cursor_u8(struct uni_cursor *c)
{
	uint8_t v;

	uni_cursor_copy(c, &v, sizeof(v));
	return v;
}

static inline uint16_t uni_cursor_u16(struct uni_cursor *c)
{
	uint8_t b[2];

	uni_cursor_copy(c, b, sizeof(b));
	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t uni_cursor_u32(struct uni_cursor *c)
{
	uint32_t lo = uni_cursor_u16(c);

	return lo | (uint32_t)uni_cursor_u16(c) << 16;
}

static inline uint64_t uni_cursor_u64(struct uni_cursor *c)
{
	uint64_t lo = uni_cursor_u32(c);

	return lo | (uint64_t)uni_cursor_u32(c) << 32;
}

static inline void uni_cursor_seek(struct uni_cursor *c, size_t pos)
{
	if (pos > c->size) {
		if (!c->failed)
			c->failed_at = c->pos;
		c->failed = true;
	} else {
		c->pos = pos;
	}
}

#endif
