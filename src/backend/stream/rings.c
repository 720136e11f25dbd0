/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/stream/rings.h"

#include <string.h>

#include "base/checked.h"

#define SUB_MASK ((uint64_t)UNI_TRACE_SUB_SIZE - 1)
#define SUBS_MAX (1u << 20) /* of one CPU */
#define AT_ONCE	 16 /* sub-buffers of a CPU in one poll: other CPUs wait, and so does the user */

static uint64_t sub_address(const struct uni_rings_cpu *c, uint64_t seq)
{
	return c->base + seq % c->nr_subs * UNI_TRACE_SUB_SIZE;
}

static int read_guest(struct uni_rings *r, uint64_t va, void *buf, size_t size)
{
	return r->read(r->ctx, &(struct uni_link_range){ va, buf, size }, 1);
}

static uint64_t place_of(const struct uni_trace_cpu *is)
{
	return is->frozen != 0 ? is->frozen : is->wptr;
}

static uint64_t wptr_of(const struct uni_rings_cpu *c)
{
	return place_of(&c->is);
}

/* Is the place within the CPU's ring, and behind a sub-buffer's header? */
static bool is_sane(const struct uni_rings_cpu *c)
{
	uint64_t wptr = wptr_of(c);

	return uni_range_contains(c->base, c->nr_subs * UNI_TRACE_SUB_SIZE, wptr, 8) &&
	       wptr % 8 == 0 && (wptr & SUB_MASK) >= UNI_TRACE_SUB_HEAD;
}

static int open_cpu(struct uni_rings *r, uint32_t i, uint64_t rings)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	struct uni_trace_ring ring;
	struct uni_trace_sub head;
	int rc = read_guest(r, rings + i * sizeof(ring), &ring, sizeof(ring));

	if (rc != 0)
		return rc;
	if ((ring.base & SUB_MASK) != 0 || ring.nr_subs < UNI_TRACE_SUB_MIN ||
		ring.nr_subs > SUBS_MAX ||
		!uni_range_ok(ring.base, ring.nr_subs * UNI_TRACE_SUB_SIZE) ||
		!uni_range_ok(ring.cpu, sizeof(c->is)))
		return -UNI_EFORMAT;
	c->state = ring.cpu;
	c->base = ring.base;
	c->nr_subs = ring.nr_subs;
	rc = read_guest(r, c->state, &c->is, sizeof(c->is));
	if (rc == 0 && !is_sane(c))
		rc = -UNI_EFORMAT;
	if (rc == 0)
		rc = read_guest(r, wptr_of(c) & ~SUB_MASK, &head, sizeof(head));
	if (rc != 0)
		return rc;
	c->seq = head.begin_seq;
	c->at = wptr_of(c) & SUB_MASK;
	c->done = wptr_of(c);
	/* A new upper half will be recorded before it is needed. */
	c->now = (uint64_t)c->is.hi << 32;
	return 0;
}

int uni_rings_open(struct uni_rings *r, uint64_t head)
{
	static const uint8_t magic[16] = UNI_TRACE_MAGIC;
	struct uni_trace_head h;
	int rc = read_guest(r, head, &h, UNI_TRACE_HEAD_OLD);

	if (rc != 0)
		return rc;
	if (memcmp(h.magic, magic, sizeof(magic)) != 0 ||
		(h.version != UNI_TRACE_VERSION && h.version != UNI_TRACE_VERSION_OLD) ||
		h.sub_size != UNI_TRACE_SUB_SIZE || h.nr_cpus == 0 || h.nr_cpus > UNI_VCPU_MAX)
		return -UNI_EFORMAT;
	r->nr_cpus = h.nr_cpus;
	memcpy(r->kinds, h.kinds, sizeof(r->kinds));
	for (uint32_t i = 0; rc == 0 && i < h.nr_cpus; i++)
		rc = open_cpu(r, i, h.rings);
	return rc;
}

/* The number of words that follow this one. */
static uint64_t more_words(const struct uni_rings *r, uint64_t word)
{
	switch (r->kinds[word >> 32 & 15]) {
	case UNI_TRACE_KIND_SYNC:
		return word >> 36;
	case UNI_TRACE_KIND_EXT:
		return word >> 36 & 0xfff;
	default:
		return 0;
	}
}

static bool is_sample(uint64_t class, uint64_t more)
{
	switch (class) {
	case UNI_TRACE_CLASS_SAMPLE:
		return more >= UNI_TRACE_SAMPLE_HEAD + 2;
	case UNI_TRACE_CLASS_SAMPLE_STACK:
		return more > UNI_TRACE_SAMPLE_STACK;
	case UNI_TRACE_CLASS_SAMPLE_STACKS:
		return more > UNI_TRACE_SAMPLE_STACKS;
	default:
		return false;
	}
}

static void on_record(struct uni_rings *r, uint32_t i, const uint64_t *w, uint64_t more)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	uint8_t kind = r->kinds[w[0] >> 32 & 15];

	c->now += (uint32_t)((uint32_t)w[0] - (uint32_t)c->now);
	if (kind == UNI_TRACE_KIND_SYNC && more == 2)
		c->now = w[1];
	if (kind != UNI_TRACE_KIND_EXT)
		return;
	if (is_sample(w[0] >> 48, more))
		r->sample(r->ctx, &(struct uni_ring_sample){ .tsc = c->now,
					  .word = w + 1,
					  .nr_words = (uint32_t)more,
					  .cpu = i,
					  .class = (uint16_t)(w[0] >> 48) });
}

/*
 * Handles records from c->at up to `end` of the copy. Entries at the end may still be taken back,
 * and a longer one be put there. So the next poll begins with them.
 */
static void count_records(struct uni_rings *r, uint32_t i, uint64_t end)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	uint64_t at = c->at / 8, last = at;

	while (at < end / 8) {
		uint64_t more = more_words(r, r->copy.word[at]);

		if (more >= end / 8 - at)
			break; /* it claims to be longer than the data */
		if (r->kinds[r->copy.word[at] >> 32 & 15] != UNI_TRACE_KIND_ENTRY) {
			on_record(r, i, &r->copy.word[at], more);
			last = at + more + 1;
		}
		at += more + 1;
	}
	c->at = last * 8;
}

static void go_to(struct uni_rings_cpu *c, uint64_t seq)
{
	c->seq = seq;
	c->at = UNI_TRACE_SUB_HEAD;
}

/*
 * Fetches the new part of sub-buffer c->seq, up to `end`. *whole_ret: it was not overwritten. *is
 * was read after `head` and before the rest.
 */
static int fetch_new(struct uni_rings *r, uint32_t i, uint64_t end, struct uni_trace_sub *head,
	struct uni_trace_cpu *is, bool *whole_ret)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	uint64_t from = sub_address(c, c->seq), at = uni_min(c->at, end), seq = 0;
	const struct uni_link_range range[] = {
		{ from, head, sizeof(*head) },
		{ c->state, is, sizeof(*is) },
		{ from + at, (uint8_t *)r->copy.word + at, end - at },
		{ from + offsetof(struct uni_trace_sub, begin_seq), &seq, sizeof(seq) },
	};
	int rc = r->read(r->ctx, range, uni_array_len(range));

	*whole_ret = head->begin_seq == c->seq && seq == c->seq;
	return rc;
}

/*
 * Finishes a sub-buffer that is not written any more. 1: not yet, as one of its records is still
 * being written.
 */
static int finish_sub(struct uni_rings *r, uint32_t i, uint64_t now_seq)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	struct uni_trace_sub head;
	struct uni_trace_cpu is;
	uint64_t end;
	bool whole = false;
	int rc = read_guest(r, sub_address(c, c->seq), &head, sizeof(head));

	if (rc != 0)
		return rc;
	if (head.begin_seq == c->seq && head.end_seq != c->seq &&
		now_seq - c->seq <= c->nr_subs / 2)
		return 1;
	end = head.content_size / 8;
	if (head.begin_seq == c->seq && head.end_seq == c->seq && end >= UNI_TRACE_SUB_HEAD &&
		end < UNI_TRACE_SUB_SIZE && end % 8 == 0) {
		rc = fetch_new(r, i, end, &head, &is, &whole);
		if (rc == 0 && whole)
			count_records(r, i, end);
	}
	r->overtaken += !whole;
	go_to(c, c->seq + 1);
	return rc;
}

/* The CPU writes another sub-buffer now. 0: that one is to be read now; otherwise 1. */
static int catch_up(struct uni_rings *r, uint32_t i)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	struct uni_trace_sub head;
	int rc = read_guest(r, wptr_of(c) & ~SUB_MASK, &head, sizeof(head));

	if (rc != 0)
		return rc;
	if (head.begin_seq < c->seq) /* the guest was restored, or is wrong: start from here */
		go_to(c, head.begin_seq);
	if (head.begin_seq - c->seq >= c->nr_subs) {
		r->overtaken += head.begin_seq - c->seq;
		go_to(c, head.begin_seq);
	}
	for (int n = 0; rc == 0 && n < AT_ONCE && c->seq < head.begin_seq; n++)
		rc = finish_sub(r, i, head.begin_seq);
	if (rc == 0 && sub_address(c, c->seq) != (wptr_of(c) & ~SUB_MASK))
		rc = 1; /* it moved on meanwhile */
	return rc;
}

/*
 * Is everything up to `end`, a past write pointer, written? `head` has the number of bytes that
 * were written when it was read. If that equals the number of bytes taken at that time and later,
 * no write was pending. The guest may have written more since `end` was read.
 */
static bool is_written(
	uint64_t wptr, const struct uni_trace_sub *head, const struct uni_trace_cpu *is)
{
	uint64_t now = place_of(is);

	return (now & ~SUB_MASK) == (wptr & ~SUB_MASK) && now >= wptr &&
	       head->open_bytes == (int32_t)(now & SUB_MASK) - UNI_TRACE_SUB_SIZE;
}

static int poll_cpu(struct uni_rings *r, uint32_t i)
{
	struct uni_rings_cpu *c = &r->cpu[i];
	uint64_t wptr = wptr_of(c), end = wptr & SUB_MASK;
	struct uni_trace_sub head;
	struct uni_trace_cpu is;
	bool whole;
	int rc = 0;

	if (!is_sane(c))
		return -UNI_EFORMAT;
	if (wptr == c->done)
		return 0;
	if (sub_address(c, c->seq) != (wptr & ~SUB_MASK) || end < c->at)
		rc = catch_up(r, i);
	if (rc == 0)
		rc = fetch_new(r, i, end, &head, &is, &whole);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (!whole || !is_written(wptr, &head, &is)) /* try again next time */
		return 0;
	count_records(r, i, end);
	if (c->at == end)
		c->done = wptr;
	return 0;
}

int uni_rings_poll(struct uni_rings *r)
{
	struct uni_link_range range[UNI_VCPU_MAX];
	int rc;

	for (uint32_t i = 0; i < r->nr_cpus; i++)
		range[i] = (struct uni_link_range){ r->cpu[i].state, &r->cpu[i].is,
			sizeof(r->cpu[i].is) };
	rc = r->read(r->ctx, range, r->nr_cpus);
	for (uint32_t i = 0; rc == 0 && i < r->nr_cpus; i++)
		rc = poll_cpu(r, i);
	return rc;
}
