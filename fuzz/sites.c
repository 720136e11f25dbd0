/* SPDX-License-Identifier: BSD-2-Clause */
/* Places to trace in an ELF image: whatever it says, they keep the promises of sites.h. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "obj/sites.h"
#include "told.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check_site(const struct uni_image *img, const struct uni_site *s, bool first)
{
	uint8_t b[UNI_SITE_BYTES], on[UNI_SITE_BYTES];

	told_u64(s->addr);
	told(s->off, sizeof(s->off));
	require(s->kind == (first ? UNI_SITE_ENTRY : UNI_SITE_EXIT));
	require(uni_image_bytes(img, s->addr, b, sizeof(b)));
	require(memcmp(b, s->off, sizeof(b)) == 0);
	require(uni_site_on(s, 0x1000, s->addr + 0x123456, on));
	require(uni_site_hook(s, 0x1000, on) == s->addr + 0x123456);
}

static int by_addr(const void *a, const void *b)
{
	const struct uni_site *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void check(const struct uni_image *img, struct uni_sites *s)
{
	for (size_t i = 0; i < s->nr_functions; i++) {
		const struct uni_site_function *fn = &s->function[i];

		require(i == 0 || fn->addr > s->function[i - 1].addr);
		require(uni_sites_at(s, fn->addr) == fn);
		require(fn->nr != 0 && fn->first < s->nr_sites &&
			fn->nr <= s->nr_sites - fn->first);
		require(!fn->exits_known || s->relocations);
		for (uint32_t k = 0; k < fn->nr; k++)
			check_site(img, &s->site[fn->first + k], k == 0);
	}
	/* No two share a byte. */
	qsort(s->site, s->nr_sites, sizeof(s->site[0]), by_addr);
	for (size_t i = 1; i < s->nr_sites; i++)
		require(s->site[i].addr - s->site[i - 1].addr >= UNI_SITE_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uni_image *img;
	struct uni_sites *sites;
	void *copy;

	if (uni_image_from_memory("fuzz", data, size, &img, NULL) != 0)
		return 0;
	copy = malloc(size + 1);
	require(copy != NULL);
	memcpy(copy, data, size);
	if (uni_sites_from_memory(img, copy, size, &sites, NULL) == 0) {
		check(img, sites);
		uni_sites_destroy(sites);
	}
	free(copy);
	uni_image_destroy(img);
	return 0;
}
