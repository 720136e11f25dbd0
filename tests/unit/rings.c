/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples from a ring that is being written, in each state in which a host may find it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "backend/stream/rings.h"
#include "base/err.h"

#define SUBS  8u
#define BASE  0x100000ull /* of the ring; what is below is the rest */
#define CPU   0x2000ull
#define RING  0x3000ull
#define HEAD  0x4000ull
#define EXT   5u /* record ids */
#define ENTRY 1u

static uint8_t low[0x8000], ring[SUBS * UNI_TRACE_SUB_SIZE];
static struct uni_rings r;
static unsigned nr_samples;
static uint64_t last_tsc, last_word;

static void *place(uint64_t va)
{
	return va >= BASE ? ring + (va - BASE) : low + va;
}

static int read_ranges(void *ctx, const struct uni_link_range *range, size_t nr)
{
	(void)ctx;
	for (size_t i = 0; i < nr; i++)
		memcpy(range[i].buf, place(range[i].va), range[i].size);
	return 0;
}

static void on_ring_sample(void *ctx, const struct uni_ring_sample *s)
{
	(void)ctx;
	nr_samples++;
	last_tsc = s->tsc;
	last_word = s->word[s->nr_words - 1];
	assert_int_equal(s->cpu, 0);
	assert_int_equal(s->class, UNI_TRACE_CLASS_SAMPLE);
}

static struct uni_trace_sub *sub_of(uint64_t seq)
{
	return place(BASE + seq % SUBS * UNI_TRACE_SUB_SIZE);
}

/* The guest writes here now; all before it is closed. */
static void guest_at(uint64_t seq, unsigned bytes)
{
	struct uni_trace_cpu *cpu = place(CPU);

	sub_of(seq)->begin_seq = seq;
	sub_of(seq)->open_bytes = (int32_t)bytes - UNI_TRACE_SUB_SIZE;
	cpu->wptr = BASE + seq % SUBS * UNI_TRACE_SUB_SIZE + bytes;
}

/* A sample's record at that byte of a sub-buffer. Returns the byte behind it. */
static unsigned put_sample(uint64_t seq, unsigned at, uint32_t tsc)
{
	uint64_t *w = (uint64_t *)sub_of(seq) + at / 8, more = UNI_TRACE_SAMPLE_HEAD + 2;

	w[0] = tsc | (uint64_t)EXT << 32 | more << 36 | (uint64_t)UNI_TRACE_CLASS_SAMPLE << 48;
	for (unsigned i = 1; i <= more; i++)
		w[i] = seq * 100 + i;
	return at + (unsigned)(1 + more) * 8;
}

static void close_sub(uint64_t seq, unsigned bytes)
{
	sub_of(seq)->content_size = (uint64_t)bytes * 8;
	sub_of(seq)->open_bytes = 0;
	sub_of(seq)->end_seq = seq;
}

static int begin(void **state)
{
	struct uni_trace_head h = { .magic = UNI_TRACE_MAGIC,
		.version = UNI_TRACE_VERSION,
		.nr_cpus = 1,
		.sub_size = UNI_TRACE_SUB_SIZE,
		.rings = RING };
	struct uni_trace_ring where = { .cpu = CPU, .base = BASE, .nr_subs = SUBS };

	(void)state;
	memset(low, 0, sizeof(low));
	memset(ring, 0, sizeof(ring));
	h.kinds[EXT] = UNI_TRACE_KIND_EXT;
	h.kinds[ENTRY] = UNI_TRACE_KIND_ENTRY;
	memcpy(place(HEAD), &h, sizeof(h));
	memcpy(place(RING), &where, sizeof(where));
	r = (struct uni_rings){ .read = read_ranges, .sample = on_ring_sample };
	nr_samples = 0;
	guest_at(1, UNI_TRACE_SUB_HEAD);
	return uni_rings_open(&r, HEAD);
}

static void poll_gives(unsigned samples, uint64_t overtaken)
{
	unsigned before = nr_samples;

	assert_int_equal(uni_rings_poll(&r), 0);
	assert_int_equal(nr_samples - before, samples);
	assert_int_equal(r.overtaken, overtaken);
}

static void within_one(void **state)
{
	unsigned at = put_sample(1, UNI_TRACE_SUB_HEAD, 7);

	(void)state;
	poll_gives(0, 0); /* its end was not written yet */
	guest_at(1, at);
	sub_of(1)->open_bytes -= 8;
	poll_gives(0, 0);
	guest_at(1, at);
	poll_gives(1, 0);
	assert_int_equal(last_tsc, 7);
	assert_int_equal(last_word, 100 + UNI_TRACE_SAMPLE_HEAD + 2);
	poll_gives(0, 0);
	at = put_sample(1, put_sample(1, at, 8), 9);
	guest_at(1, at);
	poll_gives(2, 0);
}

/* An interrupt came while a record was written: its sub-buffer stays open behind the next one. */
static void not_yet_closed(void **state)
{
	unsigned at = put_sample(1, UNI_TRACE_SUB_HEAD, 7);

	(void)state;
	guest_at(2, put_sample(2, UNI_TRACE_SUB_HEAD, 8));
	poll_gives(0, 0);
	for (uint64_t seq = 2; seq <= SUBS / 2; seq++) {
		guest_at(seq, UNI_TRACE_SUB_HEAD);
		close_sub(seq, seq == 2 ? at : UNI_TRACE_SUB_HEAD);
	}
	guest_at(1 + SUBS / 2, UNI_TRACE_SUB_HEAD + 8); /* still not too far away */
	poll_gives(0, 0);
	close_sub(1, at);
	poll_gives(2, 0);
	assert_int_equal(last_word, 200 + UNI_TRACE_SAMPLE_HEAD + 2);
}

/* It is never closed: its writer has died within the record. */
static void never_closed(void **state)
{
	(void)state;
	(void)put_sample(1, UNI_TRACE_SUB_HEAD, 7);
	for (uint64_t seq = 2; seq < 2 + SUBS / 2; seq++) {
		guest_at(seq, UNI_TRACE_SUB_HEAD);
		close_sub(seq, put_sample(seq, UNI_TRACE_SUB_HEAD, 8));
	}
	guest_at(2 + SUBS / 2, UNI_TRACE_SUB_HEAD + 8);
	poll_gives(SUBS / 2, 1);
}

static void sizes_that_cannot_be(void **state)
{
	static const uint64_t bytes[] = { UNI_TRACE_SUB_HEAD - 8, UNI_TRACE_SUB_SIZE,
		UNI_TRACE_SUB_HEAD + 1, UINT64_MAX / 8 };

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		(void)put_sample(1 + i, UNI_TRACE_SUB_HEAD, 7);
		guest_at(2 + i, UNI_TRACE_SUB_HEAD + 8);
		close_sub(1 + i, UNI_TRACE_SUB_HEAD);
		sub_of(1 + i)->content_size = bytes[i] * 8;
		poll_gives(0, 1 + i);
	}
}

/* More than the whole ring was written since; or the guest was restored, and is back. */
static void far_away(void **state)
{
	unsigned at;

	(void)state;
	at = put_sample(101, UNI_TRACE_SUB_HEAD, 7);
	guest_at(101, at);
	poll_gives(1, 100);
	at = put_sample(3, UNI_TRACE_SUB_HEAD, 7);
	guest_at(3, at);
	poll_gives(1, 100);
	close_sub(3, at);
	guest_at(4, put_sample(4, UNI_TRACE_SUB_HEAD, 8));
	poll_gives(1, 100);
	/* Its next lap: the same place holds something else. */
	at = put_sample(4 + SUBS, at, 9);
	guest_at(4 + SUBS, at);
	poll_gives(0, 100);
	close_sub(4 + SUBS, at);
	guest_at(5 + SUBS, put_sample(5 + SUBS, UNI_TRACE_SUB_HEAD, 9));
	poll_gives(1, 100 + 1 + SUBS);
}

/* One that claims more words than there are, and entries at the end, which may be taken back. */
static void unfinished(void **state)
{
	unsigned at = put_sample(1, UNI_TRACE_SUB_HEAD, 7);
	uint64_t *w = (uint64_t *)sub_of(1) + at / 8;

	(void)state;
	*w = 8 | (uint64_t)ENTRY << 32;
	guest_at(1, at + 8);
	poll_gives(1, 0);
	at = put_sample(1, at, 9);
	guest_at(1, at - 8);
	poll_gives(0, 0);
	guest_at(1, at);
	poll_gives(1, 0);
	assert_int_equal(last_tsc, 9);
}

static void places_that_cannot_be(void **state)
{
	struct uni_trace_cpu *cpu = place(CPU);
	struct uni_trace_ring *where = place(RING);
	struct uni_trace_head *head = place(HEAD);
	static const uint64_t bad[] = { BASE, BASE + UNI_TRACE_SUB_HEAD + 4, BASE - 8,
		BASE + SUBS * UNI_TRACE_SUB_SIZE };
	const struct uni_trace_ring good = *where;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		cpu->wptr = bad[i];
		assert_int_equal(uni_rings_poll(&r), -UNI_EFORMAT);
		assert_int_equal(uni_rings_open(&r, HEAD), -UNI_EFORMAT);
	}
	guest_at(1, UNI_TRACE_SUB_HEAD);
	assert_int_equal(uni_rings_open(&r, HEAD), 0);
	where->base += 8;
	assert_int_equal(uni_rings_open(&r, HEAD), -UNI_EFORMAT);
	*where = good;
	where->nr_subs = UNI_TRACE_SUB_MIN - 1;
	assert_int_equal(uni_rings_open(&r, HEAD), -UNI_EFORMAT);
	where->nr_subs = UINT64_MAX;
	assert_int_equal(uni_rings_open(&r, HEAD), -UNI_EFORMAT);
	*where = good;
	where->nr_subs = UNI_TRACE_SUB_MIN;
	assert_int_equal(uni_rings_open(&r, HEAD), 0);
	for (unsigned i = 0; i < 4; i++) {
		const struct uni_trace_head was = *head;

		head->nr_cpus = i == 0 ? 0 : i == 1 ? UNI_VCPU_MAX + 1 : 1;
		head->version += i == 2;
		head->sub_size += i == 3;
		assert_int_equal(uni_rings_open(&r, HEAD), -UNI_EFORMAT);
		*head = was;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(within_one, begin),
		cmocka_unit_test_setup(not_yet_closed, begin),
		cmocka_unit_test_setup(never_closed, begin),
		cmocka_unit_test_setup(sizes_that_cannot_be, begin),
		cmocka_unit_test_setup(far_away, begin),
		cmocka_unit_test_setup(unfinished, begin),
		cmocka_unit_test_setup(places_that_cannot_be, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
