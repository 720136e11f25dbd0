/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory order of trace/ring.c, under -fsanitize=thread: a writer and the reader in one process.
 * The writer publishes a sub-buffer by a release store, and the reader's source has C11 acquire
 * loads. Records are plain memory, so that a missing acquire or release is a race that the
 * sanitizer sees. Then the writer overtakes the reader, which must never return torn data.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/ring.h"

#define SUBS  8u
#define WORDS ((UNI_TRACE_SUB_SIZE - UNI_TRACE_SUB_HEAD) / 8 - 1)

struct shared {
	struct uni_trace_head head;
	struct uni_trace_ring ring;
	struct uni_trace_cpu cpu;
	uint8_t *base;
	bool laps; /* records are overwritten while they are read: by atomic words */
	_Atomic uint64_t given;
	uint64_t torn, count;
};

static void store_word(void *at, uint64_t v, memory_order order)
{
	atomic_store_explicit((_Atomic uint64_t *)at, v, order);
}

static bool is_record(const struct shared *s, uint64_t va)
{
	uint64_t base = (uint64_t)s->base;

	return va >= base && va - base < (uint64_t)SUBS * UNI_TRACE_SUB_SIZE &&
	       (va - base) % UNI_TRACE_SUB_SIZE >= UNI_TRACE_SUB_HEAD;
}

static int read_words(void *ctx, uint64_t va, void *buf, size_t len)
{
	const struct shared *s = ctx;
	bool constant = va < (uint64_t)&s->cpu || va >= (uint64_t)(&s->cpu + 1);

	for (size_t at = 0; at < len; at += 8) {
		bool ring = va - (uint64_t)s->base < (uint64_t)SUBS * UNI_TRACE_SUB_SIZE;
		bool plain = is_record(s, va + at) ? !s->laps : constant && !ring;
		uint64_t v = plain ? *(const uint64_t *)(va + at)
				   : atomic_load_explicit((const _Atomic uint64_t *)(va + at),
					     memory_order_relaxed);

		memcpy((uint8_t *)buf + at, &v, len - at < 8 ? len - at : 8);
	}
	return 0;
}

static int load_word(void *ctx, uint64_t va, uint64_t *ret)
{
	(void)ctx;
	*ret = atomic_load_explicit((const _Atomic uint64_t *)va, memory_order_acquire);
	return 0;
}

static void write_sub(struct shared *s, uint64_t seq)
{
	struct uni_trace_sub *sub = (void *)(s->base + seq % SUBS * UNI_TRACE_SUB_SIZE);
	uint64_t *words = (uint64_t *)(void *)((uint8_t *)sub + UNI_TRACE_SUB_HEAD);

	store_word(&sub->begin_seq, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	store_word(&sub->words_before, (seq - 1) * WORDS, memory_order_relaxed);
	store_word(&sub->content_size, (UNI_TRACE_SUB_HEAD + WORDS * 8) * 8, memory_order_relaxed);
	atomic_store_explicit((_Atomic int32_t *)&sub->open_bytes, 0, memory_order_relaxed);
	store_word(&sub->begin_seq, seq, memory_order_release);
	store_word(&s->cpu.wptr, (uint64_t)words, memory_order_release);
	for (size_t i = 0; i < WORDS; i++) {
		if (s->laps)
			store_word(&words[i], seq, memory_order_relaxed);
		else
			words[i] = seq;
	}
	store_word(&sub->end_seq, seq, memory_order_release);
}

static void *write_all(void *arg)
{
	struct shared *s = arg;

	for (uint64_t seq = 1; seq <= s->count; seq++)
		write_sub(s, seq);
	/* One more is begun, so that the last is behind the writer. */
	store_word(&((struct uni_trace_sub *)(void *)(s->base +
						      (s->count + 1) % SUBS * UNI_TRACE_SUB_SIZE))
			    ->begin_seq,
		s->count + 1, memory_order_release);
	store_word(&s->cpu.wptr,
		(uint64_t)s->base + (s->count + 1) % SUBS * UNI_TRACE_SUB_SIZE + UNI_TRACE_SUB_HEAD,
		memory_order_release);
	return NULL;
}

static int take_packet(void *arg, unsigned cpu, const struct uni_trace_sub *packet, size_t content)
{
	struct shared *s = arg;
	const uint64_t *words =
		(const uint64_t *)(const void *)((const uint8_t *)packet + UNI_TRACE_SUB_HEAD);

	(void)cpu;
	s->torn += content != UNI_TRACE_SUB_HEAD + WORDS * 8;
	for (size_t i = 0; i < WORDS; i++)
		s->torn += words[i] != packet->begin_seq;
	s->given++;
	return 0;
}

/* Sub-buffers given out, or -1 if one is not as it was written. */
static int run_both(uint64_t count, bool laps, uint64_t *lapped_ret)
{
	static struct shared s;
	const struct uni_ring_source source = { read_words, &s, load_word };
	struct uni_ring *r = NULL;
	struct uni_err err = { 0 };
	pthread_t thread;
	bool ends = false;

	memset(&s, 0, sizeof(s));
	s.laps = laps;
	s.count = count;
	s.base = aligned_alloc(UNI_TRACE_SUB_SIZE, (size_t)SUBS * UNI_TRACE_SUB_SIZE);
	if (s.base == NULL)
		return -1;
	memset(s.base, 0, (size_t)SUBS * UNI_TRACE_SUB_SIZE);
	memcpy(s.head.magic, UNI_TRACE_MAGIC, sizeof(s.head.magic));
	s.head.version = UNI_TRACE_VERSION;
	s.head.size = sizeof(s.head);
	s.head.nr_cpus = 1;
	s.head.sub_size = UNI_TRACE_SUB_SIZE;
	s.head.rings = (uint64_t)&s.ring;
	s.head.features = 0;
	s.ring.cpu = (uint64_t)&s.cpu;
	s.ring.base = (uint64_t)s.base;
	s.ring.nr_subs = SUBS;
	s.cpu.wptr = (uint64_t)s.base + UNI_TRACE_SUB_HEAD;
	if (uni_ring_open(&source, (uint64_t)&s.head, &r, &err) != 0 ||
		pthread_create(&thread, NULL, write_all, &s) != 0) {
		(void)fprintf(stderr, "# %s\n", err.msg);
		return -1;
	}
	while (!ends) {
		const struct uni_ring_stats *st = uni_ring_stats(r, 0);

		if (uni_ring_poll(r, 0, take_packet, &s) != 0)
			s.torn++;
		ends = st->packets + st->lapped >= count;
	}
	(void)pthread_join(thread, NULL);
	*lapped_ret = uni_ring_stats(r, 0)->lapped;
	uni_ring_close(r);
	free(s.base);
	return s.torn == 0 ? (int)s.given : -1;
}

int main(void)
{
	uint64_t lapped = 0;
	int given = run_both(SUBS - 2, false, &lapped);
	bool ok = given == (int)SUBS - 2 && lapped == 0;

	(void)printf("1..2\n%s 1 - each sub-buffer as it was written: %d\n", ok ? "ok" : "not ok",
		given);
	given = run_both(3000, true, &lapped);
	ok = ok && given >= 0 && (uint64_t)given + lapped >= 3000;
	(void)printf("%s 2 - none torn while it is overtaken: %d given, %llu overwritten\n",
		given >= 0 ? "ok" : "not ok", given, (unsigned long long)lapped);
	return ok ? 0 : 1;
}
