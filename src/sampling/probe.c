/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/probe.h"

#include <string.h>

#include "base/checked.h"
#include "sampling/pages.h"

static unsigned distinct_bytes(const uint8_t *p)
{
	bool seen[256] = { false };
	unsigned n = 0;

	for (size_t i = 0; i < UNI_PROBE_BYTES; i++) {
		n += !seen[p[i]];
		seen[p[i]] = true;
	}
	return n;
}

/* The most distinctive bytes of one page of code, with its first byte at off. */
static bool pick_page_probe(const struct uni_segment *seg, size_t off, struct uni_probe *ret)
{
	unsigned best = 8; /* fewer different ones are padding */
	size_t end = uni_min(off + UNI_PAGE_BYTES, seg->file_size);
	bool any = false;

	for (; off <= end && end - off >= UNI_PROBE_BYTES; off += UNI_PROBE_BYTES) {
		unsigned d = distinct_bytes(seg->bytes + off);

		if ((seg->vaddr + off) % UNI_PAGE_BYTES > UNI_PAGE_BYTES - UNI_PROBE_BYTES ||
			d <= best)
			continue;
		best = d;
		ret->svma = seg->vaddr + off;
		memcpy(ret->bytes, seg->bytes + off, UNI_PROBE_BYTES);
		any = true;
	}
	return any;
}

size_t uni_probes_of(const struct uni_segment *seg, struct uni_probe ret[UNI_PROBES])
{
	size_t pages = seg->exec ? seg->file_size / UNI_PAGE_BYTES + 1 : 0, nr = 0;

	for (size_t k = 0; pages != 0 && k < uni_min(pages, (size_t)UNI_PROBES); k++) {
		size_t page = k * (pages - 1) / (UNI_PROBES - 1);

		nr += pick_page_probe(seg, page * UNI_PAGE_BYTES, &ret[nr]);
	}
	return nr;
}
