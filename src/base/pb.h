/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protocol buffers' wire format: writes fields into a strbuf, and reads fields from untrusted
 * bytes. The callers know the messages, and what each field number means.
 */
#ifndef UNI_BASE_PB_H
#define UNI_BASE_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "base/strbuf.h"

enum uni_pb_wire {
	UNI_PB_VARINT = 0,
	UNI_PB_FIXED64 = 1,
	UNI_PB_BYTES = 2, /* strings, messages, packed numbers */
	UNI_PB_FIXED32 = 5,
};

void uni_pb_put_varint(struct uni_strbuf *b, uint64_t v); /* no field number: for packed numbers */
void uni_pb_put_u64(struct uni_strbuf *b, uint32_t field, uint64_t v); /* negative, too */
void uni_pb_put_fixed64(struct uni_strbuf *b, uint32_t field, uint64_t v);
void uni_pb_put_double(struct uni_strbuf *b, uint32_t field, double v);
void uni_pb_put_bytes(struct uni_strbuf *b, uint32_t field, const void *data, size_t len);
void uni_pb_put_str(struct uni_strbuf *b, uint32_t field, const char *s);
/* A message, or packed numbers, made in a strbuf of its own; the strbuf is reset. */
void uni_pb_put_part(struct uni_strbuf *b, uint32_t field, struct uni_strbuf *part);

struct uni_pb_field {
	uint32_t number;
	enum uni_pb_wire wire;
	uint64_t v;	       /* for the number types */
	struct uni_cursor sub; /* for UNI_PB_BYTES */
};

/* The next field; false at the end, or (c->failed) if the bytes are malformed. */
bool uni_pb_next(struct uni_cursor *c, struct uni_pb_field *ret);
/* The next of packed numbers; false at the end, or if the bytes are malformed. */
bool uni_pb_next_varint(struct uni_cursor *c, uint64_t *ret);

#endif
