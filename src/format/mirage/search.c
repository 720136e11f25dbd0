/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a ring in a guest's memory: packets that lie one behind the other. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "format/mirage/packet.h"

#define CHUNK 262144u
#define PAGE  4096u
#define MARK  20u /* magic and uuid */

/* The packet's size; 0: none begins there. A program that writes such rings has the mark, too: in a
 * header of size 0. */
static uint64_t read_head(
	const struct uni_mirage_memory *m, uint64_t addr, uint64_t most, uint64_t *content_ret)
{
	uint8_t head[UNI_MIRAGE_HEAD];
	struct uni_cursor c = uni_cursor_make(head, sizeof(head));
	uint32_t mark, bits, content;

	if (most < sizeof(head) || m->read(m->ctx, addr, head, sizeof(head)) != 0)
		return 0;
	mark = uni_cursor_u32(&c);
	if (mark != UNI_MIRAGE_MAGIC || memcmp(head + 4, uni_mirage_uuid, 16) != 0)
		return 0;
	uni_cursor_seek(&c, MARK);
	bits = uni_cursor_u32(&c);
	(void)uni_cursor_u16(&c);
	content = uni_cursor_u32(&c);
	if (bits % 8 != 0 || content % 8 != 0 || content > bits || content / 8 < UNI_MIRAGE_HEAD ||
		bits / 8 > most)
		return 0;
	*content_ret = content / 8;
	return bits / 8;
}

/* The packets from addr on, which touch each other; size 0: there is none. */
static struct uni_mirage_found follow_packets(
	const struct uni_mirage_memory *m, uint64_t addr, uint64_t most)
{
	struct uni_mirage_found f = { .addr = addr };

	most = uni_min(most, (uint64_t)UNI_MIRAGE_RING_MAX);
	while (!m->stop(m->ctx)) {
		uint64_t content, size = read_head(m, addr + f.size, most - f.size, &content);

		if (size == 0)
			break;
		f.size += size;
		f.used += content - UNI_MIRAGE_HEAD;
	}
	return f;
}

/* As much as can be read at once; 0: no header can be. */
static size_t read_some(
	const struct uni_mirage_memory *m, uint64_t addr, uint64_t left, uint8_t *buf)
{
	for (size_t len = (size_t)uni_min(left, (uint64_t)CHUNK); len >= UNI_MIRAGE_HEAD;
		len /= 2) {
		if (m->read(m->ctx, addr, buf, len) == 0)
			return len;
	}
	return 0;
}

/* How far the bytes were looked through: behind the last packet, or where a mark may begin. */
static uint64_t search_bytes(const struct uni_mirage_memory *m, uint64_t addr, uint64_t left,
	const uint8_t *buf, size_t len, struct uni_mirage_found *best)
{
	size_t at = 0;

	while (at < len && !m->stop(m->ctx)) {
		const uint8_t *uuid = memmem(buf + at, len - at, uni_mirage_uuid, 16);
		size_t mark = uuid != NULL ? (size_t)(uuid - buf) : len;
		struct uni_mirage_found f;

		if (uuid == NULL)
			break;
		at = mark + 16;
		if (mark < 4)
			continue;
		f = follow_packets(m, addr + mark - 4, left - (mark - 4));
		if (f.size != 0 && (best->size == 0 || f.used > best->used))
			*best = f;
		if (f.size > len - (mark - 4))
			return mark - 4 + f.size;
		if (f.size > MARK)
			at = mark - 4 + (size_t)f.size;
	}
	if (len == left)
		return len;
	return len - uni_min(len - uni_min(at, len), (size_t)MARK - 1);
}

int uni_mirage_search(const struct uni_mirage_memory *m, uint64_t start, uint64_t size,
	struct uni_mirage_found *best)
{
	_cleanup_free_ uint8_t *buf = malloc(CHUNK);
	uint64_t at = 0;

	if (buf == NULL)
		return -UNI_ENOMEM;
	while (at < size && !m->stop(m->ctx)) {
		size_t len = read_some(m, start + at, size - at, buf);
		uint64_t page = uni_min(size - at, (uint64_t)PAGE - (start + at) % PAGE);

		at += len == 0 ? page : search_bytes(m, start + at, size - at, buf, len, best);
	}
	return 0;
}
