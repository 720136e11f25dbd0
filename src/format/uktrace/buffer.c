/* SPDX-License-Identifier: BSD-2-Clause */
#include "format/uktrace/buffer.h"

#include <string.h>

#include "base/checked.h"
#include "base/cursor.h"

#define MAGIC 0x64685254u /* "TRhd" */

struct uni_ukt_reader uni_ukt_reader_make(const void *data, size_t size,
	const struct uni_ukt_defs *defs, unsigned ptr_size, uint64_t bias)
{
	return (struct uni_ukt_reader){
		.data = data, .size = size, .defs = defs, .ptr_size = ptr_size, .bias = bias
	};
}

/* { u32 magic, u32 size, u64 ns, pointer }; 32-bit ARM, too, pads it to a multiple of 8 */
size_t uni_ukt_head_size(unsigned ptr_size)
{
	(void)ptr_size;
	return 24;
}

static const struct uni_ukt_def *find_definition(const struct uni_ukt_reader *r, uint64_t cookie)
{
	const struct uni_ukt_def *def = uni_ukt_defs_find(r->defs, cookie);

	if (def == NULL && r->bias != 0)
		def = uni_ukt_defs_find(r->defs, cookie - r->bias);
	return def;
}

static uint64_t load_number(struct uni_cursor *c, unsigned size)
{
	uint64_t v = 0;
	const uint8_t *p = uni_cursor_take(c, size);

	for (unsigned i = 0; p != NULL && i < uni_min(size, 8u); i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* Do these bytes have exactly the arguments of the definition? */
static bool read_args(
	const struct uni_ukt_def *def, const uint8_t *data, size_t size, struct uni_ukt_record *ret)
{
	struct uni_cursor c = uni_cursor_make(data, size);

	for (unsigned i = 0; i < def->nr_args; i++) {
		struct uni_ukt_value *a = &ret->arg[i];

		*a = (struct uni_ukt_value){ 0 };
		if (def->arg[i].type == UNI_UKT_STRING) {
			a->s_len = uni_cursor_u8(&c);
			a->s = uni_cursor_take(&c, a->s_len);
		} else {
			a->v = load_number(&c, def->arg[i].size);
		}
	}
	return !c.failed && c.pos == size;
}

static bool magic_at(const struct uni_ukt_reader *r, size_t pos)
{
	uint32_t magic = MAGIC; /* hosts are little endian, as the guests are */

	return r->size - pos >= sizeof(magic) && memcmp(r->data + pos, &magic, sizeof(magic)) == 0;
}

/* A record of a tracepoint that is not known is one if another follows it, or nothing. */
static bool record_follows(const struct uni_ukt_reader *r, size_t pos)
{
	return pos == r->size || magic_at(r, pos);
}

/* The record at pos: its end, or 0 if there is none. */
static size_t record_at(const struct uni_ukt_reader *r, size_t pos, struct uni_ukt_record *ret)
{
	struct uni_cursor c = uni_cursor_make(r->data, r->size);
	const size_t head = uni_ukt_head_size(r->ptr_size);

	if (!magic_at(r, pos) || r->size - pos < head)
		return 0;
	uni_cursor_seek(&c, pos + 4);
	ret->size = uni_cursor_u32(&c);
	ret->ns = uni_cursor_u64(&c);
	ret->cookie = r->ptr_size == 4 ? uni_cursor_u32(&c) : uni_cursor_u64(&c);
	if (ret->size > r->size - pos - head)
		return 0;
	ret->def = find_definition(r, ret->cookie);
	if (ret->def == NULL || !ret->def->readable) {
		ret->def = NULL;
		return record_follows(r, pos + head + ret->size) ? pos + head + ret->size : 0;
	}
	return read_args(ret->def, r->data + pos + head, ret->size, ret) ? pos + head + ret->size
									 : 0;
}

bool uni_ukt_next(struct uni_ukt_reader *r, struct uni_ukt_record *ret)
{
	size_t from = r->pos, end = 0;

	while (r->pos < r->size) {
		const uint8_t *next;

		end = record_at(r, r->pos, ret);
		if (end != 0)
			break;
		next = memchr(r->data + r->pos + 1, MAGIC & 0xff, r->size - r->pos - 1);
		r->pos = next != NULL ? (size_t)(next - r->data) : r->size;
	}
	if (r->pos != from) {
		r->stats.damaged += r->pos - from;
		r->stats.gaps++;
	}
	if (r->pos == r->size)
		return false;
	r->pos = end;
	r->stats.records++;
	r->stats.unknown += ret->def == NULL;
	return true;
}
