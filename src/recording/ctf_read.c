/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/ctf.h"

#include <string.h>

#include "base/cursor.h"
#include "recording/ctf_priv.h"

/* A size in bits that the context states; 0 if it cannot be. */
static uint32_t size_of_bits(uint64_t bits)
{
	if (bits % 8 != 0 || bits / 8 < UNI_CTF_HEADER_SIZE || bits / 8 > UNI_CTF_PACKET_MAX)
		return 0;
	return (uint32_t)(bits / 8);
}

int uni_ctf_header_parse(const void *data, size_t size, struct uni_ctf_header *ret)
{
	struct uni_cursor c = uni_cursor_make(data, size);
	struct uni_ctf_header h = { 0 };
	uint32_t magic;

	magic = uni_cursor_u32(&c);
	uni_cursor_copy(&c, h.uuid, sizeof(h.uuid));
	h.stream = uni_cursor_u32(&c);
	h.begin_ns = uni_cursor_u64(&c);
	h.end_ns = uni_cursor_u64(&c);
	h.content_size = size_of_bits(uni_cursor_u64(&c));
	h.packet_size = size_of_bits(uni_cursor_u64(&c));
	h.discarded = uni_cursor_u64(&c);
	h.seq = uni_cursor_u64(&c);
	h.vcpu = uni_cursor_u32(&c);
	if (c.failed || magic != UNI_CTF_MAGIC || h.stream >= UNI_CTF_STREAM_NR)
		return -UNI_EFORMAT;
	if (h.content_size == 0 || h.packet_size < h.content_size || h.begin_ns > h.end_ns)
		return -UNI_EFORMAT;
	*ret = h;
	return 0;
}

/* False for bytes that the writer never makes. */
static bool read_stack(struct uni_ctf_reader *r, struct uni_cursor *c)
{
	uint32_t id = uni_cursor_u32(c);
	uint32_t at = (uint32_t)c->pos;
	uint16_t nr = uni_cursor_u16(c);

	if (nr > UNI_CHAIN_MAX || id != r->nr_stacks || id >= UNI_CTF_STACKS_MAX)
		return false;
	(void)uni_cursor_take(c, (size_t)nr * 9);
	if (c->failed)
		return false;
	r->stack[r->nr_stacks++] = at;
	return true;
}

bool uni_ctf_chain(struct uni_ctf_reader *r, uint32_t stack, uint16_t *nr_ret)
{
	struct uni_cursor def = uni_cursor_make(r->data, r->h.content_size);

	if (stack >= r->nr_stacks)
		return false;
	uni_cursor_seek(&def, r->stack[stack]);
	*nr_ret = uni_cursor_u16(&def);
	for (size_t i = 0; i < *nr_ret; i++)
		r->pc[i] = uni_cursor_u64(&def);
	uni_cursor_copy(&def, r->flags, *nr_ret);
	return !def.failed;
}

static bool read_sample(struct uni_ctf_reader *r, struct uni_cursor *c, void *ret_sample)
{
	struct uni_sample *ret = ret_sample;
	uint32_t stack = uni_cursor_u32(c);

	*ret = (struct uni_sample){ .vcpu = r->h.vcpu, .t_ns = r->last_ns };
	ret->weight = uni_cursor_u64(c);
	ret->thread = uni_cursor_u32(c);
	ret->pause_ns = uni_cursor_u32(c);
	ret->state = uni_cursor_u8(c);
	ret->stop = uni_cursor_u8(c);
	if (c->failed || ret->stop >= UNI_STOP_NR || ret->state >= UNI_VCPU_STATE_NR)
		return false;
	ret->pc = r->pc;
	ret->flags = r->flags;
	return uni_ctf_chain(r, stack, &ret->nr);
}

int uni_ctf_step(struct uni_ctf_reader *r, uni_ctf_body *body, void *ret)
{
	struct uni_cursor c = uni_cursor_make(r->data, r->h.content_size);
	bool ok = true;

	uni_cursor_seek(&c, r->pos);
	while (ok && uni_cursor_left(&c) != 0) {
		uint8_t id = uni_cursor_u8(&c);
		uint64_t t_ns = uni_cursor_u64(&c);

		if (c.failed || t_ns < r->last_ns || t_ns > r->h.end_ns)
			return -UNI_EFORMAT;
		r->last_ns = t_ns;
		if (id == UNI_CTF_STACK) {
			ok = read_stack(r, &c);
		} else {
			ok = id == UNI_CTF_SAMPLE && body(r, &c, ret);
			r->pos = c.pos;
			if (ok)
				return 1;
		}
	}
	r->pos = c.pos;
	return ok ? 0 : -UNI_EFORMAT;
}

static void rewind_to_events(struct uni_ctf_reader *r)
{
	r->pos = UNI_CTF_HEADER_SIZE;
	r->last_ns = r->h.begin_ns;
	r->nr_stacks = 0;
}

int uni_ctf_open(struct uni_ctf_reader *r, const void *data, size_t size, uint32_t stream,
	uni_ctf_body *body, void *scratch)
{
	int rc = uni_ctf_header_parse(data, size, &r->h);

	if (rc < 0)
		return rc;
	if (r->h.content_size > size || r->h.stream != stream)
		return -UNI_EFORMAT;
	r->data = data;
	rewind_to_events(r);
	while ((rc = uni_ctf_step(r, body, scratch)) > 0)
		;
	rewind_to_events(r);
	return rc;
}

int uni_ctf_reader_open(struct uni_ctf_reader *r, const void *data, size_t size)
{
	struct uni_sample s;

	return uni_ctf_open(r, data, size, UNI_CTF_SAMPLES, read_sample, &s);
}

bool uni_ctf_reader_next(struct uni_ctf_reader *r, struct uni_sample *ret)
{
	return uni_ctf_step(r, read_sample, ret) > 0;
}
