/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/linkmap.h"

#include <elf.h>

#include "base/checked.h"
#include "base/text.h"

#define ENTRIES_MAX 256u /* of a table; real ones have about 30 */

/* As 64-bit dynamic linkers have them (glibc's and musl's link.h). */
#define R_DEBUG_MAP    8u /* struct r_debug: int version, then the first link map */
#define LINK_MAP_WORDS 4u /* struct link_map: bias, name, its dynamic table, the next one */

/* Address of the list, from DT_DEBUG; 0: none. */
static uint64_t find_list(struct uni_as *as, uint64_t dynamic, uint64_t size)
{
	uint64_t nr = uni_min(size / sizeof(Elf64_Dyn), ENTRIES_MAX), first;

	for (uint64_t i = 0; i < nr; i++) {
		uint64_t at = dynamic + i * sizeof(Elf64_Dyn), tag, value;

		if (uni_as_read_u64(as, uni_gva_of(at), &tag) != 0 || tag == DT_NULL)
			return 0;
		if (tag != DT_DEBUG)
			continue;
		if (uni_as_read_u64(as, uni_gva_of(at + 8), &value) != 0 || value == 0 ||
			uni_as_read_u64(as, uni_gva_of(value + R_DEBUG_MAP), &first) != 0)
			return 0;
		return first;
	}
	return 0;
}

static void read_name(struct uni_as *as, uint64_t at, struct uni_link *ret)
{
	char raw[sizeof(ret->path)];
	size_t n = at != 0 ? uni_as_read_some(as, uni_gva_of(at), raw, sizeof(raw) - 1) : 0;

	(void)uni_text_clean(ret->path, sizeof(ret->path), raw, n);
}

size_t uni_links_read(struct uni_as *as, const struct uni_pt_root *root, uint64_t dynamic,
	uint64_t size, struct uni_link *ret, size_t max)
{
	uint64_t map, word[LINK_MAP_WORDS];
	size_t nr = 0;

	uni_as_begin(as, root);
	map = find_list(as, dynamic, size);
	while (map != 0 && nr < max) {
		uni_as_begin(as, root); /* each with a budget of its own */
		if (uni_as_read(as, uni_gva_of(map), word, sizeof(word)) != 0)
			break;
		ret[nr].bias = word[0];
		read_name(as, word[1], &ret[nr]);
		nr++;
		map = word[3];
	}
	return nr;
}
