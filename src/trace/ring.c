/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "trace/record.h"
#include "trace/ring_priv.h"

/* at the end, how many newer sub-buffers to wait for one that a writer holds open */
#define HASTY 2

#define PIECE 4096 /* of a copy that may be given up */

/*
 * Memory order, like that of a sequence lock. The writer is guest/ring.c.
 *
 * 	writer                              reader
 * 	begin_seq = 0; release fence        end_seq by an acquire load: N        (1)
 * 	header and records; release fence   copy of header and records
 * 	end_seq = N                         acquire fence, begin_seq again: N    (2)
 *
 * (1) N in end_seq proves that all of sub-buffer N was written before the copy: the copy is not
 * older. (2) N in begin_seq afterwards proves that the writer had not begun to overwrite it before
 * the copy. So no part of the copy is newer. wptr and open_bytes of the current sub-buffer are
 * loaded with acquire in the same way, and compared again after a fence.
 *
 * x86_64 keeps loads in order, and stores in order, so there the fences only bind the compiler.
 * aarch64 does neither: (1) is LDAR, or a load and DMB ISHLD, (2) is DMB ISHLD. process_vm_readv(2)
 * makes the copy, but that changes nothing: a system call is no barrier. Mapped pages of a Xen
 * domain are ordinary cached memory of the same machine: the rules are the same.
 */
static void fence_loads(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static int read_ring(const struct uni_ring *r, uint64_t va, void *buf, size_t len)
{
	int rc = 0;

	if (!r->slow || r->over == NULL || len <= PIECE)
		return r->source.read(r->source.ctx, va, buf, len);
	for (size_t at = 0; rc == 0 && at < len; at += PIECE) {
		if (r->over(r->over_ctx))
			return -UNI_EBUDGET;
		rc = r->source.read(
			r->source.ctx, va + at, (uint8_t *)buf + at, uni_min(len - at, PIECE));
	}
	return rc;
}

/* Later reads see everything that the guest wrote before it stored this word. */
static int load_acquire(const struct uni_ring *r, uint64_t va, uint64_t *ret)
{
	int rc;

	if (r->source.load != NULL)
		return r->source.load(r->source.ctx, va, ret);
	rc = read_ring(r, va, ret, sizeof(*ret));
	fence_loads();
	return rc;
}

static uint64_t slot_address(const struct uni_ring_cpu *c, uint64_t seq)
{
	return c->base + seq % uni_max(c->nr_subs, (uint64_t)1) * UNI_TRACE_SUB_SIZE;
}

/* Reads the CPU's state, the header of its current sub-buffer, and the end of its reserved
 * space. */
static int look_at_cpu(const struct uni_ring *r, const struct uni_ring_cpu *c,
	struct uni_trace_cpu *state, struct uni_trace_sub *head, uint64_t *end)
{
	uint64_t wptr;
	int rc = read_ring(r, c->cpu, state, sizeof(*state));

	if (rc != 0)
		return rc;
	wptr = state->frozen ? state->frozen : state->wptr;
	if (!uni_range_contains(c->base, c->nr_subs * UNI_TRACE_SUB_SIZE, wptr, 8))
		return -UNI_EFORMAT;
	*end = wptr & SUB_MASK;
	fence_loads();
	rc = read_ring(r, wptr & ~SUB_MASK, head, sizeof(*head));
	fence_loads();
	return rc;
}

static int now_written(
	const struct uni_ring *r, const struct uni_ring_cpu *c, uint64_t *seq, uint64_t *end)
{
	struct uni_trace_cpu state;
	struct uni_trace_sub head;
	int rc = look_at_cpu(r, c, &state, &head, end);

	if (rc == 0)
		*seq = head.begin_seq;
	return rc;
}

/* The records between c->seen_end and `end`, of which r->copy has the bytes. */
static void see_records(
	const struct uni_ring *r, struct uni_ring_cpu *c, uint64_t end, struct uni_ring_now *ret)
{
	const uint64_t *words = (const uint64_t *)(const void *)r->copy.bytes;
	struct uni_trace_cursor at = { .at = words + c->seen_end / 8,
		.end = words + end / 8,
		.now = c->seen_time,
		.kinds = r->info.kinds };
	struct uni_trace_record rec;

	while (uni_trace_next(&at, &rec)) {
		ret->before = ret->time;
		ret->time = rec.time;
		ret->timed = true;
		/* Entries at the end may be taken back, and something longer be put there. */
		if (rec.kind == UNI_TRACE_KIND_ENTRY)
			continue;
		c->seen_end = (uint64_t)(at.at - words) * 8;
		c->seen_time = rec.time;
	}
}

/* After a copy: had the writer not begun to overwrite it? */
static int recheck_seq(
	const struct uni_ring *r, const struct uni_ring_cpu *c, uint64_t seq, bool *same)
{
	uint64_t now;
	int rc;

	fence_loads();
	rc = read_ring(r, slot_address(c, seq) + offsetof(struct uni_trace_sub, begin_seq), &now,
		sizeof(now));
	*same = rc == 0 && now == seq;
	return rc;
}

/*
 * Finds the time of the newest record. Its last word may be any of several; only the first word has
 * the time. So this follows records from the last known one. It does so only if everything reserved
 * up to `end` is written: unwritten words hold data of the previous round.
 */
static int find_newest(struct uni_ring *r, struct uni_ring_cpu *c, const struct uni_trace_sub *head,
	uint64_t end, struct uni_ring_now *ret)
{
	bool same = false;
	int rc;

	ret->time = head->ts_begin;
	ret->sure = end <= UNI_TRACE_SUB_HEAD;
	if (ret->sure || head->open_bytes < (int32_t)end - UNI_TRACE_SUB_SIZE)
		return 0;
	if (c->seen_seq != head->begin_seq) {
		c->seen_seq = head->begin_seq;
		c->seen_end = UNI_TRACE_SUB_HEAD;
		c->seen_time = head->ts_begin;
	}
	ret->time = c->seen_time;
	ret->timed = ret->sure = c->seen_end > UNI_TRACE_SUB_HEAD;
	if (end <= c->seen_end)
		return 0;
	rc = read_ring(r, slot_address(c, head->begin_seq) + c->seen_end,
		r->copy.bytes + c->seen_end, end - c->seen_end);
	if (rc == 0)
		rc = recheck_seq(r, c, head->begin_seq, &same);
	ret->sure = rc == 0 && same;
	if (ret->sure)
		see_records(r, c, end, ret);
	return rc;
}

int uni_ring_now(struct uni_ring *r, unsigned cpu, struct uni_ring_now *ret)
{
	struct uni_ring_cpu *c = &r->cpu[cpu];
	struct uni_trace_cpu state;
	struct uni_trace_sub head;
	uint64_t end;
	int rc = look_at_cpu(r, c, &state, &head, &end);

	if (rc != 0)
		return rc;
	*ret = (struct uni_ring_now){ .seq = head.begin_seq,
		.words = head.words_before,
		.lost = state.lost,
		.whole = head.open_bytes == (int32_t)end - UNI_TRACE_SUB_SIZE };
	if (end > UNI_TRACE_SUB_HEAD)
		ret->words += (end - UNI_TRACE_SUB_HEAD) / 8;
	if (r->info.counts)
		ret->extra = head.extra_before + (head.extra_after & ~UNI_TRACE_EXTRA_GONE);
	return find_newest(r, c, &head, end, ret);
}

int uni_ring_skip(struct uni_ring *r, unsigned cpu, struct uni_ring_now *ret)
{
	struct uni_ring_cpu *c = &r->cpu[cpu];
	int rc = uni_ring_now(r, cpu, ret);

	if (rc != 0)
		return rc;
	c->next_seq = c->cut_seq = ret->seq;
	c->next_words = ret->words;
	c->stats.guest_lost = ret->lost;
	return 0;
}

/* Records that tell of time alone. */
static bool is_event(uint64_t word, uint8_t kind)
{
	return kind != UNI_TRACE_KIND_SYNC && kind != UNI_TRACE_KIND_NONE &&
	       (kind != UNI_TRACE_KIND_EXT || word >> 48 != UNI_TRACE_CLASS_HOST_TIME);
}

uint64_t uni_ring_extra_words(const struct uni_ring *r, const uint64_t *at, const uint64_t *end)
{
	unsigned short_ids = uni_trace_short_ids(r->info.kinds);
	uint64_t extra = 0;

	while (at < end) {
		uint8_t kind;
		size_t nr;

		if (short_ids >> (*at >> 32 & 15) & 1) { /* nearly all */
			at++;
			continue;
		}
		kind = r->info.kinds[*at >> 32 & 15];
		nr = uni_min((size_t)(end - at), (size_t)1 + uni_trace_words(*at, kind));
		extra += nr - is_event(*at, kind);
		at += nr;
	}
	return extra;
}

/* Computes from the words in the copy how many events they are. */
static void count_extra(const struct uni_ring *r, struct uni_trace_sub *s, size_t content)
{
	const uint64_t *words = (const uint64_t *)(const void *)r->copy.bytes;

	if (r->info.counts)
		s->extra_after =
			s->extra_before + uni_ring_extra_words(r, words + UNI_TRACE_SUB_HEAD / 8,
						  words + content / 8);
	else
		s->extra_before = s->extra_after = 0;
}

/* Drops the records that existed before the reader came from the copy. Returns the rest's size. */
static size_t cut_before(struct uni_ring *r, struct uni_ring_cpu *c, size_t content)
{
	struct uni_trace_sub *s = &r->copy.head;
	struct uni_trace_cursor at = uni_trace_records(&r->info, s, content);
	const uint64_t *first = at.at;
	struct uni_trace_record record;

	while (s->words_before + (uint64_t)(at.at - first) < c->next_words &&
		uni_trace_next(&at, &record)) {
		if (record.kind == UNI_TRACE_KIND_SYNC)
			s->gaps = uni_trace_sync_told(&record);
	}
	c->cut_seq = 0;
	return uni_ring_cut_at(r, &at, content);
}

/* Passes a packet on. Its header shows how much the guest overwrote before this packet was read. */
static int give_packet(
	struct uni_ring *r, unsigned i, size_t content, uni_ring_packet_fn fn, void *arg)
{
	struct uni_ring_cpu *c = &r->cpu[i];
	struct uni_trace_sub *s = &r->copy.head;

	/* An open sub-buffer states the losses until it was made ready. That was before the one
	 * ahead of it was written. */
	s->lost = uni_max(s->lost, c->stats.guest_lost);
	if (s->begin_seq == c->cut_seq)
		content = cut_before(r, c, content);
	if (content > UNI_TRACE_SUB_HEAD)
		content = uni_ring_cut_session(r, c, content);
	if (content == UNI_TRACE_SUB_HEAD)
		return 0;
	count_extra(r, s, content);
	if (s->words_before > c->next_words)
		c->stats.lapped_words += s->words_before - c->next_words;
	c->stats.packets++;
	c->stats.words += (content - UNI_TRACE_SUB_HEAD) / 8;
	c->stats.guest_lost = s->lost;
	c->next_words = s->words_before + (content - UNI_TRACE_SUB_HEAD) / 8;
	return fn(arg, i, s, content);
}

static size_t closed_content(const struct uni_trace_sub *s)
{
	uint64_t bytes = s->content_size / 8;

	if (s->content_size % 64 != 0 || bytes < UNI_TRACE_SUB_HEAD ||
		bytes > UNI_TRACE_SUB_SIZE - 8)
		return 0;
	return (size_t)bytes;
}

/* The writer caught up with the copy. Skips sub-buffers: each time twice as many, up to a quarter
 * of the ring. */
static void give_way(struct uni_ring_cpu *c, uint64_t now)
{
	uint64_t n = uni_min(c->way, now > c->next_seq ? now - c->next_seq : 0);

	c->stats.lapped += n;
	c->next_seq += n;
	c->way = uni_min(2 * uni_max(c->way, 1u), c->nr_subs / 4);
}

/* A core that is cut off has the rest of the ring still. */
static bool is_missing(struct uni_ring_cpu *c, int rc)
{
	if (rc != -UNI_EFAULT && rc != -UNI_ERANGE)
		return false;
	c->stats.lapped++;
	c->next_seq++;
	return true;
}

static bool is_over(const struct uni_ring *r)
{
	return r->over != NULL && r->over(r->over_ctx);
}

/* Returns 1 if sub-buffer c->next_seq is not closed yet, 0 when it was dealt with. */
static int read_one(struct uni_ring *r, unsigned i, uint64_t now, uni_ring_packet_fn fn, void *arg)
{
	struct uni_ring_cpu *c = &r->cpu[i];
	uint64_t seq = c->next_seq;
	const struct uni_trace_sub *s = &r->copy.head;
	uint64_t end_seq = 0;
	size_t content;
	bool same;
	int rc = is_over(r) ? -UNI_EBUDGET
			    : read_ring(r, slot_address(c, seq), &r->copy, sizeof(*s));

	if (rc == 0)
		rc = load_acquire(r, slot_address(c, seq) + offsetof(struct uni_trace_sub, end_seq),
			&end_seq);

	if (rc != 0)
		return is_missing(c, rc) ? 0 : rc;
	if (s->begin_seq != seq) {
		/* Overwritten; or skipped, because an older record in it is still unwritten. */
		c->stats.lapped += s->begin_seq > seq || s->begin_seq == 0;
		c->next_seq++;
		return 0;
	}
	if (end_seq != seq) {
		/* A writer that was descheduled holds it open, maybe forever. */
		if (now - seq <= (r->hasty ? HASTY : c->nr_subs / 2))
			return 1;
		c->stats.lapped++;
		c->next_seq++;
		return 0;
	}
	rc = read_ring(r, slot_address(c, seq), &r->copy, sizeof(r->copy));
	if (rc == 0)
		rc = recheck_seq(r, c, seq, &same);
	if (rc != 0)
		return is_missing(c, rc) ? 0 : rc;
	c->next_seq++;
	content = closed_content(s);
	if (!same || s->begin_seq != seq || s->end_seq != seq || content == 0) {
		c->stats.lapped++;
		c->stats.torn++;
		give_way(c, now);
		return 0;
	}
	c->way = 0;
	return give_packet(r, i, content, fn, arg);
}

/* Skips all but the last `keep` sub-buffers; the current one counts as one of these. */
static void skip_lapped(struct uni_ring_cpu *c, uint64_t now, uint64_t keep)
{
	uint64_t from;

	if (now < c->next_seq || now - c->next_seq < c->nr_subs - 1)
		return;
	from = uni_max(now - (keep - 1), c->next_seq);
	c->stats.lapped += from - c->next_seq;
	c->next_seq = from;
}

int uni_ring_poll(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg)
{
	struct uni_ring_cpu *c = &r->cpu[cpu];
	uint64_t now, end;
	int rc = now_written(r, c, &now, &end);

	if (rc != 0)
		return rc;
	/* A new reader takes everything that the ring holds. A reader that has been overtaken skips
	 * a quarter of the ring. Otherwise the writer would overtake it again during each copy, and
	 * each packet would be torn or follow a gap. */
	skip_lapped(c, now, c->stats.packets == 0 ? c->nr_subs : c->nr_subs * 3 / 4 + 1);
	/* The ring's own size bounds what one poll does, whatever numbers the guest shows. */
	for (uint64_t n = 0; n < c->nr_subs && c->next_seq < now; n++) {
		rc = read_one(r, cpu, now, fn, arg);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	return 0;
}

/*
 * Bytes of the copy up to `end` that hold records. If the sub-buffer's count shows unwritten
 * records, one that seems to go back in time is of the previous round. Otherwise such a record is
 * valid: after a pause of 2^31 cycles it, too, seems to go back.
 */
static size_t written_content(const struct uni_ring *r, size_t end)
{
	const uint8_t *p = r->copy.bytes;
	uint32_t last = (uint32_t)r->copy.head.ts_begin;
	bool whole = r->copy.head.open_bytes == (int32_t)end - UNI_TRACE_SUB_SIZE;
	size_t at = UNI_TRACE_SUB_HEAD;

	while (at < end) {
		uint64_t word;
		size_t words = 1;

		memcpy(&word, p + at, 8);
		if (!whole && (int32_t)((uint32_t)word - last) < 0)
			break;
		last = (uint32_t)word;
		if (r->info.kinds[word >> 32 & 15] == UNI_TRACE_KIND_SYNC)
			words += word >> 36;
		else if (r->info.kinds[word >> 32 & 15] == UNI_TRACE_KIND_EXT)
			words += word >> 36 & 0xfff;
		if (words > (end - at) / 8)
			break;
		at += words * 8;
	}
	return at;
}

int uni_ring_drain(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg)
{
	struct uni_ring_cpu *c = &r->cpu[cpu];
	uint64_t now, end;
	int rc = now_written(r, c, &now, &end);

	if (rc == 0)
		skip_lapped(c, now, c->nr_subs);
	(void)read_ring(r, c->ring + offsetof(struct uni_trace_ring, after_freeze),
		&c->stats.after_freeze, sizeof(c->stats.after_freeze));
	for (uint64_t n = 0; rc == 0 && n < c->nr_subs && c->next_seq < now; n++) {
		rc = read_one(r, cpu, now, fn, arg);
		if (rc > 0) { /* it never will be closed */
			c->stats.lapped++;
			c->next_seq++;
			rc = 0;
		}
	}
	if (rc == 0 && c->next_seq == now && end > UNI_TRACE_SUB_HEAD) {
		rc = read_ring(r, slot_address(c, now), &r->copy, sizeof(r->copy));
		if (is_missing(c, rc))
			return 0;
		c->next_seq++;
		if (rc == 0 && r->copy.head.begin_seq == now)
			rc = give_packet(r, cpu, written_content(r, (size_t)end), fn, arg);
	}
	return rc;
}

/* Up to the last record that the guest cannot take back or change: the newest entries it can. */
static size_t lasting_content(const struct uni_ring *r, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(&r->info, &r->copy.head, content);
	const uint64_t *begin = c.at, *last = c.at;
	struct uni_trace_record rec;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind != UNI_TRACE_KIND_ENTRY)
			last = c.at;
	}
	return UNI_TRACE_SUB_HEAD + (size_t)(last - begin) * 8;
}

/*
 * Copies the records of the current sub-buffer after those that were passed on. Returns 0 if
 * *content_ret bytes of it are valid. *content_ret is 0 if none is new, or the guest was writing
 * meanwhile.
 */
static int copy_open(struct uni_ring *r, struct uni_ring_cpu *c, bool entries, size_t *content_ret)
{
	const struct uni_trace_sub *s = &r->copy.head;
	struct uni_trace_cpu state;
	uint64_t now, end, now_after, end_after;
	int32_t open_bytes;
	size_t content;
	int rc = look_at_cpu(r, c, &state, &r->copy.head, &end);

	*content_ret = 0;
	now = s->begin_seq;
	open_bytes = s->open_bytes; /* before the copy: all of it is written by then */
	if (rc != 0 || c->next_seq != now || end <= UNI_TRACE_SUB_HEAD)
		return rc;
	if (now == c->cut_seq && s->words_before + (end - UNI_TRACE_SUB_HEAD) / 8 <= c->next_words)
		return 0;
	rc = read_ring(r, slot_address(c, now), &r->copy, (size_t)end);
	fence_loads();
	if (rc == 0)
		rc = now_written(r, c, &now_after, &end_after);
	if (rc != 0 || now_after != now || end_after != end || s->begin_seq != now ||
		open_bytes >= 0 || (uint64_t) - (int64_t)open_bytes != UNI_TRACE_SUB_SIZE - end)
		return rc;
	content = written_content(r, (size_t)end);
	*content_ret = entries ? content : lasting_content(r, content);
	return 0;
}

int uni_ring_peek(struct uni_ring *r, unsigned cpu, bool entries, uni_ring_packet_fn fn, void *arg)
{
	struct uni_ring_cpu *c = &r->cpu[cpu], before = *c;
	size_t content;
	int rc = copy_open(r, c, entries, &content);

	if (rc == 0 && content > UNI_TRACE_SUB_HEAD)
		rc = give_packet(r, cpu, content, fn, arg);
	*c = before;
	return rc;
}

int uni_ring_take(struct uni_ring *r, unsigned cpu, uni_ring_packet_fn fn, void *arg)
{
	struct uni_ring_cpu *c = &r->cpu[cpu];
	size_t content;
	int rc = copy_open(r, c, false, &content);

	if (rc != 0 || content <= UNI_TRACE_SUB_HEAD)
		return rc;
	rc = give_packet(r, cpu, content, fn, arg);
	/* The rest of it comes without the part that was passed on. */
	c->cut_seq = c->next_seq;
	return rc;
}
