/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling/sample_queue.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* In the ring: a struct record, pc[nr], flags[nr], padded to 8 bytes. A record never wraps: a
 * record with only a size fills the rest of the ring instead. */
struct record {
	uint32_t size; /* bytes of the whole record */
	uint16_t nr;
	uint8_t stop, state;
	uint64_t t_ns, weight;
	uint32_t guest, vcpu, thread, pause_ns;
	bool filler;
};

#define RECORD_MAX (sizeof(struct record) + UNI_CHAIN_MAX * 9u + 8u)

struct uni_sampleq {
	size_t size;			    /* a power of two */
	_Alignas(64) _Atomic uint64_t head; /* bytes ever written; the producer's */
	_Atomic uint64_t lost;
	_Alignas(64) _Atomic uint64_t tail; /* bytes ever given back; the consumer's */
	/* bytes that were ever popped; the next pop frees them */
	uint64_t taken;
	_Alignas(64) uint8_t data[];
};

struct uni_sampleq *uni_sampleq_create(size_t bytes)
{
	struct uni_sampleq *q;
	size_t size = 4096;

	while (size < 2 * RECORD_MAX || (size < bytes && size <= SIZE_MAX / 4))
		size *= 2;
	q = aligned_alloc(64, sizeof(*q) + size);
	if (q == NULL)
		return NULL;
	/* All of it, so that no page fault comes later. */
	memset(q, 0, sizeof(*q) + size);
	q->size = size;
	return q;
}

void uni_sampleq_destroy(struct uni_sampleq *q)
{
	free(q);
}

static size_t record_size(uint16_t nr)
{
	return (sizeof(struct record) + nr * 9u + 7u) & ~(size_t)7;
}

static void put_sample(uint8_t *at, size_t size, const struct uni_sample *s)
{
	struct record r = { .size = (uint32_t)size,
		.nr = s->nr,
		.stop = s->stop,
		.state = s->state,
		.t_ns = s->t_ns,
		.weight = s->weight,
		.guest = s->guest,
		.vcpu = s->vcpu,
		.thread = s->thread,
		.pause_ns = s->pause_ns };

	memcpy(at, &r, sizeof(r));
	if (s->nr == 0)
		return;
	memcpy(at + sizeof(r), s->pc, s->nr * sizeof(*s->pc));
	memcpy(at + sizeof(r) + s->nr * sizeof(*s->pc), s->flags, s->nr);
}

bool uni_sampleq_push(struct uni_sampleq *q, const struct uni_sample *s)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_acquire);
	size_t at = head & (q->size - 1), to_end = q->size - at;
	size_t need = record_size(s->nr), skip = to_end < need ? to_end : 0;

	if (s->nr > UNI_CHAIN_MAX || need + skip > q->size - (head - tail)) {
		atomic_fetch_add_explicit(&q->lost, s->weight, memory_order_relaxed);
		return false;
	}
	if (skip >= sizeof(struct record)) {
		struct record r = { .size = (uint32_t)skip, .filler = true };

		memcpy(q->data + at, &r, sizeof(r));
	}
	put_sample(q->data + ((head + skip) & (q->size - 1)), need, s);
	atomic_store_explicit(&q->head, head + skip + need, memory_order_release);
	return true;
}

/* Over what lies unused at the ring's end. */
static uint64_t pass_filler(const struct uni_sampleq *q, uint64_t tail)
{
	size_t at = tail & (q->size - 1), to_end = q->size - at;
	struct record r;

	if (to_end < sizeof(r))
		return tail + to_end;
	memcpy(&r, q->data + at, sizeof(r));
	return r.filler ? tail + r.size : tail;
}

bool uni_sampleq_pop(struct uni_sampleq *q, struct uni_sample *ret)
{
	uint64_t head = atomic_load_explicit(&q->head, memory_order_acquire), tail = q->taken;
	struct record r;
	uint8_t *at;

	atomic_store_explicit(&q->tail, tail, memory_order_release);
	if (tail == head)
		return false;
	tail = pass_filler(q, tail);
	at = q->data + (tail & (q->size - 1));
	memcpy(&r, at, sizeof(r));
	*ret = (struct uni_sample){ .t_ns = r.t_ns,
		.weight = r.weight,
		.guest = r.guest,
		.vcpu = r.vcpu,
		.thread = r.thread,
		.pause_ns = r.pause_ns,
		.stop = r.stop,
		.state = r.state,
		.nr = r.nr,
		.pc = (const uint64_t *)(const void *)(at + sizeof(r)),
		.flags = at + sizeof(r) + r.nr * sizeof(uint64_t) };
	q->taken = tail + r.size;
	return true;
}

uint64_t uni_sampleq_lost(const struct uni_sampleq *q)
{
	return atomic_load_explicit(&q->lost, memory_order_relaxed);
}
