/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pb.h"

#include <string.h>

#define VARINT_MAX 10 /* bytes for 64 bits, seven bits in each */

void uni_pb_put_varint(struct uni_strbuf *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	uni_strbuf_add(b, bytes, n);
}

static void put_key(struct uni_strbuf *b, uint32_t field, enum uni_pb_wire wire)
{
	uni_pb_put_varint(b, (uint64_t)field << 3 | wire);
}

void uni_pb_put_u64(struct uni_strbuf *b, uint32_t field, uint64_t v)
{
	put_key(b, field, UNI_PB_VARINT);
	uni_pb_put_varint(b, v);
}

void uni_pb_put_fixed64(struct uni_strbuf *b, uint32_t field, uint64_t v)
{
	uint8_t bytes[8];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(v >> 8 * i);
	put_key(b, field, UNI_PB_FIXED64);
	uni_strbuf_add(b, bytes, sizeof(bytes));
}

void uni_pb_put_double(struct uni_strbuf *b, uint32_t field, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	uni_pb_put_fixed64(b, field, bits);
}

void uni_pb_put_bytes(struct uni_strbuf *b, uint32_t field, const void *data, size_t len)
{
	put_key(b, field, UNI_PB_BYTES);
	uni_pb_put_varint(b, len);
	uni_strbuf_add(b, data, len);
}

void uni_pb_put_str(struct uni_strbuf *b, uint32_t field, const char *s)
{
	uni_pb_put_bytes(b, field, s, strlen(s));
}

void uni_pb_put_part(struct uni_strbuf *b, uint32_t field, struct uni_strbuf *part)
{
	uni_pb_put_bytes(b, field, part->s, part->len);
	b->failed = b->failed || part->failed;
	uni_strbuf_reset(part);
}

bool uni_pb_next_varint(struct uni_cursor *c, uint64_t *ret)
{
	uint64_t v = 0;

	if (c->failed || uni_cursor_left(c) == 0)
		return false;
	for (unsigned i = 0; i < VARINT_MAX; i++) {
		uint8_t byte = uni_cursor_u8(c);

		if (c->failed)
			return false;
		v |= (uint64_t)(byte & 0x7f) << 7 * i;
		if ((byte & 0x80) == 0) {
			*ret = v;
			return true;
		}
	}
	c->failed = true;
	c->failed_at = c->pos;
	return false;
}

static bool take_bytes(struct uni_cursor *c, struct uni_pb_field *f)
{
	const uint8_t *data;

	if (!uni_pb_next_varint(c, &f->v) || f->v > uni_cursor_left(c)) {
		c->failed = true;
		return false;
	}
	data = uni_cursor_take(c, (size_t)f->v);
	f->sub = uni_cursor_make(data, (size_t)f->v);
	return true;
}

bool uni_pb_next(struct uni_cursor *c, struct uni_pb_field *ret)
{
	struct uni_pb_field f = { 0 };
	uint64_t key;

	if (!uni_pb_next_varint(c, &key))
		return false;
	f.number = (uint32_t)(key >> 3);
	f.wire = (enum uni_pb_wire)(key & 7);
	if (f.number == 0 || key >> 3 > UINT32_MAX) {
		c->failed = true;
	} else if (f.wire == UNI_PB_VARINT) {
		if (!uni_pb_next_varint(c, &f.v))
			c->failed = true;
	} else if (f.wire == UNI_PB_FIXED64) {
		f.v = uni_cursor_u64(c);
	} else if (f.wire == UNI_PB_FIXED32) {
		f.v = uni_cursor_u32(c);
	} else if (f.wire != UNI_PB_BYTES) {
		c->failed = true;
	} else {
		(void)take_bytes(c, &f);
	}
	if (c->failed)
		return false;
	*ret = f;
	return true;
}
