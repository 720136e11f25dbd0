/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the packets of a ring and their order, even if their headers are damaged. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "format/mirage/mirage.h"
#include "format/mirage/packet.h"

#define MARK  20 /* bytes that say that a packet begins */
#define ALIKE 17 /* of these have to be right: the uuid alone is in programs, too */

const uint8_t uni_mirage_uuid[16] = { 0x05, 0x88, 0x3b, 0x8d, 0x52, 0x1a, 0x48, 0x7b, 0xb3, 0x97,
	0x45, 0x6a, 0xb1, 0x50, 0x68, 0x0c };
static const uint8_t magic[4] = { 0xc1, 0x1f, 0xfc, 0xc1 };

/* Looks for headers from the data's beginning to its end, once. */
struct finder {
	const uint8_t *data;
	size_t size;
	size_t magic, uuid; /* headers that may begin there, by either; size: there are no more */
};

/* The first one at or after `from`, or size. */
static size_t find_bytes(const struct finder *f, size_t from, const void *what, size_t len)
{
	const uint8_t *at =
		from < f->size ? memmem(f->data + from, f->size - from, what, len) : NULL;

	return at == NULL ? f->size : (size_t)(at - f->data);
}

static size_t find_uuid(const struct finder *f, size_t from)
{
	size_t at = find_bytes(f, from + sizeof(magic), uni_mirage_uuid, sizeof(uni_mirage_uuid));

	return at == f->size ? at : at - sizeof(magic);
}

/* A few bytes of it may be damaged. */
static bool packet_begins(const struct finder *f, size_t at)
{
	unsigned alike = 0;

	if (f->size - at < MARK)
		return false;
	for (size_t i = 0; i < MARK; i++)
		alike += f->data[at + i] ==
			 (i < sizeof(magic) ? magic[i] : uni_mirage_uuid[i - sizeof(magic)]);
	return alike >= ALIKE;
}

static struct finder finder_make(const void *data, size_t size)
{
	struct finder f = { .data = data, .size = size };

	f.magic = find_bytes(&f, 0, magic, sizeof(magic));
	f.uuid = find_uuid(&f, 0);
	return f;
}

/* The first header at or after `from`, which never decreases; size: there is none. */
static size_t next_header(struct finder *f, size_t from)
{
	for (;;) {
		size_t at;

		if (f->magic < from)
			f->magic = find_bytes(f, from, magic, sizeof(magic));
		if (f->uuid < from)
			f->uuid = find_uuid(f, from);
		at = uni_min(f->magic, f->uuid);
		if (at == f->size || packet_begins(f, at))
			return at;
		from = at + 1;
	}
}

/*
 * The packet at `at`; the next one begins at `end`, if there is a next one. The length in its
 * header is used as far as possible. A packet that the file's end cuts off, or that states more
 * than fits, is read as far as it exists.
 */
static struct uni_mirage_packet packet_at(const uint8_t *data, size_t size, size_t at, size_t end)
{
	struct uni_cursor c = uni_cursor_make(data + at, end - at);
	struct uni_mirage_packet p = { .at = at };
	uint64_t bits, content;

	uni_cursor_seek(&c, MARK);
	bits = uni_cursor_u32(&c);
	p.count = uni_cursor_u16(&c);
	content = uni_cursor_u32(&c);
	p.size = (size_t)(bits / 8);
	p.content = (size_t)(content / 8);
	if (bits % 8 != 0 || p.size < UNI_MIRAGE_HEAD || p.size > end - at || p.content > p.size)
		p.size = end - at;
	if (content % 8 != 0 || p.content < UNI_MIRAGE_HEAD || p.content > p.size)
		p.content = p.size;
	p.unused = p.content < UNI_MIRAGE_HEAD + UNI_MIRAGE_EVENT_HEAD;
	if (!p.unused) {
		uni_cursor_seek(&c, UNI_MIRAGE_HEAD);
		p.first = uni_cursor_u64(&c);
	}
	return p;
}

/* A program that writes such traces also contains the mark, but without a packet after it. */
static bool is_packet(const uint8_t *data, size_t size, size_t at)
{
	struct uni_cursor c = uni_cursor_make(data + at, size - at);
	uint64_t bits, content;

	uni_cursor_seek(&c, MARK);
	bits = uni_cursor_u32(&c);
	(void)uni_cursor_u16(&c);
	content = uni_cursor_u32(&c);
	return !c.failed && bits % 8 == 0 && content % 8 == 0 && content <= bits &&
	       content / 8 >= UNI_MIRAGE_HEAD;
}

bool uni_mirage_is(const void *data, size_t size)
{
	struct finder f = finder_make(data, size);
	size_t at = next_header(&f, 0);

	while (at != 0 && at != size && !is_packet(data, size, at))
		at = next_header(&f, at + 1);
	return at != size;
}

/* End of the packet at `at` according to its header; 0: not in the data. */
static size_t told_end(const uint8_t *data, size_t size, size_t at)
{
	struct uni_cursor c = uni_cursor_make(data + at, size - at);
	uint64_t bytes;

	if (!is_packet(data, size, at))
		return 0;
	uni_cursor_seek(&c, MARK);
	bytes = uni_cursor_u32(&c) / 8;
	return bytes > size - at ? 0 : at + (size_t)bytes;
}

/* The header after the packet at `begin`. A text in it may look like a header. Such a text leads
 * neither to another header nor to the end; this packet's own header does. */
static size_t header_behind(struct finder *f, size_t begin)
{
	size_t own = told_end(f->data, f->size, begin);
	size_t at = next_header(f, begin + UNI_MIRAGE_HEAD);

	if (own != f->size && (own == 0 || !packet_begins(f, own)))
		return at;
	while (at < own) {
		size_t end = told_end(f->data, f->size, at);

		if (end == f->size || (end != 0 && packet_begins(f, end)))
			return at;
		at = next_header(f, at + 1);
	}
	return at;
}

static void pass_over(struct uni_mirage_stats *st, size_t from, size_t to)
{
	if (from == to)
		return;
	if (st->damaged++ == 0)
		st->first_damage = from;
	st->damaged_bytes += to - from;
}

int uni_mirage_scan(const uint8_t *data, size_t size, struct uni_mirage_packets *ret,
	struct uni_mirage_stats *st)
{
	struct finder f = finder_make(data, size);
	size_t at = 0, begin = next_header(&f, 0), end;

	while (begin != size && size - begin >= UNI_MIRAGE_HEAD) {
		struct uni_mirage_packet p;

		pass_over(st, at, begin);
		end = header_behind(&f, begin);
		p = packet_at(data, size, begin, end);
		if (!p.unused && !uni_vec_push(&ret->all, p))
			return -UNI_ENOMEM;
		st->unused += p.unused;
		at = begin + p.size;
		begin = end;
	}
	pass_over(st, at, size);
	return 0;
}

/*
 * Finds the oldest packet. The file has packets in order, except at one place: there the ring's
 * newest packet precedes its oldest. At that place time goes back, and the counter does not go on
 * by one. A damaged header elsewhere shows one of these two signs, never both; at that place it may
 * hide one. A damaged counter says less than times of three events, but more than one time does.
 */
static size_t find_oldest(const struct uni_mirage_packets *packets)
{
	size_t nr = packets->all.nr, best = 0;
	unsigned most = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct uni_mirage_packet *p = &packets->all.v[i],
					       *before = &packets->all.v[(i + nr - 1) % nr];
		bool jumps = p->count != (uint16_t)(before->count + 1);
		bool sure = p->middle != 0 && before->middle != 0;
		bool back = sure ? p->middle < before->middle : p->first < before->first;
		unsigned sign = (sure ? 4u : 2u) * back + 3u * jumps;

		if (sign > most) {
			most = sign;
			best = i;
		}
	}
	return best;
}

int uni_mirage_rotate(struct uni_mirage_packets *packets)
{
	struct uni_mirage_packets r = { 0 };
	size_t nr = packets->all.nr, first = find_oldest(packets);

	for (size_t i = 0; i < nr; i++) {
		if (!uni_vec_push(&r.all, packets->all.v[(first + i) % nr])) {
			uni_vec_free(&r.all);
			return -UNI_ENOMEM;
		}
	}
	uni_vec_free(&packets->all);
	*packets = r;
	return 0;
}
