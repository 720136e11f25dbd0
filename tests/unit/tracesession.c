/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest's sub-buffers through a session and back; clocks; what is patched and what is not. */
#include "session_place.h"

#include "base/clock.h"
#include "base/tsc.h"
#include "tracing/clock.h"
#include "recording/call_input.h"
#include "recording/ring_stream.h"
#include "backend/patch.h"

#define TS 1000000000ull

struct packet {
	struct uni_trace_sub head;
	uint64_t word[8];
};

/* `nr` entries and exits, behind `before` words. */
static struct packet make(uint64_t seq, uint64_t before, uint64_t nr, uint64_t lost)
{
	struct packet p = { .head = { .begin_seq = seq,
				    .end_seq = seq,
				    .ts_begin = TS + seq * 1000,
				    .ts_end = TS + (seq + 1) * 1000,
				    .lost = lost,
				    .words_before = before } };

	for (uint64_t i = 0; i < nr; i++)
		p.word[i] = (uint32_t)(p.head.ts_begin + i * 10) |
			    (i % 2 == 0 ? UNI_TRACE_ENTRY : UNI_TRACE_EXIT) * (1ull << 32) |
			    0x123ull << 36;
	return p;
}

static struct uni_record_trace about(void)
{
	struct uni_record_trace t = { .mode = "graph", .filter = "tcp_* -x" };

	assert_true(uni_record_trace_room(&t, 2));
	t.info.nr_cpus = 2;
	t.info.machine = 62;
	t.info.text_window = 0xffffffff00000000ull;
	t.info.tsc_hz = 2600000000;
	t.info.kinds[UNI_TRACE_ENTRY] = UNI_TRACE_KIND_ENTRY;
	t.info.kinds[UNI_TRACE_EXIT] = UNI_TRACE_KIND_EXIT;
	t.info.kinds[UNI_TRACE_SYNC] = UNI_TRACE_KIND_SYNC;
	for (int i = 0; i < 2; i++)
		t.cpu[i].clock = (struct uni_record_clock){ .cycles = 7,
			.ns = 8,
			.hz = 2600000001,
			.error_ns = i == 0 ? 440 : UINT64_MAX,
			.source = "ring" };
	return t;
}

static struct uni_recorder *open_session(struct place *p, struct uni_tstream **out)
{
	struct uni_recorder *r = NULL;

	p->meta.trace = about();
	assert_int_equal(uni_recorder_create(p->path, &p->meta, false, &r, &p->err), 0);
	assert_int_equal(uni_recorder_trace(r, 0, out, &p->err), 0);
	return r;
}

static void put_packet(struct uni_tstream *out, unsigned cpu, const struct packet *p, uint64_t nr)
{
	assert_int_equal(uni_tstream_put(out, cpu, &p->head, sizeof(p->head) + nr * 8), 0);
}

/* Overwritten, without room, at the end: each is told once, and where it happened. */
static void test_losses(void **state)
{
	struct place *p = *state;
	struct uni_record_trace_cpu c = { 0 };
	struct uni_tstream *out = NULL;
	struct uni_recorder *r = open_session(p, &out);
	struct packet one = make(5, 100, 4, 3), two = make(6, 104, 2, 5), late = make(9, 120, 6, 4);

	/* 14 words are missing, 5 of them no events. 4 more are missing, 2 of them no events.
	 * (`late` has 8 of them.) */
	one.head.extra_before = one.head.extra_after = two.head.extra_before = 20;
	two.head.extra_after = 21;
	late.head.extra_before = 26;
	late.head.extra_after = 34;
	uni_tstream_begin(out, 0, TS, 100, 20, 3); /* what was before is not of this trace */
	put_packet(out, 0, &one, 4);
	put_packet(out, 0, &two, 2);
	uni_tstream_stats(out, 0, &c);
	assert_int_equal(c.packets, 2);
	assert_int_equal(c.words, 6);
	assert_int_equal(c.events, 6);
	assert_int_equal(c.others, 0);
	assert_int_equal(c.lost, 2);
	assert_int_equal(c.lost_words, 0);
	/* 14 words missing: 106 to 119; and losses that go back, as they don't. */
	put_packet(out, 0, &late, 6);
	uni_tstream_stats(out, 0, &c);
	assert_int_equal(c.lost, 2);
	uni_tstream_end(out, 0, 9, 130, 36);
	uni_tstream_stats(out, 0, &c);
	assert_int_equal(c.packets, 3);
	assert_int_equal(c.words, 12);
	assert_int_equal(c.lost, 6);
	assert_int_equal(c.lost_words, 14 + 4);
	assert_int_equal(c.lost_extra, 5 + 2);
	assert_int_equal(uni_record_trace_lost(&c), 6 + 18 - 7);
	/* Without a beginning, it began with the boot. */
	put_packet(out, 1, &one, 4);
	uni_tstream_stats(out, 1, &c);
	assert_int_equal(c.lost_words, 100);
	assert_int_equal(c.lost, 3);
	assert_int_equal(uni_tstream_errno(out), 0);
	assert_int_equal(uni_recorder_close(r, NULL, 0, &p->err), 0);
}

static const struct uni_trace_sub *at(const struct uni_trace_stream *s, size_t offset)
{
	assert_true(offset + sizeof(struct uni_trace_sub) <= s->size);
	return (const struct uni_trace_sub *)(const void *)((const uint8_t *)s->data + offset);
}

static void check_first_stream(const struct uni_trace_stream *s)
{
	const struct uni_trace_sub *h = at(s, 0);
	size_t offset = h->packet_size / 8;

	assert_int_equal(offset, sizeof(*h)); /* an empty one says where the counting begins */
	assert_int_equal(h->lost, 0);
	h = at(s, offset);
	assert_int_equal(h->content_size / 8, sizeof(*h) + 32);
	assert_int_equal(h->stream_id, 16);
	assert_int_equal(h->lost, 2);
	h = at(s, offset + h->packet_size / 8);
	assert_int_equal(h->lost, 14 + 2);  /* it said 0: from before the other one was closed */
	assert_int_equal(h->packet_seq, 4); /* two sub-buffers are missing */
	/* A sub-buffer that was not closed ends with its last record. */
	assert_int_equal(h->ts_end, TS + 8 * 1000 + 50);
}

/* Reads a stream as CTF's readers do, which give up where time goes back or cannot be. */
static uint64_t check_ctf_packet(const struct uni_trace_sub *h, uint64_t now)
{
	const uint64_t *word = (const uint64_t *)(const void *)(h + 1), *end;

	end = word + (h->content_size / 8 - sizeof(*h)) / 8;
	assert_true(h->ts_begin >= now && h->ts_end >= h->ts_begin);
	now = h->ts_begin;
	while (word < end) {
		bool sync = (*word >> 32 & 15) == UNI_TRACE_SYNC;

		now += (uint32_t)((uint32_t)*word - (uint32_t)now);
		assert_true(!sync || (end - word >= 3 && word[1] >= now));
		now = sync ? word[1] : now;
		assert_true(now < INT64_MAX);
		word += sync ? 3 : 1;
	}
	assert_true(h->ts_end >= now);
	return h->ts_end;
}

static void check_ctf(const struct uni_trace_stream *s)
{
	uint64_t now = 0, lost = 0;
	size_t offset = 0, nr = 0;

	for (; offset < s->size; nr++) {
		const struct uni_trace_sub *h = at(s, offset);

		assert_true(h->lost >= lost && h->lost <= INT64_MAX);
		lost = h->lost;
		now = check_ctf_packet(h, now);
		offset += h->packet_size / 8;
	}
	assert_int_equal(offset, s->size);
	assert_true(nr > 200);
}

static uint64_t next(uint64_t *mix)
{
	*mix = *mix * 6364136223846793005ULL + 1442695040888963407ULL;
	return *mix ^ *mix >> 33;
}

/* A guest that lies, with numbers of any kind: what is written is a trace all the same. */
static void test_lies(void **state)
{
	struct place *p = *state;
	struct uni_tstream *out = NULL;
	struct uni_recorder *r = open_session(p, &out);
	struct uni_recording *rec = NULL;
	struct uni_tinput *t = NULL;
	uint64_t mix = 1;

	uni_tstream_begin(out, 0, TS, 100, 0, 0);
	for (unsigned i = 0; i < 300; i++) {
		struct packet one = make(5 + i, 100 + 6 * i, 6, i == 3 ? UINT64_MAX : 0);

		for (unsigned k = 0; i % 4 != 0 && k < 6; k++)
			one.word[k] = k % 3 != 0
					      ? next(&mix) >> i % 32
					      : (uint32_t)next(&mix) |
							(i & 1 ? UNI_TRACE_SYNC : UNI_TRACE_ENTRY) *
								(1ull << 32);
		one.head.ts_end = i % 5 == 1 ? next(&mix) : one.head.ts_end;
		one.head.ts_begin = i % 7 == 1 ? next(&mix) : one.head.ts_begin;
		put_packet(out, 0, &one, 6);
	}
	assert_int_equal(uni_recorder_close(r, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_int_equal(uni_tinput_open(rec, 0, &t, &p->err), 0);
	check_ctf(&uni_tinput_get(t)->cpu[0]);
	uni_tinput_close(t);
	uni_recording_close(rec);
}

static void test_there_and_back(void **state)
{
	struct place *p = *state;
	struct uni_tstream *out = NULL;
	struct uni_recorder *r = open_session(p, &out);
	struct packet one = make(5, 100, 4, 2), open = make(8, 118, 6, 0);
	const struct uni_trace_input *in;
	struct uni_recording *rec = NULL;
	struct uni_tinput *t = NULL;
	struct uni_record_trace after = about();

	open.head.end_seq = 0;
	open.head.ts_end = 0;
	uni_tstream_begin(out, 0, TS, 100, 0, 0);
	put_packet(out, 0, &one, 4);
	put_packet(out, 0, &open, 6);
	after.cpu[0].words = 10;
	after.end_ns = TS + 5;
	after.on_cpu.nr = 2;
	after.on_cpu.at[1].ns = TS + 3;
	after.on_cpu.at[1].on_ns = 77;
	after.on_cpu.at[1].stolen_ns = 5;
	assert_int_equal(uni_recorder_set_trace(r, 0, &after, &p->err), 0);
	uni_record_trace_deinit(&after);
	assert_int_equal(uni_recorder_close(r, NULL, 0, &p->err), 0);

	assert_int_equal(uni_recording_open(p->path, &rec, &p->err), 0);
	assert_string_equal(uni_recording_meta(rec)->trace.filter, "tcp_* -x");
	assert_int_equal(uni_recording_meta(rec)->trace.cpu[0].words, 10);
	assert_int_equal(uni_recording_meta(rec)->trace.end_ns, TS + 5);
	assert_int_equal(uni_recording_meta(rec)->trace.on_cpu.nr, 2);
	assert_int_equal(uni_recording_meta(rec)->trace.on_cpu.at[1].ns, TS + 3);
	assert_int_equal(uni_recording_meta(rec)->trace.on_cpu.at[1].on_ns, 77);
	assert_int_equal(uni_recording_meta(rec)->trace.on_cpu.at[1].stolen_ns, 5);
	assert_int_equal(uni_recording_meta(rec)->trace.cpu[1].clock.error_ns, UINT64_MAX);
	assert_int_equal(uni_tinput_open(rec, 0, &t, &p->err), 0);
	in = uni_tinput_get(t);
	assert_int_equal(in->info.nr_cpus, 2);
	assert_int_equal(in->info.tsc_hz, 2600000001);
	assert_int_equal(in->info.text_window, 0xffffffff00000000ull);
	assert_int_equal(in->info.kinds[UNI_TRACE_EXIT], UNI_TRACE_KIND_EXIT);
	assert_int_equal(in->mode, UNI_TRACE_MODE_GRAPH);
	assert_int_equal(in->cpu[0].clock.error_ns, 440);
	check_first_stream(&in->cpu[0]);
	assert_int_equal(in->cpu[1].size, 0);
	uni_tinput_close(t);
	uni_recording_close(rec);
}

static void test_clock_ns(void **state)
{
	const struct uni_record_clock c = { .cycles = 5200, .ns = 1000, .hz = 2600000000 };

	(void)state;
	assert_int_equal(uni_record_clock_ns(&c, 5200 + 2600), 2000);
	assert_int_equal(uni_record_clock_ns(&c, 2600), 0);
	assert_int_equal(uni_record_clock_ns(&c, 0), 0);
	assert_true(uni_record_clock_ns(&c, UINT64_MAX) > 7000000000000000000ull);
}

/* Resets the clock to one CPU, and a host without a counter. */
static void forget(struct uni_tclock *c)
{
	assert_int_equal(uni_tclock_open(c, 0, 1, NULL, NULL), 0);
	c->host_ns = c->host_tsc = 0;
}

/* The narrowest of the beginning, and one at the end, tell place and frequency. */
static void test_clock_points(void **state)
{
	struct uni_tclock clock = { 0 }, *c = &clock;
	const struct uni_ring_info info = { .nr_cpus = 1, .tsc_hz = 3000000000 };
	const struct uni_tclock_point points[] = {
		{ 1000000, 100000, 150000 },
		{ 1030000, 110000, 112000 },
		{ 1060000, 120000, 180000 },
		{ 3001030000, 1000110000, 1000112000 },
	};
	struct uni_record_clock r;

	(void)state;
	assert_int_equal(uni_tclock_open(c, 0, 1, NULL, NULL), 0);
	uni_tclock_add(c, 0, &points[0]);
	uni_tclock_settle(c);
	assert_true(uni_now_ns() - c->host_ns >= 50 * UNI_NSEC_PER_MSEC);
	forget(c);
	uni_tclock_result(c, &info, 0, &r);
	assert_string_equal(r.source, "guest");
	assert_int_equal(r.error_ns, UINT64_MAX);
	for (size_t i = 0; i < 4; i++)
		uni_tclock_add(c, 0, &points[i]);
	uni_tclock_result(c, &info, 0, &r);
	assert_string_equal(r.source, "ring");
	assert_int_equal(r.cycles, 1030000);
	assert_int_equal(r.ns, 111000);
	assert_int_equal(r.hz, 3000000000);
	assert_int_equal(r.error_ns, 1000); /* half the width of the narrow ones at both ends */
	/* Points of a counter that stands, or of nonsense: readers could not convert the times. */
	forget(c);
	uni_tclock_add(c, 0, &(struct uni_tclock_point){ 3, 110000, 112000 });
	uni_tclock_add(c, 0, &(struct uni_tclock_point){ 9, 1000110000, 1000112000 });
	uni_tclock_result(c, &info, 0, &r);
	assert_int_equal(r.hz, 3000000000);
	assert_int_equal(r.error_ns, UINT64_MAX);
	uni_tclock_close(c);
}

/* A host of this architecture has one, whatever the code says. */
static bool has_tsc(const struct uni_tclock *c)
{
#if defined(__x86_64__)
	assert_true(c->host_tsc != 0);
#endif
	return c->host_tsc != 0;
}

/* A guest that does not say how fast its counter goes, which is the host's, or is not. */
static void test_hosts_clock(void **state)
{
	struct uni_tclock clock = { 0 }, *c = &clock;
	const struct uni_ring_info info = { .nr_cpus = 1 };
	struct uni_tclock_point p;
	struct uni_record_clock r;

	(void)state;
	assert_int_equal(uni_tclock_open(c, 0, 1, NULL, NULL), 0);
	if (!has_tsc(c)) {
		uni_tclock_close(c);
		skip(); /* this host has none */
	}
	for (unsigned moved = 0; moved < 2; moved++) {
		assert_int_equal(uni_tclock_open(c, 0, 1, NULL, NULL), 0);
		p = (struct uni_tclock_point){ .from_ns = uni_now_ns() };
		p.cycles = uni_host_tsc() + moved * 1000000000u;
		p.to_ns = uni_now_ns();
		uni_tclock_add(c, 0, &p);
		uni_tclock_settle(c);
		uni_tclock_result(c, &info, 0, &r);
		assert_string_equal(r.source, "ring");
		assert_int_equal(r.cycles, p.cycles);
		assert_int_equal(r.error_ns == UINT64_MAX, moved);
		assert_int_equal(r.hz == UNI_NSEC_PER_SEC, moved);
	}
	uni_tclock_close(c);
}

/* Points far apart say less of a frequency than a source that knows it. But no points are so wide
 * that a guest's frequency, three times too high, is believed. */
static void test_known_frequencies(void **state)
{
	struct uni_tclock clock = { 0 }, *c = &clock;
	const struct uni_ring_info right = { .nr_cpus = 1, .tsc_hz = 2000000000 },
				   wrong = { .nr_cpus = 1, .tsc_hz = 6400000000 };
	struct uni_tclock_point at[2];
	struct uni_record_clock r;
	uint64_t own;

	(void)state;
	forget(c);
	uni_tclock_add(c, 0, &(struct uni_tclock_point){ 1000, 1000000, 1001000 });
	uni_tclock_add(c, 0, &(struct uni_tclock_point){ 4000001000, 1975000000, 2015000000 });
	uni_tclock_result(c, &right, 0, &r);
	assert_int_equal(r.hz, 2000000000);	/* not 2006018500, as the middles tell */
	assert_int_equal(r.error_ns, 26000500); /* what the second one allows */
	uni_tclock_result(c, &wrong, 0, &r);
	assert_in_range(r.hz, 2005000000, 2015000000);

	assert_int_equal(uni_tclock_open(c, 1, 1, "/nonexistent", NULL), 0);
	uni_tclock_settle(c);
	uni_tclock_result(c, &wrong, 0, &r); /* nothing was recorded */
	if (!has_tsc(c)) {
		uni_tclock_close(c);
		skip(); /* this host has none */
	}
	own = r.hz;
	assert_string_equal(r.source, "host");
	assert_int_equal(r.error_ns, UINT64_MAX);
	assert_true(own < 6000000000);
	for (unsigned i = 0; i < 2; i++) {
		at[i].from_ns = c->host_ns + i * UNI_NSEC_PER_MSEC;
		at[i].to_ns = at[i].from_ns + 2000;
		at[i].cycles = 123456789 + i * own / 1000;
	}
	uni_tclock_add(c, 0, &at[0]); /* one look of 1 ms */
	uni_tclock_result(c, &wrong, 0, &r);
	assert_in_range(r.hz, own - own / 100, own + own / 100);
	assert_int_equal(r.error_ns, UINT64_MAX);
	uni_tclock_add(c, 0, &at[1]);
	uni_tclock_result(c, &wrong, 0, &r);
	assert_in_range(r.hz, own - own / 100, own + own / 100);
	assert_in_range(r.error_ns, 1000, UNI_NSEC_PER_SEC);
	/* A counter that is slowed down. */
	at[1].cycles = 123456789 + own / 2000;
	at[1].to_ns -= 100; /* sharper */
	uni_tclock_add(c, 0, &at[1]);
	uni_tclock_result(c, &wrong, 0, &r);
	assert_int_equal(r.error_ns, UINT64_MAX);
	uni_tclock_close(c);
}

static struct uni_patch patch_at(uint64_t gpa, uint8_t old, uint8_t new)
{
	struct uni_patch p = { .va = gpa, .gpa = gpa, .len = 5 };

	for (int i = 0; i < 5; i++) {
		p.old_bytes[i] = old;
		p.new_bytes[i] = new;
	}
	return p;
}

static void fill(const struct uni_patch_plan *p, uint8_t byte)
{
	for (size_t i = 0; i < p->size; i++)
		p->was[i] = byte;
}

/* Never more than two pages at once, nothing written over what is not expected. */
static void test_patch_plan(void **state)
{
	const struct uni_patch patch[] = { patch_at(0x1000, 1, 2), patch_at(0x1ffd, 1, 2),
		patch_at(0x2ffd, 1, 2), patch_at(0x9000, 1, 2) };
	struct uni_patch_job job = { .patch = patch, .nr = 4 };
	struct uni_regs regs = { .pc = 0x9002 };
	struct uni_patch_plan p;

	(void)state;
	assert_int_equal(uni_patch_plan(&job, 8192, &p), 0);
	assert_int_equal(p.nr, 3);
	assert_int_equal(p.extent[0].nr, 2);
	assert_int_equal(p.extent[0].len, 0x1002);
	fill(&p, 1);
	assert_int_equal(uni_patch_apply(&p), 0);
	assert_int_equal(job.nr_written, 4);
	assert_int_equal(p.want[0], 2);
	assert_int_equal(p.want[5], 1); /* between two places */
	assert_ptr_equal(uni_patch_was(&p, 3), p.was + p.extent[2].at);
	fill(&p, 2); /* it is there already */
	assert_int_equal(uni_patch_apply(&p), 0);
	assert_int_equal(job.nr_written, 0);
	p.was[p.extent[2].at + 4] = 7;
	assert_int_equal(uni_patch_apply(&p), -UNI_EMISMATCH);
	assert_int_equal(job.bad, 3);
	assert_false(uni_patch_hit(&p, &regs)); /* one instruction: nobody is within it */
	uni_patch_plan_deinit(&p);
}

static void test_patch_pieces(void **state)
{
	struct uni_patch one = patch_at(0x9000, 1, 2);
	struct uni_patch_job job = { .patch = &one, .nr = 1 };
	struct uni_regs regs = { .pc = 0x9004 };
	struct uni_patch_plan p;

	(void)state;
	one.pieces = true;
	assert_int_equal(uni_patch_plan(&job, 8192, &p), 0);
	assert_true(uni_patch_hit(&p, &regs));
	regs.pc = 0x9000;
	assert_false(uni_patch_hit(&p, &regs));
	regs.pc = 0x9005;
	assert_false(uni_patch_hit(&p, &regs));
	uni_patch_plan_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lies, setup, teardown),
		cmocka_unit_test_setup_teardown(test_there_and_back, setup, teardown),
		cmocka_unit_test(test_clock_ns),
		cmocka_unit_test(test_clock_points),
		cmocka_unit_test(test_hosts_clock),
		cmocka_unit_test(test_known_frequencies),
		cmocka_unit_test(test_patch_plan),
		cmocka_unit_test(test_patch_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
