/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The places of the image's code. A kernel that moves itself runs elsewhere than it is linked for,
 * and perhaps at both places. The guest's pages of code are compared with the image's, as they
 * come. Code of the image has the addresses that it is linked for, wherever it runs.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/plugin.h"

#define PAGE   4096u
#define PLACES 8u
#define SEEN   1024u /* pages whose answer is kept */
#define ENOUGH 64u   /* bytes of a page that tell it from others */

/* Distances that are none: of code that is not the image's, and of such code where the image is
 * linked. The latter is shown where nothing of a guest is. */
#define NOT_OURS UINT64_C(1)
#define OTHER	 (0 - UINT64_C(0x700000000000))

struct seen {
	uint64_t page, sum, moved; /* moved: as places_moved() says of this page */
};

static struct {
	struct code_piece *piece;
	uint8_t *bytes; /* of all pieces, one behind the other */
	uint64_t nr, nr_own;
	uint64_t moved[PLACES]; /* distances found so far */
	uint32_t nr_moved;
	uint64_t now; /* of the image's newest block */
	struct seen seen[SEEN];
} places;

void places_init(struct code_piece *piece, uint64_t nr, uint64_t nr_own, uint8_t *bytes)
{
	memset(&places, 0, sizeof(places));
	places.piece = piece;
	places.bytes = bytes;
	places.nr = nr;
	places.nr_own = nr_own;
}

static const struct code_piece *piece_of(uint64_t pc)
{
	for (uint64_t i = 0; i < places.nr; i++) {
		if (pc - places.piece[i].start < places.piece[i].size)
			return &places.piece[i];
	}
	return NULL;
}

/* The page's code, unless QEMU knows no address of it. */
static const uint8_t *page_of(const struct qemu_plugin_tb *tb, uint64_t pc)
{
	const uint8_t *code = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(tb, 0));

	return code != NULL && (uintptr_t)code % PAGE == pc % PAGE ? code - pc % PAGE : NULL;
}

static uint64_t sum_of(const uint8_t *page)
{
	uint64_t sum = 0, word;

	for (unsigned i = 0; i < PAGE; i += sizeof(word)) {
		memcpy(&word, page + i, sizeof(word));
		sum = (sum ^ word) * UINT64_C(0x9fb21c651e98df25);
		sum ^= sum >> 32;
	}
	return sum;
}

/* Is it the image's page that is linked at `page`? Not every byte has to be the same: code may be
 * changed at boot. At least `part` of 8 are. */
static bool is_page(const uint8_t *code, uint64_t page, uint64_t pc, unsigned part)
{
	const struct code_piece *p = piece_of(page + pc % PAGE);
	uint64_t low, high;
	unsigned same = 0;

	if (p == NULL)
		return false;
	low = p->start > page ? p->start - page : 0;
	high = p->size - (page - p->start) < PAGE ? p->size - (page - p->start) : PAGE;
	if (high - low < ENOUGH)
		return false;
	for (uint64_t i = low; i < high; i++)
		same += code[i] == places.bytes[p->at + page + i - p->start];
	return same * 8 >= (high - low) * part;
}

static bool begins_alike(
	const uint8_t *code, const struct code_piece *p, uint64_t pc, uint64_t page)
{
	uint64_t at = page + pc % PAGE - p->start;

	return at < p->size && places.bytes[p->at + at] == code[pc % PAGE];
}

/* The only page of the image that is like it. */
static uint64_t search(const uint8_t *code, uint64_t pc)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < places.nr; i++) {
		const struct code_piece *p = &places.piece[i];

		uint64_t first = p->start / PAGE * PAGE;

		for (uint64_t page = first; page - first < p->size + p->start % PAGE;
			page += PAGE) {
			if (!begins_alike(code, p, pc, page) || !is_page(code, page, pc, 7))
				continue;
			if (found != 0)
				return 0;
			found = pc / PAGE * PAGE - page;
		}
	}
	return found;
}

static uint64_t find_moved(const uint8_t *code, uint64_t pc)
{
	bool is_linked = piece_of(pc) != NULL;
	uint64_t moved;

	if (is_linked && is_page(code, pc / PAGE * PAGE, pc, 4))
		return 0;
	for (uint32_t i = 0; i < places.nr_moved; i++) {
		if (is_page(code, pc / PAGE * PAGE - places.moved[i], pc, 4))
			return places.moved[i];
	}
	moved = places.nr_moved < PLACES ? search(code, pc) : 0;
	if (moved != 0)
		places.moved[places.nr_moved++] = moved;
	else if (is_linked)
		moved = places.now != 0 ? OTHER : 0;
	return moved != 0 || is_linked ? moved : NOT_OURS;
}

static uint64_t moved_of(const struct qemu_plugin_tb *tb, uint64_t pc)
{
	const uint8_t *code = page_of(tb, pc);
	struct seen *s = &places.seen[pc / PAGE % SEEN];
	uint64_t sum;

	if (code == NULL)
		return piece_of(pc) != NULL ? 0 : NOT_OURS;
	sum = sum_of(code);
	if (s->page != pc / PAGE || s->sum != sum)
		*s = (struct seen){ pc / PAGE, sum, find_moved(code, pc) };
	return s->moved;
}

uint64_t places_moved(const struct qemu_plugin_tb *tb)
{
	uint64_t pc = qemu_plugin_tb_vaddr(tb), moved;
	const struct code_piece *p;

	if (places.nr == 0)
		return 0;
	moved = moved_of(tb, pc);
	p = moved != NOT_OURS ? piece_of(pc - moved) : NULL;
	if (p != NULL && p < places.piece + places.nr_own)
		plugin.area.header->moved = places.now = moved;
	return moved;
}

uint64_t places_linked(uint64_t pc, uint64_t moved)
{
	if (moved == 0 || pc == NOWHERE)
		return pc;
	/* Other code calls what is there now. */
	if (moved == NOT_OURS)
		moved = places.now != 0 ? OTHER : 0;
	if (moved == OTHER)
		return piece_of(pc) != NULL ? pc - OTHER : pc;
	return piece_of(pc - moved) != NULL ? pc - moved : pc;
}
