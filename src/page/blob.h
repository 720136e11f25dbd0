/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Columns of numbers for the page, and how they are put into it: docs/formats/page.md. A number is
 * stored in groups of seven bits, the lowest first, so that small numbers take a byte.
 */
#ifndef UNI_PAGE_BLOB_H
#define UNI_PAGE_BLOB_H

#include "base/err.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/vec.h"

struct uni_column_piece {
	size_t end; /* offset in packed */
	uint32_t crc;
};

struct uni_blob;

struct uni_column {
	const struct uni_blob *owner;
	char name[24];
	struct uni_strbuf bytes;
	uint64_t nr;
	/*
	 * For data that grow: the bytes before `kept` do not change any more. Their compressed
	 * pieces are kept in `packed`; the last of `piece` ends where `packed` ends.
	 */
	size_t kept;
	struct uni_strbuf packed;
	UNI_VEC(struct uni_column_piece) piece;
	/* Instead of bytes: columns of another blob, one after the other. */
	UNI_VEC(struct uni_column *) parts;
};

/* Remembers when memory ran out: uni_blob_failed(). Columns do not move. */
struct uni_blob {
	UNI_VEC(struct uni_column *) columns;
	bool failed;
};

void uni_blob_deinit(struct uni_blob *b);
/* Returns NULL when out of memory, which the functions below accept. */
struct uni_column *uni_blob_column(struct uni_blob *b, const char *name);
void uni_column_put(struct uni_column *c, uint64_t v);
/* Also takes negative numbers: stores 0, -1, 1, -2, ... as 0, 1, 2, 3, ... */
void uni_column_put_signed(struct uni_column *c, int64_t v);
/* Eight bytes each, little-endian. A column has either doubles only or integers only. */
void uni_column_put_double(struct uni_column *c, double v);
bool uni_blob_failed(const struct uni_blob *b);
/* Writes "columns": [{name, nr, bytes}], in the order of the bytes. */
void uni_blob_describe(const struct uni_blob *b, struct uni_json *j);

/* Adds all columns of `from`, which keeps them: it must outlive b, and neither may move. */
void uni_blob_borrow(struct uni_blob *b, const struct uni_blob *from);

struct uni_pack;
/*
 * Compresses all that is put, and writes it to out as the page's data elements: id and 0, 1, ...
 * With id 0 it writes the compressed bytes alone.
 */
int uni_pack_begin(struct uni_sink *out, char id, struct uni_pack **ret, struct uni_err *err);
void uni_pack_put(struct uni_pack *p, const void *data, size_t len);
/* Puts a column's bytes; with id 0, uses its pieces that are already compressed. */
void uni_pack_column(struct uni_pack *p, struct uni_column *c);
int uni_pack_end(struct uni_pack *p, struct uni_err *err); /* frees */

#endif
