/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/blob.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 10 /* bytes of the longest number */

void uni_blob_deinit(struct uni_blob *b)
{
	for (size_t i = 0; i < b->columns.nr; i++) {
		if (b->columns.v[i]->owner != b)
			continue;
		uni_strbuf_deinit(&b->columns.v[i]->bytes);
		uni_strbuf_deinit(&b->columns.v[i]->packed);
		uni_vec_free(&b->columns.v[i]->piece);
		uni_vec_free(&b->columns.v[i]->parts);
		free(b->columns.v[i]);
	}
	uni_vec_free(&b->columns);
}

struct uni_column *uni_blob_column(struct uni_blob *b, const char *name)
{
	struct uni_column *c = calloc(1, sizeof(*c));

	if (c != NULL && uni_vec_push(&b->columns, c)) {
		(void)snprintf(c->name, sizeof(c->name), "%s", name);
		uni_strbuf_init(&c->bytes);
		uni_strbuf_init(&c->packed);
		c->owner = b;
		return c;
	}
	b->failed = true;
	free(c);
	return NULL;
}

void uni_blob_borrow(struct uni_blob *b, const struct uni_blob *from)
{
	b->failed = b->failed || from->failed;
	for (size_t i = 0; i < from->columns.nr; i++)
		b->failed = !uni_vec_push(&b->columns, from->columns.v[i]) || b->failed;
}

void uni_column_put(struct uni_column *c, uint64_t v)
{
	char *b;

	if (c == NULL)
		return;
	c->nr++;
	if (!uni_strbuf_reserve(&c->bytes, LONGEST))
		return;
	/*
	 * Written in place: a reply has some 150,000 numbers, and a call for each would cost more
	 * than its work.
	 */
	for (b = c->bytes.s + c->bytes.len; v > 0x7f; v >>= 7)
		*b++ = (char)(v | 0x80);
	*b++ = (char)v;
	*b = '\0';
	c->bytes.len = (size_t)(b - c->bytes.s);
}

void uni_column_put_signed(struct uni_column *c, int64_t v)
{
	uni_column_put(c, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

void uni_column_put_double(struct uni_column *c, double v)
{
	unsigned char b[8];
	uint64_t bits;

	if (c == NULL)
		return;
	memcpy(&bits, &v, sizeof(bits));
	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (unsigned char)(bits >> 8 * i);
	uni_strbuf_add(&c->bytes, b, sizeof(b));
	c->nr++;
}

bool uni_blob_failed(const struct uni_blob *b)
{
	bool failed = b->failed;

	for (size_t i = 0; i < b->columns.nr; i++)
		failed = failed || uni_strbuf_failed(&b->columns.v[i]->bytes);
	return failed;
}

void uni_blob_describe(const struct uni_blob *b, struct uni_json *j)
{
	uni_json_key(j, "columns");
	uni_json_array(j);
	for (size_t i = 0; i < b->columns.nr; i++) {
		const struct uni_column *c = b->columns.v[i];
		uint64_t nr = c->nr, bytes = c->bytes.len;

		for (size_t k = 0; k < c->parts.nr; k++) {
			nr += c->parts.v[k]->nr;
			bytes += c->parts.v[k]->bytes.len;
		}
		uni_json_object(j);
		uni_json_kv(str, j, "name", c->name);
		uni_json_kv(u64, j, "nr", nr);
		uni_json_kv(u64, j, "bytes", bytes);
		uni_json_object_end(j);
	}
	uni_json_array_end(j);
}
