/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gzip, then base64 in inert script elements: a browser can unpack that without a server. A string
 * of JavaScript ends at half a gigabyte, so there are several parts. With a server, it is gzip
 * alone.
 */
#include <stdlib.h>
#include <string.h>

#define ZLIB_CONST
#include <zlib.h>

#include "page/blob.h"

#define LEVEL	   4			/* 5 % larger than level 6, in a third of the time */
#define LEVEL_BARE 1			/* sent within this machine, while somebody waits */
#define PART_BYTES (UINT64_C(48) << 20) /* before base64; a multiple of CHUNK */
#define CHUNK	   49152		/* a multiple of three, so that only the end has padding */
#define PIECE	   16384		/* of a column, compressed once: flushed at its end */
#define GZIP_HEAD  10
#define RAW	   (-15) /* deflate alone, with the largest window */

struct uni_pack {
	struct uni_sink *out;
	z_stream z;
	uint64_t packed, len; /* len: size before compression */
	unsigned parts;
	uint32_t crc;
	char id;
	int rc;
	unsigned char buf[CHUNK];
};

static void put_base64(struct uni_sink *out, const unsigned char *p, size_t len)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; len > 0; p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (len > 1 ? (uint32_t)p[1] << 8 : 0) |
			     (len > 2 ? p[2] : 0);
		char four[4] = { digit[v >> 18], digit[v >> 12 & 63],
			len > 1 ? digit[v >> 6 & 63] : '=', len > 2 ? digit[v & 63] : '=' };

		uni_sink_write(out, four, sizeof(four));
		len -= len > 3 ? 3 : len;
	}
}

static void end_chunk(struct uni_pack *p)
{
	size_t len = CHUNK - p->z.avail_out;

	p->z.next_out = p->buf;
	p->z.avail_out = CHUNK;
	if (p->id == 0) {
		uni_sink_write(p->out, p->buf, len);
		return;
	}
	if (len != 0 && p->packed % PART_BYTES == 0)
		uni_sink_printf(p->out, "%s<script type=\"application/octet-stream\" id=\"%c%u\">",
			p->parts != 0 ? "</script>\n" : "", p->id, p->parts);
	if (len != 0 && p->packed % PART_BYTES == 0)
		p->parts++;
	put_base64(p->out, p->buf, len);
	p->packed += len;
}

int uni_pack_begin(struct uni_sink *out, char id, struct uni_pack **ret, struct uni_err *err)
{
	struct uni_pack *p = calloc(1, sizeof(*p));

	if (p == NULL || deflateInit2(&p->z, id == 0 ? LEVEL_BARE : LEVEL, Z_DEFLATED, RAW, 8,
				 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return uni_err_nomem(err);
	}
	p->out = out;
	p->id = id;
	p->crc = (uint32_t)crc32(0, NULL, 0);
	/* RFC 1952: deflate, no name, no time, unknown system. */
	memcpy(p->buf, "\x1f\x8b\x08\0\0\0\0\0\0\xff", GZIP_HEAD);
	p->z.next_out = p->buf + GZIP_HEAD;
	p->z.avail_out = CHUNK - GZIP_HEAD;
	*ret = p;
	return 0;
}

/* deflate() fails only if its state is damaged; an input's length fits an unsigned. */
static void deflate_piece(struct uni_pack *p, const unsigned char *data, unsigned len, int flush)
{
	bool full;
	int r;

	p->z.next_in = data;
	p->z.avail_in = len;
	do {
		r = deflate(&p->z, flush);
		if (r == Z_STREAM_ERROR)
			p->rc = -UNI_EIO;
		full = p->z.avail_out == 0;
		if (full)
			end_chunk(p);
	} while (p->rc == 0 && (p->z.avail_in != 0 || (flush == Z_FULL_FLUSH && full) ||
				       (flush == Z_FINISH && r != Z_STREAM_END)));
}

void uni_pack_put(struct uni_pack *p, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len != 0 && p->rc == 0) {
		unsigned n = len > 1u << 30 ? 1u << 30 : (unsigned)len;

		p->crc = (uint32_t)crc32(p->crc, at, n);
		p->len += n;
		deflate_piece(p, at, n, Z_NO_FLUSH);
		at += n;
		len -= n;
	}
}

/* Compresses one more piece of the column; after the flush nothing refers back to it. */
static bool pack_piece(struct uni_column *c, z_stream *z)
{
	const unsigned char *from = (const unsigned char *)c->bytes.s + c->piece.nr * PIECE;
	struct uni_column_piece piece = { .crc = (uint32_t)crc32(crc32(0, NULL, 0), from, PIECE) };
	/* Incompressible data are stored in blocks, each with a head of five bytes. */
	size_t most = deflateBound(z, PIECE) + 16;

	if (!uni_strbuf_reserve(&c->packed, most))
		return false;
	z->next_in = from;
	z->avail_in = PIECE;
	z->next_out = (unsigned char *)c->packed.s + c->packed.len;
	z->avail_out = (unsigned)most;
	if (deflate(z, Z_FULL_FLUSH) != Z_OK || z->avail_in != 0 || z->avail_out == 0)
		return false;
	piece.end = c->packed.len + most - z->avail_out;
	if (!uni_vec_push(&c->piece, piece))
		return false;
	c->packed.len = piece.end;
	c->packed.s[piece.end] = '\0';
	return true;
}

/* Compresses all whole pieces; on failure the rest is compressed later, with the page. */
static void pack_pieces(struct uni_column *c)
{
	z_stream z = { 0 };

	if (c->kept / PIECE <= c->piece.nr ||
		deflateInit2(&z, LEVEL_BARE, Z_DEFLATED, RAW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return;
	while (c->kept / PIECE > c->piece.nr && pack_piece(c, &z))
		;
	(void)deflateEnd(&z);
}

void uni_pack_column(struct uni_pack *p, struct uni_column *c)
{
	size_t done = 0;

	for (size_t i = 0; i < c->parts.nr; i++)
		uni_pack_column(p, c->parts.v[i]);
	if (p->id == 0)
		pack_pieces(c);
	if (p->id == 0 && c->piece.nr != 0 && p->rc == 0) {
		/* Flushes to whole bytes, so that later data do not refer back. */
		deflate_piece(p, NULL, 0, Z_FULL_FLUSH);
		end_chunk(p);
		uni_sink_write(p->out, c->packed.s, c->packed.len);
		for (size_t i = 0; i < c->piece.nr; i++)
			p->crc = (uint32_t)crc32_combine(p->crc, c->piece.v[i].crc, PIECE);
		done = c->piece.nr * PIECE;
		p->len += done;
	}
	uni_pack_put(p, c->bytes.s + done, c->bytes.len - done);
}

/* RFC 1952: checksum and length of the data, as 32 bits each, little-endian. */
static void put_trailer(struct uni_pack *p)
{
	for (unsigned i = 0; i < 8; i++) {
		if (p->z.avail_out == 0)
			end_chunk(p);
		*p->z.next_out++ =
			(unsigned char)((i < 4 ? p->crc : (uint32_t)p->len) >> 8 * (i % 4));
		p->z.avail_out--;
	}
}

int uni_pack_end(struct uni_pack *p, struct uni_err *err)
{
	int rc;

	if (p->rc == 0)
		deflate_piece(p, NULL, 0, Z_FINISH);
	put_trailer(p);
	end_chunk(p);
	if (p->id != 0)
		uni_sink_puts(p->out, "</script>\n");
	(void)deflateEnd(&p->z);
	rc = p->rc;
	free(p);
	return rc == 0 ? 0 : uni_err_set(err, UNI_EIO, "cannot compress the page's data");
}
