/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/loaded.h"

#include <elf.h>
#include <string.h>

#include "base/checked.h"

#define PT_PRESENT  1u
#define PT_ACCESSED 0x60u /* and dirty */
/* No address has these bits: no guest that has tables in its code has 64 TiB of memory. */
#define PT_NONE (UINT64_C(0x7fff) << 46 | UINT64_C(1) << 62)

#define PERCPU_MOST (1u << 22) /* bytes of Linux' variables of each CPU, which are linked at 0 */

/* Does the image have memory at an address of which `mask` has the known bits? */
static bool is_image(const struct uni_image *img, uint64_t value, uint64_t mask)
{
	for (size_t i = 0; i < uni_image_nr_segments(img); i++) {
		const struct uni_segment *s = uni_image_segment(img, i);

		if (((value - s->vaddr) & mask) <= s->mem_size)
			return true;
	}
	return false;
}

/* A distance from the code to a variable that is not moved. The field is at `svma`, and up to four
 * bytes of the instruction are behind it. */
static bool is_percpu(uint64_t svma, uint32_t distance)
{
	return (uint32_t)svma + 8 + distance < PERCPU_MOST;
}

static bool is_moved_field(
	const struct uni_image *img, const struct uni_code_page *p, size_t at, uint64_t bias)
{
	uint32_t now, file;

	memcpy(&now, p->now + at, sizeof(now));
	memcpy(&file, p->file + at, sizeof(file));
	if (now - file == (uint32_t)bias)
		return is_image(img, file, UINT32_MAX);
	return file - now == (uint32_t)bias && is_percpu(p->svma + at, file);
}

bool uni_code_is_moved(
	const struct uni_image *img, const struct uni_code_page *p, size_t i, uint64_t bias)
{
	for (size_t at = i < 7 ? 0 : i - 7; at <= i; at++) {
		uint64_t now, file;

		if (at + 4 > i && at + 4 <= p->len && is_moved_field(img, p, at, bias))
			return true;
		if (at + 8 > p->len)
			continue;
		memcpy(&now, p->now + at, sizeof(now));
		memcpy(&file, p->file + at, sizeof(file));
		if (now - file == bias && is_image(img, file, UINT64_MAX))
			return true;
	}
	return false;
}

/* Each entry is empty, or present and has an address that may exist: no code is so for a page. */
static bool is_table(const struct uni_code_page *p)
{
	for (size_t at = 0; at < UNI_CODE_PAGE; at += 8) {
		uint64_t e;

		memcpy(&e, p->file + at, sizeof(e));
		if (e != 0 && ((e & PT_PRESENT) == 0 || (e & PT_NONE) != 0))
			return false;
	}
	return true;
}

bool uni_code_is_table(const struct uni_image *img, const struct uni_code_page *p, size_t i)
{
	const struct uni_symbol *sym = uni_image_lookup(img, p->svma + i);
	size_t at = i - i % 8;
	uint64_t now, file;

	if (p->len != UNI_CODE_PAGE || p->svma % UNI_CODE_PAGE != 0 ||
		(sym != NULL && sym->type == STT_FUNC) || !is_table(p))
		return false;
	memcpy(&now, p->now + at, sizeof(now));
	memcpy(&file, p->file + at, sizeof(file));
	return (file & PT_PRESENT) != 0 && (file & ~now) == 0 &&
	       ((now ^ file) & ~(uint64_t)PT_ACCESSED) == 0;
}
