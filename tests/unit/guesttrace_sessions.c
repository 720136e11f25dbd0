/* SPDX-License-Identifier: BSD-2-Clause */
/* One ring, several starts one after the other. A reader gets exactly the records of the newest
 * start, and counts nothing of the others as lost. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/checked.h"
#include "guesttrace.h"

/* As a host's start writes it, with all CPUs held. */
static void start_session(void)
{
	uni_trace_head.control.gaps++;
	uni_trace_head.control.session++;
	for (unsigned i = 0; i < uni_trace_head.nr_cpus; i++)
		*(volatile uint32_t *)&cpus[i].hi = ~0u;
}

static uint64_t fib_calls(int n)
{
	uint64_t before = work_calls;

	work_fib(n);
	return work_calls - before;
}

/* A session that needs so many sub-buffers. */
static uint64_t fill(double subs)
{
	uint64_t calls = 0;

	while ((double)calls * 16 < subs * UNI_TRACE_SUB_SIZE)
		calls += fib_calls(10);
	return calls;
}

struct read_one {
	struct seen seen;
	struct uni_ring_from from;
	uint64_t packets, lapped_words;
	bool has, tells;
};

static struct read_one read_session(uint32_t session, unsigned nr)
{
	struct uni_ring *r = open_ring();
	struct read_one ret = { .has = false };

	uni_ring_only(r, session);
	assert_int_equal(uni_ring_drain(r, nr, count, &ret.seen), 0);
	ret.from = *uni_ring_from(r, nr);
	ret.packets = uni_ring_stats(r, nr)->packets;
	ret.lapped_words = uni_ring_stats(r, nr)->lapped_words;
	ret.has = uni_ring_has(r, nr);
	ret.tells = info->tells_sessions;
	uni_ring_close(r);
	return ret;
}

/* Wherever in a sub-buffer the next session begins, also with it. */
static void newest_only(void **state)
{
	for (unsigned n = 0; n < 40; n++) {
		struct ring_memory m = trace_start(16, UNI_TRACE_OVERWRITE, uni_trace_exit);
		uint64_t calls[4] = { 0 };
		struct uni_ring_stats stats;
		struct read_one got;

		for (uint32_t session = 0; session < 4; session++) {
			calls[session] = fill(0.1 + n * 0.07) + fib_calls((int)n % 9);
			got = read_session(session, 0);
			assert_int_equal(got.seen.entries, calls[session]);
			assert_int_equal(got.seen.exits, calls[session]);
			assert_int_equal(got.seen.backwards, 0);
			assert_int_equal(got.lapped_words, 0);
			assert_int_equal(got.from.found, session != 0);
			assert_int_equal(got.from.lost, 0);
			if (session < 3)
				start_session();
		}
		/* Older ones are there for who asks, and everything is. */
		got = read_session(1, 0);
		assert_int_equal(got.seen.entries, calls[1] + calls[2] + calls[3]);
		assert_int_equal(
			read_all(&stats).entries, calls[0] + calls[1] + calls[2] + calls[3]);
		trace_end(&m);
	}
}

/* One that has overwritten its own beginning has what is left of it, and says how much is not. */
static void overwritten(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct read_one got;
	uint64_t calls;

	fill(3);
	start_session();
	calls = fill(30);
	got = read_session(1, 0);
	assert_true(got.has);
	assert_false(got.from.found);
	assert_true(got.seen.entries < calls && got.seen.entries > calls / 10);
	assert_true(got.lapped_words >= 2 * (calls - got.seen.entries));
	trace_end(&m);
}

/* CPUs that recorded nothing since have nothing of it, and lost nothing. */
static void silent_cpu(void **state)
{
	struct ring_memory m = trace_start_cpus(2, 8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct read_one got;
	uint64_t calls;

	fill(2.5);
	be_cpu(1);
	fill(1.5);
	start_session();
	calls = fill(0.5);
	got = read_session(1, 0);
	assert_false(got.has);
	assert_int_equal(got.packets, 0);
	assert_int_equal(got.lapped_words, 0);
	got = read_session(1, 1);
	assert_true(got.has && got.from.found);
	assert_int_equal(got.seen.entries, calls);
	be_cpu(0);
	trace_end(&m);
}

/* Numbers wrap in what records say of them. */
static void wraps(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	uint64_t calls;

	uni_trace_head.control.session = 0xfffe;
	start_session();
	fill(9); /* the first sub-buffer was made ready by another number */
	start_session();
	assert_int_equal(uni_trace_head.control.session, 0x10000);
	calls = fill(0.7);
	assert_int_equal(read_session(0x10000, 0).seen.entries, calls);
	trace_end(&m);
}

/* A head of version 1 has no sessions: all of the ring is read, whoever asks for one. */
static void older_guest(void **state)
{
	struct ring_memory m = trace_start(8, UNI_TRACE_OVERWRITE, uni_trace_exit);
	struct read_one old;
	uint64_t calls;

	uni_trace_head.version = UNI_TRACE_VERSION_OLD;
	uni_trace_head.size = UNI_TRACE_HEAD_OLD;
	calls = fill(1.2);
	/* The epoch in such a guest's record is no session. */
	uni_trace_head.epoch = 0x50000;
	uni_trace_new_epoch();
	calls += fill(0.2);
	old = read_session(7, 0);
	assert_int_equal(old.seen.entries, calls);
	assert_false(old.tells);
	uni_trace_head.version = UNI_TRACE_VERSION + 1;
	{
		struct uni_err err = { 0 };
		struct uni_ring *r = NULL;

		assert_int_equal(uni_ring_open(&self_source, (uint64_t)&uni_trace_head, &r, &err),
			-UNI_EFORMAT);
		assert_non_null(strstr(err.msg, "version 3, this program reads versions 1 to 2"));
	}
	trace_end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_only),
		cmocka_unit_test(overwritten),
		cmocka_unit_test(silent_cpu),
		cmocka_unit_test(wraps),
		cmocka_unit_test(older_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
