/* SPDX-License-Identifier: BSD-2-Clause */
/* The pull protocol over lines that are cut, spoilt, slow and lossy: both ends in this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "gueststream.h"

/* --- bad lines -------------------------------------------------------------------------------- */

/* Attach, sample, stop: how many samples came; -1 if it was not even attached. */
static int session_by(const uint8_t *our_key, bool *gone_ret)
{
	uint64_t stack[32];
	struct uni_sample_at at = deep(stack, 32, 3);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_target *t = NULL;
	struct uni_err err = { 0 };
	int rc = attach(our_key, &t, &err);

	*gone_ret = true;
	if (rc != 0) {
		assert_true(err.msg[0] != '\0');
		return -1;
	}
	rc = t->ops->stream_start(t, &at_1000, NULL, &err);
	for (unsigned i = 0; rc == 0 && i < 20; i++) {
		uni_sample_tick(&at);
		rc = t->ops->stream_read(t, &sink);
	}
	(void)t->ops->stream_stop(t);
	*gone_ret = !t->ops->alive(t);
	uni_target_detach(t);
	return (int)got.nr;
}

static int session(bool *gone_ret)
{
	return session_by(NULL, gone_ret);
}

static void test_key_samples(void **state)
{
	bool gone;

	guest_start(key, false);
	assert_int_equal(session_by(key, &gone), 20);
	assert_false(gone);
	assert_int_equal(session_by(key, &gone), 20);
	guest_end();
}

/* The line is cut at every byte: the host ends with what it has, the guest answers the next. */
static void test_cut(void **state)
{
	uint64_t whole;
	bool gone;

	guest_start(NULL, false);
	assert_int_equal(session(&gone), 20);
	assert_false(gone);
	whole = line.sent;
	guest_end();
	for (uint64_t at = 0; at < whole; at += at < 600 ? 1 : 17) {
		guest_start(NULL, false);
		line.cut_at = at;
		assert_true(session(&gone) <= 20);
		line.cut_at = UINT64_MAX;
		line.nr_to_guest = line.nr_to_host = 0;
		assert_int_equal(session(&gone), 20);
		assert_false(gone);
		guest_end();
	}
}

/* A byte is spoilt, or lost: it is asked again, and nothing is missing. */
static void test_garbled(void **state)
{
	bool gone;

	for (uint64_t at = 0; at < 2500; at += at < 300 ? 1 : 13) {
		guest_start(NULL, false);
		line.spoil_at = at;
		assert_int_equal(session(&gone), 20);
		assert_false(gone);
		guest_end();
		guest_start(NULL, false);
		line.lose_at = at;
		assert_int_equal(session(&gone), 20);
		assert_false(gone);
		guest_end();
	}
	guest_start(NULL, false);
	line.spoil_request = true;
	assert_int_equal(session(&gone), 20);
	assert_true(guest.stats.bad_frames > 0);
	guest_end();
}

static uint64_t busy_stack[32];
static unsigned nr_ticks;

static void tick(void)
{
	struct uni_sample_at at = deep(busy_stack, 32, 3);

	uni_sample_tick(&at);
	nr_ticks++;
}

/* A guest that writes between any two requests: what was there at the first comes all the same. */
static void test_never_still(void **state)
{
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_target *t;
	struct uni_err err = { 0 };

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	nr_ticks = 0;
	line.meanwhile = tick;
	for (unsigned i = 0; i < 3000; i++) { /* through some sub-buffers */
		unsigned before = nr_ticks;

		assert_int_equal(t->ops->stream_read(t, &sink), 0);
		assert_true(got.nr + 10 > before);
	}
	line.meanwhile = NULL;
	(void)t->ops->stream_stop(t);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, nr_ticks);
	uni_target_detach(t);
	guest_end();
}

/* A port that takes nothing: the guest is told to come back, and is not held up. */
static void test_slow(void **state)
{
	struct uni_stream_hello h = { .version = 1, .oldest = 1 };
	struct uni_stream_frame f = {
		.magic = UNI_STREAM_MAGIC, .id = 1, .type = UNI_STREAM_HELLO, .size = sizeof(h)
	};

	guest_start(NULL, false);
	line.room = 0;
	f.crc = uni_stream_frame_crc(&f, &h);
	(void)host_send(NULL, &f, sizeof(f), 0);
	(void)host_send(NULL, &h, sizeof(h), 0);
	assert_int_equal(uni_stream_poll(&guest, 4096), 1);
	assert_int_equal(uni_stream_poll(&guest, 4096), 1);
	assert_int_equal(line.nr_to_host, 0);
	line.room = 1;
	for (unsigned i = 0; i < 1000 && uni_stream_poll(&guest, 4096); i++)
		;
	assert_int_equal(line.nr_to_host, sizeof(f) + sizeof(h));
	guest_end();
}

/* A byte now and then, and never one that begins a frame: as if there were none. */
static unsigned nr_noise;

static int noise(void *ctx, void *buf, size_t size, uint64_t deadline_ns)
{
	const struct timespec nap = { .tv_nsec = 5000000 };

	(void)nanosleep(&nap, NULL);
	*(uint8_t *)buf = 0x55;
	nr_noise++;
	assert_true(nr_noise < 1000);
	return 1;
}

static void test_noise(void **state)
{
	static const struct uni_line_ops ops = { .send = host_send, .receive = noise };
	struct uni_target *t;
	struct uni_link *l;
	uint8_t byte;

	guest_start(NULL, false);
	t = attached();
	l = &((struct uni_stream_target *)t)->link;
	l->line.ops = &ops;
	l->wait_ms = 20;
	assert_int_equal(uni_link_read(l, (uint64_t)&cpu, &byte, 1), -UNI_EGONE);
	assert_non_null(strstr(l->ended, "makes no sense"));
	assert_true(nr_noise >= l->tries);
	uni_target_detach(t);
	guest_end();
}

/* Feeds so much of it, as the port's interrupt does. */
static void feed(const struct uni_stream_frame *f, unsigned nr)
{
	uint8_t *p = line.to_guest;

	while (line.nr_to_guest + sizeof(*f) <= nr) {
		memcpy(p + line.nr_to_guest, f, sizeof(*f));
		line.nr_to_guest += sizeof(*f);
	}
	while (line.nr_to_guest != 0)
		(void)uni_stream_poll(&guest, 4096);
}

/*
 * Noise that looks like frames. Heads of frames that are too long are skipped at once, and
 * overlapping frames are not checked for ever. Then a host gets an answer.
 */
static void test_noise_for_guest(void **state)
{
	struct uni_stream_frame f = { .magic = UNI_STREAM_MAGIC, .size = 0xffffffff };
	struct uni_target *t;
	uint64_t before;

	guest_start(NULL, false);
	feed(&f, 60000);
	assert_true(guest.stats.bytes_in >= 59000);
	assert_true(guest.stats.bad_frames <= guest.stats.bytes_in / sizeof(f) + 1);
	before = guest.stats.bad_frames;
	f.size = UNI_STREAM_BODY_MAX;
	feed(&f, 60000);
	/* Each is the length of all that may be here. */
	assert_true(
		guest.stats.bad_frames - before <= 5 * guest.stats.bytes_in / UNI_STREAM_BODY_MAX);
	t = attached();
	uni_target_detach(t);
	guest_end();
}

/* In place of the chain: the stack, as far as it reaches and as is wanted. */
static void test_copied_stack(void **state)
{
	uint64_t stack[32];
	struct uni_sample_at at = deep(stack, 32, 3);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_err err = { 0 };
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	uni_trace_head.tsc_hz = 0;
	uni_sample_copy_stack(67); /* whole words */
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 1);
	assert_int_equal(got.frames, 0);
	assert_int_equal(got.leaf, 0xfff);
	assert_int_equal(got.copied, 64);
	assert_memory_equal(got.words, stack, sizeof(got.words));
	uni_sample_copy_stack(UINT32_MAX);
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.copied, sizeof(stack));
	at.stack_low = at.stack_high = 0; /* not known: nothing is read */
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 3);
	assert_int_equal(got.copied, 0);
	uni_sample_copy_stack(0);
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.frames, 1);
	uni_target_detach(t);
	guest_end();
}

/* Two stacks, and the registers that lead from one to the other. */
static void test_two_stacks(void **state)
{
	static uint64_t other[8], deep_stack[4096];
	const uint64_t saved[] = { 3, 12, 13, 14, 15 };
	uint64_t stack[32];
	struct uni_sample_at at = deep(stack, 32, 3);
	struct got got = { 0 };
	const struct uni_stream_sink sink = { .ctx = &got, .raw = on_raw };
	struct uni_err err = { 0 };
	struct uni_target *t;

	guest_start(NULL, false);
	t = attached();
	assert_int_equal(t->ops->stream_start(t, &at_1000, NULL, &err), 0);
	uni_trace_head.tsc_hz = 0;
	uni_sample_copy_stack(UNI_SAMPLE_STACK_MAX);
	other[7] = 77;
	at.saved = saved;
	at.other_sp = (uint64_t)other;
	at.other_high = (uint64_t)(other + 8);
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 1);
	assert_int_equal(got.leaf, 0xfff);
	assert_int_equal(got.copied, sizeof(stack));
	assert_memory_equal(got.words, stack, sizeof(got.words));
	assert_true(got.other_copied == sizeof(other) && got.other_sp == at.other_sp);
	assert_int_equal(got.other_word, 77);
	for (unsigned i = 0; i < sizeof(saved) / sizeof(saved[0]); i++) {
		uint64_t v;

		assert_true(uni_regs_get(&got.regs, (unsigned)saved[i], &v) && v == saved[i]);
	}
	/* Both as long as may be: the record has room for less. */
	deep_stack[2047] = 88;
	at.sp = at.stack_low = (uint64_t)deep_stack;
	at.stack_high = (uint64_t)(deep_stack + 4096);
	at.other_sp = at.sp;
	at.other_high = at.stack_high;
	uni_sample_tick(&at);
	assert_int_equal(t->ops->stream_read(t, &sink), 0);
	assert_int_equal(got.nr, 2);
	assert_int_equal(got.copied, UNI_SAMPLE_STACK_MAX);
	assert_int_equal(got.other_copied, (4095 - UNI_TRACE_SAMPLE_STACKS - 1) * 8 - 16384);
	/* None, or not known. */
	for (unsigned i = 0; i < 3; i++) {
		at.other_sp = (const uint64_t[]){ 0, 4, (uint64_t)(other + 7) }[i];
		at.other_high = i == 2 ? (uint64_t)(other + 8) : 0;
		uni_sample_tick(&at);
		assert_int_equal(t->ops->stream_read(t, &sink), 0);
		assert_int_equal(got.nr, 3 + i);
		assert_int_equal(got.other_copied, 0);
	}
	uni_sample_copy_stack(0);
	uni_target_detach(t);
	guest_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copied_stack),
		cmocka_unit_test(test_two_stacks),
		cmocka_unit_test(test_key_samples),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_garbled),
		cmocka_unit_test(test_never_still),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_noise_for_guest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
