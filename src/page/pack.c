/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gzip, then base64 in inert script elements: what a browser can unpack without a server. A string
 * of JavaScript ends at half a gigabyte, so there are several parts. Where there is a server, it is
 * gzip alone.
 */
#include <stdlib.h>

#define ZLIB_CONST
#include <zlib.h>

#include "page/blob.h"

#define LEVEL	   4			/* a byte in twenty more than 6, in a third of the time */
#define LEVEL_BARE 1			/* it goes to this very machine, and somebody waits */
#define PART_BYTES (UINT64_C(48) << 20) /* before base64; a multiple of CHUNK */
#define CHUNK	   49152 /* a multiple of three, so that padding is at the end only */

struct uni_pack {
	struct uni_sink *out;
	z_stream z;
	uint64_t packed;
	unsigned parts;
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

	if (p == NULL || deflateInit2(&p->z, id == 0 ? LEVEL_BARE : LEVEL, Z_DEFLATED, 15 + 16, 8,
				 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(p);
		return uni_err_set(err, UNI_ENOMEM, "out of memory");
	}
	p->out = out;
	p->id = id;
	p->z.next_out = p->buf;
	p->z.avail_out = CHUNK;
	*ret = p;
	return 0;
}

/* deflate() fails only where its state was damaged; its input is at most what an unsigned holds. */
static void run(struct uni_pack *p, const unsigned char *data, unsigned len, int flush)
{
	int r;

	p->z.next_in = data;
	p->z.avail_in = len;
	do {
		r = deflate(&p->z, flush);
		if (r == Z_STREAM_ERROR)
			p->rc = -UNI_EIO;
		if (p->z.avail_out == 0)
			end_chunk(p);
	} while (p->rc == 0 && (p->z.avail_in != 0 || (flush == Z_FINISH && r != Z_STREAM_END)));
}

void uni_pack_put(struct uni_pack *p, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len != 0 && p->rc == 0) {
		unsigned n = len > 1u << 30 ? 1u << 30 : (unsigned)len;

		run(p, at, n, Z_NO_FLUSH);
		at += n;
		len -= n;
	}
}

int uni_pack_end(struct uni_pack *p, struct uni_err *err)
{
	int rc;

	if (p->rc == 0)
		run(p, NULL, 0, Z_FINISH);
	end_chunk(p);
	if (p->id != 0)
		uni_sink_puts(p->out, "</script>\n");
	(void)deflateEnd(&p->z);
	rc = p->rc;
	free(p);
	return rc == 0 ? 0 : uni_err_set(err, UNI_EIO, "cannot compress the page's data");
}
