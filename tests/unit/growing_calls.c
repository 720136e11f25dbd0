/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a session that is followed while it is recorded: after each growth the page's data are
 * those of all of it read anew. */
#include "session_place.h"

#include <fcntl.h>
#include <zlib.h>

#include "base/checked.h"
#include "page/page.h"
#include "recording/ctf_trace.h"
#include "recording/follow.h"
#include "recording/follow_calls.h"
#include "recording/call_input.h"
#include "recording/ring_stream.h"
#include "trace/calls.h"
#include "trace/timeline.h"
#include "../support/trace_make.h"

#define PATIENCE_NS (3 * UNI_NSEC_PER_SEC)
#define DEPTH	    24
#define HZ	    1000000000

static const struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
static const struct uni_calls_filter all;

struct thread {
	uint32_t depth, func[DEPTH];
};

struct live {
	struct place *p;
	struct uni_recorder *rec;
	struct uni_tstream *out;
	struct make m;
	size_t given[MAKE_CPUS]; /* words of m's that the session has */
	uint32_t cpus, runs[MAKE_CPUS];
	struct thread thread[6];
	uint64_t now, random;
	struct uni_page_whole whole;
	/* The reader that follows. */
	struct uni_follow *f;
	struct uni_page_growing *samples;
	struct uni_tfollow *tf;
	struct uni_funcs *funcs;
	struct uni_calls *calls;
	struct uni_timeline tl;
	struct uni_page_calls *page;
};

static uint32_t dice(struct live *l, uint32_t n)
{
	l->random = l->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->random >> 33) % n;
}

static int read_calls(void *ctx, const struct uni_call_event **ret, size_t *nr_ret)
{
	return uni_calls_read(((struct live *)ctx)->calls, ret, nr_ret);
}

static const char *func_name(void *ctx, uint32_t func)
{
	return uni_funcs_name(((struct live *)ctx)->funcs, func);
}

static uint64_t damaged_bytes(void *ctx)
{
	return uni_calls_stats(((struct live *)ctx)->calls)->damaged;
}

static const char *thread_name(void *ctx, uint32_t thread, uint64_t *number_ret)
{
	return uni_calls_thread_name(((struct live *)ctx)->calls, thread, number_ret);
}

static void follow(struct live *l)
{
	static const struct uni_funcs_naming none = { 0 };
	struct uni_recording *rec;

	assert_int_equal(uni_follow_open(l->p->path, PATIENCE_NS, &l->f, &l->p->err), 0);
	rec = uni_follow_recording(l->f);
	assert_int_equal(uni_page_growing_create(rec, &opts, &l->whole, &l->samples), 0);
	assert_int_equal(uni_tfollow_open(rec, 0, PATIENCE_NS, &l->tf, &l->p->err), 0);
	l->funcs = uni_funcs_create(&none);
	assert_non_null(l->funcs);
	assert_int_equal(
		uni_calls_open(uni_tfollow_input(l->tf), &all, l->funcs, &l->calls, &l->p->err), 0);
	l->tl = (struct uni_timeline){ .ctx = l,
		.read = read_calls,
		.func = func_name,
		.thread = thread_name,
		.damaged = damaged_bytes };
	l->page = uni_page_calls_create(&l->tl, &l->whole);
	assert_non_null(l->page);
}

static void unfollow(struct live *l)
{
	uni_page_calls_destroy(l->page);
	uni_calls_close(l->calls);
	uni_funcs_destroy(l->funcs);
	uni_tfollow_close(l->tf);
	uni_page_growing_destroy(l->samples);
	uni_follow_close(l->f);
}

static void begin(struct live *l, struct place *p, uint32_t cpus, uint64_t calls)
{
	struct uni_record_trace *t = &p->meta.trace;

	*l = (struct live){ .p = p,
		.cpus = cpus,
		.now = 5 * (uint64_t)HZ,
		.random = 1,
		.whole = { calls, 250000, 65536 } };
	make_init(&l->m, cpus, HZ);
	l->m.packet_words = 400;
	uni_record_trace_deinit(t);
	*t = (struct uni_record_trace){ .mode = "graph", .info = l->m.in.info };
	assert_true(uni_record_trace_room(t, cpus));
	for (uint32_t i = 0; i < cpus; i++) {
		t->cpu[i].clock = (struct uni_record_clock){
			.cycles = 7, .ns = 8, .hz = HZ, .error_ns = 100, .source = "ring"
		};
		l->runs[i] = i;
	}
	assert_int_equal(uni_recorder_create(p->path, &p->meta, false, &l->rec, &p->err), 0);
	assert_int_equal(uni_recorder_trace(l->rec, 0, &l->out, &p->err), 0);
	for (uint32_t i = 0; i < cpus; i++)
		uni_tstream_begin(l->out, i, l->now, 0, 0, 0);
	follow(l);
}

static void end(struct live *l)
{
	unfollow(l);
	make_deinit(&l->m);
	assert_int_equal(uni_recorder_close(l->rec, NULL, 0, &l->p->err), 0);
}

static uint32_t sp_of(uint32_t depth)
{
	return 0x80000 - depth * 0x100;
}

static void one_event(struct live *l, unsigned cpu)
{
	struct thread *t = &l->thread[l->runs[cpu]];
	uint32_t what = dice(l, 100);

	l->now += 1 + dice(l, 3000);
	if (what < 2) {
		uint32_t to = dice(l, 3) * l->cpus + cpu;

		make_switch(&l->m, cpu, l->now, l->runs[cpu] + 1, to % 6 + 1);
		l->runs[cpu] = to % 6;
	} else if (what == 2 && dice(l, 20) == 0) {
		make_lapped(&l->m, cpu, 5);
		t->depth = 0;
	} else if (what < 20) {
		make_leaf(&l->m, cpu, l->now, 0x1000 + dice(l, 9) * 16);
	} else if ((what < 60 || t->depth == 0) && t->depth < DEPTH) {
		t->func[t->depth] = 0x2000 + dice(l, 12) * 16;
		make_enter(&l->m, cpu, l->now, t->func[t->depth++]);
	} else {
		make_exit(&l->m, cpu, l->now, sp_of(--t->depth));
	}
}

/* Makes packets of the session from the new events; the last packet may hold little. */
static void give(struct live *l, unsigned cpu)
{
	make_close(&l->m, cpu);
	while (l->given[cpu] < l->m.cpu[cpu].nr) {
		const struct uni_trace_sub *s = (const void *)(l->m.cpu[cpu].v + l->given[cpu]);

		assert_int_equal(uni_tstream_put(l->out, cpu, s, s->content_size / 8), 0);
		l->given[cpu] += s->content_size / 64;
	}
}

/* Puts a packet without events: from then on nothing older can come. */
static void mark(struct live *l, unsigned cpu)
{
	const struct make_cpu *c = &l->m.cpu[cpu];
	const struct uni_trace_sub s = { .ts_begin = l->now + 10,
		.ts_end = l->now + 10,
		.begin_seq = c->seq + 1,
		.end_seq = c->seq + 1,
		.words_before = c->words,
		.lost = c->lost };

	assert_int_equal(uni_tstream_put(l->out, cpu, &s, sizeof(s)), 0);
}

static void put_many(struct live *l, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		one_event(l, dice(l, l->cpus));
	for (uint32_t i = 0; i < l->cpus; i++) {
		give(l, i);
		if (l->cpus > 1)
			mark(l, i);
	}
	l->now += 10;
}

static int look(struct live *l)
{
	const struct uni_follow_taker to = { NULL, NULL, NULL };
	struct uni_call_event *ends = NULL;
	uint64_t until;
	size_t nr = 0;
	int rc = uni_follow_look(l->f, &to, &l->p->err);

	if (rc == 0)
		rc = uni_tfollow_look(l->tf, &until, &l->p->err);
	if (rc == 0)
		rc = uni_calls_grown(l->calls, until);
	if (rc == 0)
		rc = uni_page_calls_read(l->page);
	if (rc == 0)
		rc = uni_calls_ends(l->calls, &ends, &nr);
	if (rc == 0)
		rc = uni_page_calls_end(l->page, ends, nr);
	free(ends);
	return rc;
}

/* Unpacked; it is one whole gzip member, whatever pieces it was made of. */
static char *data_of(const struct uni_page_input *in, size_t *len_ret)
{
	const size_t room = 32u << 20;
	struct uni_page_left left;
	struct uni_err err = { 0 };
	struct uni_strbuf packed;
	struct uni_sink *out;
	z_stream z = { 0 };
	char *data = malloc(room);

	uni_strbuf_init(&packed);
	assert_non_null(data);
	assert_int_equal(uni_sink_open_strbuf(&packed, &out), 0);
	assert_int_equal(uni_page_write_data(in, out, &left, &err), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = (unsigned char *)packed.s;
	z.avail_in = (unsigned)packed.len;
	z.next_out = (unsigned char *)data;
	z.avail_out = (unsigned)room;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	*len_ret = room - z.avail_out;
	(void)inflateEnd(&z);
	uni_strbuf_deinit(&packed);
	return data;
}

static char *data_anew(struct live *l, size_t *len_ret)
{
	static const struct uni_funcs_naming none = { 0 };
	struct uni_page_input in = { .title = "t", .opts = &opts, .whole = l->whole };
	struct uni_trace_timeline *timeline = NULL;
	struct uni_recording *rec = NULL;
	struct uni_tinput *input = NULL;
	struct uni_timeline tl;
	char *data;

	assert_int_equal(uni_recording_open(l->p->path, &rec, &l->p->err), 0);
	assert_int_equal(uni_tinput_open(rec, 0, &input, &l->p->err), 0);
	assert_int_equal(
		uni_trace_timeline_open(uni_tinput_get(input), &all, &none, &timeline, &l->p->err),
		0);
	tl = uni_trace_timeline_get(timeline);
	in.rec = rec;
	in.timeline = &tl;
	data = data_of(&in, len_ret);
	uni_trace_timeline_close(timeline);
	uni_tinput_close(input);
	uni_recording_close(rec);
	return data;
}

static size_t check_same(struct live *l)
{
	const struct uni_page_input in = { .title = "t",
		.rec = uni_follow_recording(l->f),
		.opts = &opts,
		.growing = l->samples,
		.calls = l->page,
		.whole = l->whole };
	size_t len, want_len;
	char *got = data_of(&in, &len), *want = data_anew(l, &want_len);

	if (len != want_len || memcmp(got, want, len) != 0)
		print_message("%.1500s\n%.1500s\n", got + 8, want + 8);
	assert_int_equal(len, want_len);
	assert_memory_equal(got, want, len);
	free(got);
	free(want);
	return len;
}

static void same_as_anew(struct place *p, uint32_t cpus)
{
	static const uint64_t steps[] = { 1, 2, 40, 1, 3000, 0, 17, 9000, 1, 60000, 5, 300, 20000 };
	size_t len = 0;
	struct live l;

	begin(&l, p, cpus, 1000000);
	for (size_t i = 0; i < uni_array_len(steps); i++) {
		put_many(&l, steps[i]);
		assert_int_equal(look(&l), 0);
		len = check_same(&l);
	}
	/* Some 53,000 calls, at least seven bytes each. */
	assert_true(len > 370000);
	end(&l);
}

/* By and by rows have many pieces; calls are open at each look, and events missing. */
static void one_cpu(void **state)
{
	same_as_anew(*state, 1);
}

/* Threads go from one to the other. */
static void three_cpus(void **state)
{
	same_as_anew(*state, 3);
}

/* Events of a CPU are taken up to the time that all CPUs have reached. A CPU that is not waited for
 * any more may come back. */
static void late(void **state)
{
	uint64_t events;
	struct live l;

	begin(&l, *state, 2, 1000000);
	put_many(&l, 500);
	assert_int_equal(look(&l), 0);
	events = uni_calls_stats(l.calls)->events;
	l.now += 1000;
	make_leaf(&l.m, 0, l.now, 0x1000);
	give(&l, 0);
	assert_int_equal(look(&l), 0);
	assert_int_equal(uni_calls_stats(l.calls)->events, events);
	l.now += PATIENCE_NS + 1000;
	make_leaf(&l.m, 0, l.now, 0x1000);
	give(&l, 0);
	assert_int_equal(look(&l), 0);
	assert_int_equal(uni_calls_stats(l.calls)->events, events + 1);
	l.now += 1000;
	mark(&l, 0);
	assert_int_equal(look(&l), 0);
	assert_int_equal(uni_calls_stats(l.calls)->events, events + 2);
	make_leaf(&l.m, 1, l.now - PATIENCE_NS, 0x1000);
	give(&l, 1);
	assert_int_equal(look(&l), -UNI_EAGAIN);
	unfollow(&l);
	follow(&l);
	mark(&l, 1);
	assert_int_equal(look(&l), 0);
	check_same(&l);
	end(&l);
}

static void append(const struct live *l, const void *data, size_t len)
{
	char name[128];
	int fd;

	(void)snprintf(name, sizeof(name), "%s/guest-0/events-vcpu0", l->p->path);
	fd = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	(void)close(fd);
}

/* Bytes that are no packet are skipped, and a packet that is cut is waited for. */
static void damaged(void **state)
{
	static const char junk[304] = "no packet";
	struct live l;
	const struct uni_trace_sub *s;
	struct uni_trace_sub head;
	uint64_t events;

	begin(&l, *state, 1, 1000000);
	put_many(&l, 1000);
	assert_int_equal(look(&l), 0);
	append(&l, junk, sizeof(junk));
	/* The end of it may yet become a packet. */
	assert_int_equal(look(&l), 0);
	assert_in_range(uni_calls_stats(l.calls)->damaged, 1, sizeof(junk));
	put_many(&l, 1000);
	assert_int_equal(look(&l), 0);
	check_same(&l);
	assert_int_equal(uni_calls_stats(l.calls)->damaged, sizeof(junk));
	events = uni_calls_stats(l.calls)->events;
	for (int i = 0; i < 50; i++) {
		l.now += 100;
		make_leaf(&l.m, 0, l.now, 0x1000);
	}
	make_close(&l.m, 0);
	s = (const void *)(l.m.cpu[0].v + l.given[0]);
	head = *s;
	memcpy(head.uuid,
		((const struct uni_trace_sub *)uni_tfollow_input(l.tf)->cpu[0].data)->uuid,
		sizeof(head.uuid));
	head.stream_id = UNI_CTF_EVENTS;
	append(&l, &head, 100);
	assert_int_equal(look(&l), 0);
	append(&l, (const char *)&head + 100, sizeof(head) - 100);
	append(&l, s + 1, 200);
	assert_int_equal(look(&l), 0);
	assert_int_equal(uni_calls_stats(l.calls)->events, events);
	append(&l, (const char *)(s + 1) + 200, 200);
	assert_int_equal(look(&l), 0);
	assert_int_equal(uni_calls_stats(l.calls)->events, events + 50);
	check_same(&l);
	end(&l);
}

/* More than go into the data are another's business. */
static void too_many(void **state)
{
	struct live l;

	begin(&l, *state, 1, 2000);
	put_many(&l, 1000);
	assert_int_equal(look(&l), 0);
	check_same(&l);
	put_many(&l, 10000);
	assert_int_equal(look(&l), -UNI_ENOTSUP);
	assert_true(uni_page_calls_too_many(l.page));
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_cpu, setup, teardown),
		cmocka_unit_test_setup_teardown(three_cpus, setup, teardown),
		cmocka_unit_test_setup_teardown(late, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(too_many, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
