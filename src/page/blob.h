/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Columns of numbers for the page, and how they get into it: docs/formats/page.md. A number is
 * stored in groups of seven bits, the lowest first, so that small ones take a byte.
 */
#ifndef UNI_PAGE_BLOB_H
#define UNI_PAGE_BLOB_H

#include "base/err.h"
#include "base/json.h"
#include "base/sink.h"
#include "base/vec.h"

struct uni_column_piece {
	size_t end; /* in packed */
	uint32_t crc;
};

struct uni_blob;

struct uni_column {
	const struct uni_blob *owner;
	char name[24];
	struct uni_strbuf bytes;
	uint64_t nr;
	/*
	 * Of data that grow: bytes before this stay as they are, and what pieces of them are when
	 * they are compressed is kept: the last of `piece` ends with `packed`.
	 */
	size_t kept;
	struct uni_strbuf packed;
	UNI_VEC(struct uni_column_piece) piece;
	/* Instead of bytes: columns that follow each other, another blob's. */
	UNI_VEC(struct uni_column *) parts;
};

/* Out of memory is remembered: uni_blob_failed(). Columns stay where they are. */
struct uni_blob {
	UNI_VEC(struct uni_column *) columns;
	bool failed;
};

void uni_blob_deinit(struct uni_blob *b);
/* NULL: out of memory; the functions below take that. */
struct uni_column *uni_blob_column(struct uni_blob *b, const char *name);
void uni_column_put(struct uni_column *c, uint64_t v);
/* Also negative ones: 0, -1, 1, -2, ... as 0, 1, 2, 3, ... */
void uni_column_put_signed(struct uni_column *c, int64_t v);
/* Eight bytes each, little-endian: a column has either these or the others. */
void uni_column_put_double(struct uni_column *c, double v);
bool uni_blob_failed(const struct uni_blob *b);
/* "columns": [{name, nr, bytes}], in the order of the bytes. */
void uni_blob_describe(const struct uni_blob *b, struct uni_json *j);

/* All columns of `from`, which stay its own: it must outlive b, and neither may be moved. */
void uni_blob_borrow(struct uni_blob *b, const struct uni_blob *from);

struct uni_pack;
/*
 * Compresses what is put and writes it to out as the page's data elements: id and 0, 1, ... With id
 * 0 it is the compressed bytes alone.
 */
int uni_pack_begin(struct uni_sink *out, char id, struct uni_pack **ret, struct uni_err *err);
void uni_pack_put(struct uni_pack *p, const void *data, size_t len);
/* A column's bytes; where these are to be compressed alone, what is kept of them is used. */
void uni_pack_column(struct uni_pack *p, struct uni_column *c);
int uni_pack_end(struct uni_pack *p, struct uni_err *err); /* frees */

#endif
