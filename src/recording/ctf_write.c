/* SPDX-License-Identifier: BSD-2-Clause */
#include "recording/ctf.h"

#include <string.h>

#include "base/hash.h"
#include "base/cursor.h"
#include "recording/ctf_priv.h"

#define EVENT_HEADER  UNI_CTF_EVENT_HEADER
#define SAMPLE_SIZE   (EVENT_HEADER + 22u)
#define FRAME_SIZE    UNI_CTF_FRAME_SIZE
#define STACK_NR_AT   (EVENT_HEADER + 4u) /* of `nr` in a stack event */
#define STACK_BODY_AT (STACK_NR_AT + 2u)

_Static_assert(STACK_BODY_AT == UNI_CTF_STACK_MIN, "layout");
_Static_assert(UNI_CTF_HEADER_SIZE + UNI_CTF_STACK_MIN + UNI_CHAIN_MAX * FRAME_SIZE + SAMPLE_SIZE <=
		       UNI_CTF_PACKET_MAX,
	"the longest chain fits in an empty packet");
_Static_assert(UNI_CTF_PACKET_MAX / (UNI_CTF_STACK_MIN + SAMPLE_SIZE) < UNI_CTF_SLOTS / 2,
	"the hash table never fills");

uint8_t *uni_ctf_put_le(uint8_t *p, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*p++ = (uint8_t)(v >> 8 * i);
	return p;
}

void uni_ctf_packet_start(struct uni_ctf_packet *p, uint32_t vcpu)
{
	p->next = NULL;
	p->guest = 0;
	p->vcpu = vcpu;
	p->stream = UNI_CTF_SAMPLES;
	p->nr_samples = p->nr_stacks = 0;
	p->begin_ns = p->end_ns = p->discarded = p->weight = 0;
	p->len = UNI_CTF_HEADER_SIZE;
	memset(p->slot, 0, sizeof(p->slot));
}

bool uni_ctf_can_hold(const struct uni_sample *s)
{
	return s->nr <= UNI_CHAIN_MAX && s->stop < UNI_STOP_NR && s->state < UNI_VCPU_STATE_NR &&
	       (s->nr == 0 || s->pc != NULL);
}

static uint8_t *put_frames(uint8_t *p, const struct uni_sample *s)
{
	for (size_t i = 0; i < s->nr; i++)
		p = uni_ctf_put_le(p, s->pc[i], 8);
	if (s->nr == 0)
		return p;
	if (s->flags != NULL)
		memcpy(p, s->flags, s->nr);
	else
		memset(p, 0, s->nr);
	return p + s->nr;
}

uint8_t *uni_ctf_put_event(struct uni_ctf_packet *p, enum uni_ctf_event id, uint64_t t_ns)
{
	return uni_ctf_put_le(uni_ctf_put_le(p->data + p->len, id, 1), t_ns, 8);
}

/* Writes the chain as a stack event after the others, then looks for an equal one in the packet. If
 * there is one, the new bytes are not kept. The caller has checked that there is room. */
uint32_t uni_ctf_intern(struct uni_ctf_packet *p, const struct uni_sample *s)
{
	uint8_t *start = p->data + p->len;
	uint8_t *body =
		uni_ctf_put_le(uni_ctf_put_event(p, UNI_CTF_STACK, s->t_ns), p->nr_stacks, 4);
	uint8_t *end = put_frames(uni_ctf_put_le(body, s->nr, 2), s);
	size_t len = (size_t)(end - body);
	uint64_t h = uni_hash_bytes(body, len, 0);

	for (;; h++) {
		uint32_t *slot = &p->slot[h % UNI_CTF_SLOTS];
		const uint8_t *old = p->data + *slot + STACK_NR_AT;

		if (*slot == 0) {
			*slot = p->len;
			p->len += (uint32_t)(end - start);
			return p->nr_stacks++;
		}
		/* `nr` comes first, so a longer chain differs before its end is passed. */
		if (memcmp(old, body, 2) == 0 && memcmp(old, body, len) == 0)
			return uni_le32(old - 4);
	}
}

void uni_ctf_packet_grow(struct uni_ctf_packet *p, uint32_t size, uint64_t t_ns)
{
	p->len += size;
	if (p->nr_samples++ == 0)
		p->begin_ns = t_ns;
	p->end_ns = t_ns;
}

bool uni_ctf_packet_add(struct uni_ctf_packet *p, const struct uni_sample *s)
{
	size_t most = UNI_CTF_STACK_MIN + (size_t)s->nr * FRAME_SIZE + SAMPLE_SIZE;
	uint32_t stack;
	uint8_t *q;

	if (most > UNI_CTF_PACKET_MAX - p->len)
		return false;
	stack = uni_ctf_intern(p, s);
	q = uni_ctf_put_event(p, UNI_CTF_SAMPLE, s->t_ns);
	q = uni_ctf_put_le(q, stack, 4);
	q = uni_ctf_put_le(q, s->weight, 8);
	q = uni_ctf_put_le(q, s->thread, 4);
	q = uni_ctf_put_le(q, s->pause_ns, 4);
	q = uni_ctf_put_le(q, s->state, 1);
	(void)uni_ctf_put_le(q, s->stop, 1);
	uni_ctf_packet_grow(p, SAMPLE_SIZE, s->t_ns);
	p->weight += s->weight;
	return true;
}

void uni_ctf_packet_finish(struct uni_ctf_packet *p, const uint8_t uuid[UNI_CTF_UUID], uint64_t seq,
	uint64_t discarded)
{
	uint8_t *q = uni_ctf_put_le(p->data, UNI_CTF_MAGIC, 4);

	memcpy(q, uuid, UNI_CTF_UUID);
	q = uni_ctf_put_le(q + UNI_CTF_UUID, p->stream, 4);
	q = uni_ctf_put_le(q, p->begin_ns, 8);
	q = uni_ctf_put_le(q, p->end_ns, 8);
	q = uni_ctf_put_le(q, (uint64_t)p->len * 8, 8);
	q = uni_ctf_put_le(q, (uint64_t)p->len * 8, 8);
	q = uni_ctf_put_le(q, discarded, 8);
	q = uni_ctf_put_le(q, seq, 8);
	(void)uni_ctf_put_le(q, p->vcpu, 4);
}
