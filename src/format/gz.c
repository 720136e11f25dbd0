/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/gz.h"

#include <stdlib.h>
/* Makes zlib declare its input const. */
#define ZLIB_CONST
#include <zlib.h>

#include "base/checked.h"
#include "base/err.h"

#define WINDOW_GZIP (15 + 16) /* zlib's way to ask for a gzip header */

struct uni_gz {
	struct uni_sink *out;
	z_stream z;
	bool failed;
	uint8_t buf[65536];
};

int uni_gz_open(struct uni_sink *out, struct uni_gz **ret)
{
	struct uni_gz *z = calloc(1, sizeof(*z));

	if (z == NULL)
		return -UNI_ENOMEM;
	z->out = out;
	if (deflateInit2(&z->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_GZIP, 8,
		    Z_DEFAULT_STRATEGY) != Z_OK) {
		free(z);
		return -UNI_ENOMEM;
	}
	*ret = z;
	return 0;
}

static void run_deflate(struct uni_gz *z, int flush)
{
	int r;

	do {
		z->z.next_out = z->buf;
		z->z.avail_out = sizeof(z->buf);
		r = deflate(&z->z, flush);
		z->failed = z->failed || r == Z_STREAM_ERROR;
		uni_sink_write(z->out, z->buf, sizeof(z->buf) - z->z.avail_out);
	} while (!z->failed && z->z.avail_out == 0);
}

void uni_gz_write(struct uni_gz *z, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len != 0 && !z->failed) {
		uInt part = (uInt)uni_min(len, (size_t)1 << 30);

		z->z.next_in = p;
		z->z.avail_in = part;
		run_deflate(z, Z_NO_FLUSH);
		p += part;
		len -= part;
	}
}

int uni_gz_close(struct uni_gz *z)
{
	int rc;

	if (z == NULL)
		return 0;
	run_deflate(z, Z_FINISH);
	rc = z->failed ? -UNI_EIO : 0;
	(void)deflateEnd(&z->z);
	free(z);
	return rc;
}
