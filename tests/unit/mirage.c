/* SPDX-License-Identifier: BSD-2-Clause */
/* MirageOS' trace rings: order, damage, and what is written read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/mirage/mirage.h"

struct got {
	struct uni_promise_event e[512];
	char text[512][32];
	size_t nr;
};

static int take(void *arg, const struct uni_promise_event *e)
{
	struct got *g = arg;

	assert_true(g->nr < 512);
	g->e[g->nr] = *e;
	if (e->text != NULL) {
		size_t len = e->text_len < 31 ? e->text_len : 31;

		memcpy(g->text[g->nr], e->text, len);
		g->text[g->nr][len] = 0;
	}
	g->nr++;
	return 0;
}

/* One event of each kind that the format has, `rounds` times over. */
static struct uni_strbuf write_all(size_t packet, unsigned rounds, uint64_t *dropped_ret)
{
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_mirage_writer *w = NULL;
	struct uni_err err = { 0 };
	uint64_t time = 1000;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_mirage_writer_open(out, packet, &w, &err), 0);
	for (unsigned i = 0; i < rounds; i++) {
		for (uint8_t kind = 0; kind <= UNI_PE_SHOULD_RESOLVE; kind++) {
			const struct uni_promise_event e = { .time = time + 10,
				.kind = kind,
				.thread = 0x123456789abcdef0 + i,
				.other = kind + 1,
				.value = -7,
				.type = 9,
				.text = "name",
				.text_len = 4 };

			if (kind > UNI_PE_NOTIFY && kind != UNI_PE_SHOULD_RESOLVE)
				continue;
			time += 10;
			assert_int_equal(uni_mirage_writer_add(w, &e), 0);
		}
	}
	assert_int_equal(uni_mirage_writer_close(w, dropped_ret), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	return b;
}

static struct got *read_all(const void *data, size_t size, struct uni_mirage_stats *st)
{
	struct uni_err err = { 0 };
	struct got *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	assert_int_equal(uni_mirage_read(data, size, take, g, st, &err), 0);
	return g;
}

/* The size of a packet in bytes, from that field of its header. */
static size_t packet_bytes(const char *size_field)
{
	uint32_t bits;

	memcpy(&bits, size_field, sizeof(bits));
	return bits / 8;
}

static void round_trip(void **state)
{
	size_t packets = 0;
	uint64_t dropped = 1;
	struct uni_strbuf b = write_all(400, 20, &dropped);
	struct uni_mirage_stats st;
	struct got *g = read_all(b.s, b.len, &st);

	(void)state;
	assert_int_equal(dropped, 0);
	assert_int_equal(g->nr, 20 * 15);
	assert_int_equal(st.events, g->nr);
	for (size_t at = 0; at < b.len; at += packet_bytes(b.s + at + 20))
		packets++;
	assert_true(packets > 10);
	assert_int_equal(st.packets, packets);
	assert_int_equal(st.missing + st.damaged + st.unused + st.damaged_bytes, 0);
	for (size_t i = 0; i < g->nr; i++) {
		uint8_t kind = (uint8_t)(i % 15 <= 13 ? i % 15 : UNI_PE_SHOULD_RESOLVE);
		const struct uni_promise_event *e = &g->e[i];

		assert_int_equal(e->kind, kind);
		assert_int_equal(e->time, 1010 + 10 * i);
		if (kind != UNI_PE_GC)
			assert_int_equal(e->thread, 0x123456789abcdef0 + i / 15);
		if (kind == UNI_PE_CREATE)
			assert_int_equal(e->type, 9);
		if (kind == UNI_PE_GC || kind == UNI_PE_COUNTER || kind == UNI_PE_INCREASE)
			assert_int_equal(e->value, -7);
		if (kind == UNI_PE_FAIL || kind == UNI_PE_LABEL || kind == UNI_PE_COUNTER)
			assert_string_equal(g->text[i], "name");
		if (kind == UNI_PE_READ || kind == UNI_PE_NOTIFY || kind == UNI_PE_FAIL)
			assert_int_equal(e->other, kind + 1);
	}
	free(g);
	uni_strbuf_deinit(&b);
}

/* As it lies in a ring: the oldest packet in the middle of the file. */
static void rotated(void **state)
{
	struct uni_strbuf b = write_all(400, 20, NULL);
	struct uni_mirage_stats st;
	size_t second = packet_bytes(b.s + 20);
	char *ring = malloc(b.len);
	struct got *g;

	(void)state;
	assert_non_null(ring);
	second += packet_bytes(b.s + second + 20); /* two packets go back */
	memcpy(ring, b.s + second, b.len - second);
	memcpy(ring + b.len - second, b.s, second);
	g = read_all(ring, b.len, &st);
	assert_int_equal(g->nr, 300);
	assert_int_equal(g->e[0].time, 1010);
	assert_int_equal(st.damaged + st.missing, 0);
	free(g);
	free(ring);
	uni_strbuf_deinit(&b);
}

/* A packet less: what the counter tells, and where. */
static void missing(void **state)
{
	struct uni_strbuf b = write_all(400, 20, NULL);
	size_t first = packet_bytes(b.s + 20);
	size_t second = packet_bytes(b.s + first + 20);
	struct uni_mirage_stats st;
	struct got *g;
	size_t lost = 0;

	(void)state;
	memmove(b.s + first, b.s + first + second, b.len - first - second);
	g = read_all(b.s, b.len - second, &st);
	assert_int_equal(st.missing, 1);
	assert_int_equal(st.events + 1, g->nr);
	for (size_t i = 0; i < g->nr; i++)
		lost += g->e[i].kind == UNI_PE_LOST;
	assert_int_equal(lost, 1);
	free(g);
	uni_strbuf_deinit(&b);
}

static struct got *read_gap(const void *data, size_t size, size_t *at_ret)
{
	struct uni_mirage_stats st;
	struct got *g = read_all(data, size, &st);
	size_t nr = 0;

	for (size_t i = 0; i < g->nr; i++) {
		if (g->e[i].kind != UNI_PE_LOST)
			continue;
		assert_int_equal(g->e[i].value, -1);
		*at_ret = i;
		nr++;
	}
	assert_int_equal(nr, 1);
	assert_int_equal(st.events + 1, g->nr);
	return g;
}

/* Overwritten, damaged and cut packets: each is reported at its place. */
static void gaps(void **state)
{
	struct uni_strbuf b = write_all(400, 20, NULL);
	size_t first = packet_bytes(b.s + 20), at = 0;
	size_t second = packet_bytes(b.s + first + 20);
	struct got *g = read_gap(b.s + first, b.len - first, &at);

	(void)state;
	assert_int_equal(at, 0);
	assert_int_equal(g->e[0].time, g->e[1].time);
	assert_true(g->e[1].time > 1010);
	free(g);
	memset(b.s + first + second / 2, 0xee, second / 2);
	g = read_gap(b.s, b.len, &at);
	assert_true(at > 8 && at < 30);
	assert_int_equal(g->e[at].time, g->e[at - 1].time);
	free(g);
	b.len = first + 60;
	g = read_gap(b.s, b.len, &at);
	assert_int_equal(at, g->nr - 1);
	free(g);
	uni_strbuf_deinit(&b);
}

/* Every byte changed in turn: what is whole is kept, packet by packet. */
static void every_byte(void **state)
{
	struct uni_strbuf b = write_all(400, 20, NULL);
	size_t packet = 400 / 15; /* events of a packet, more than enough */

	(void)state;
	for (size_t i = 0; i < b.len; i++) {
		struct uni_mirage_stats st;
		struct uni_err err = { 0 };
		struct got *g = calloc(1, sizeof(*g));

		assert_non_null(g);
		b.s[i] = (char)(b.s[i] ^ 0xff);
		assert_int_equal(uni_mirage_read(b.s, b.len, take, g, &st, &err), 0);
		assert_true(st.events + packet >= 300);
		assert_true(st.events <= 300);
		b.s[i] = (char)(b.s[i] ^ 0xff);
		free(g);
	}
	uni_strbuf_deinit(&b);
}

static void cut_anywhere(void **state)
{
	struct uni_strbuf b = write_all(400, 4, NULL);

	(void)state;
	for (size_t len = 0; len < b.len; len++) {
		struct uni_mirage_stats st;
		struct uni_err err = { 0 };
		struct got *g = calloc(1, sizeof(*g));
		char *copy = malloc(len + 1);

		assert_true(g != NULL && copy != NULL);
		memcpy(copy, b.s, len);
		if (uni_mirage_read(copy, len, take, g, &st, &err) == 0)
			assert_true(g->nr <= 60);
		else
			assert_true(len < 20);
		if (len >= 400) /* the first packet is whole */
			assert_true(g->nr >= 8);
		free(copy);
		free(g);
	}
	uni_strbuf_deinit(&b);
}

static bool is_there(const struct got *g, const struct uni_promise_event *e)
{
	for (size_t i = 0; i < g->nr; i++) {
		if (g->e[i].kind == e->kind && g->e[i].thread == e->thread)
			return true;
	}
	return false;
}

/*
 * Every event of every packet is there. Events of the damaged packet are there if it has the size
 * that its header says. Thread and kind tell the events apart.
 */
static void each_packet_is_kept(const struct uni_strbuf *b, size_t damaged, const struct got *g)
{
	size_t size;

	for (size_t at = 0, packet = 0; at < b->len; at += size, packet++) {
		struct uni_mirage_stats st;
		struct got *one;

		size = packet_bytes(b->s + at + 20);
		if (damaged >= at + 24 && damaged < at + size)
			continue;
		one = read_all(b->s + at, size, &st);
		assert_true(one->nr >= 8 || at + size == b->len);
		for (size_t i = 0; i < one->nr; i++) {
			if (one->e[i].kind != UNI_PE_LOST && !is_there(g, &one->e[i]))
				fail_msg("byte %zu: event %zu of packet %zu is lost", damaged, i,
					packet);
		}
		free(one);
	}
}

static void whole_packets(void **state)
{
	struct uni_strbuf b = write_all(400, 6, NULL), good;

	(void)state;
	uni_strbuf_init(&good);
	uni_strbuf_add(&good, b.s, b.len);
	for (size_t i = 0; i < b.len; i++) {
		struct uni_mirage_stats st;
		struct got *g;

		b.s[i] = (char)(b.s[i] ^ 0xff);
		g = read_all(b.s, b.len, &st);
		each_packet_is_kept(&good, i, g);
		b.s[i] = (char)(b.s[i] ^ 0xff);
		free(g);
	}
	uni_strbuf_deinit(&good);
	uni_strbuf_deinit(&b);
}

/* The whole head of a packet, and what lies before it, is anything: the other packets are read. */
static void no_head(void **state)
{
	struct uni_strbuf b = write_all(400, 6, NULL);
	size_t first = packet_bytes(b.s + 20), second = packet_bytes(b.s + first + 20);

	(void)state;
	for (size_t at = 0; at <= first; at += first) {
		struct uni_strbuf bad;
		struct uni_mirage_stats st;
		struct got *g;

		uni_strbuf_init(&bad);
		uni_strbuf_add(&bad, b.s, b.len);
		memset(bad.s + at, 'x', 30);
		g = read_all(bad.s, bad.len, &st);
		each_packet_is_kept(&b, at + 24, g);
		assert_int_equal(st.damaged, 1);
		assert_int_equal(st.first_damage, at);
		assert_int_equal(st.damaged_bytes, at == 0 ? first : second);
		assert_int_equal(st.missing, at == 0 ? 0 : 1);
		free(g);
		uni_strbuf_deinit(&bad);
	}
	uni_strbuf_deinit(&b);
}

/* The oldest packet of a ring whose head is damaged: the others are still in their order. */
static void no_head_in_a_ring(void **state)
{
	struct uni_strbuf b = write_all(400, 20, NULL);
	size_t first = packet_bytes(b.s + 20);
	char *ring = malloc(b.len);

	(void)state;
	assert_non_null(ring);
	for (size_t i = 0; i < 30; i++) {
		struct uni_mirage_stats st;
		struct got *g;

		memcpy(ring, b.s + first, b.len - first);
		memcpy(ring + b.len - first, b.s, first);
		ring[i] = (char)(ring[i] ^ 0xff);
		g = read_all(ring, b.len, &st);
		assert_int_equal(g->e[0].time, 1010);
		each_packet_is_kept(&b, first + 24, g);
		for (size_t k = 1; k < g->nr; k++)
			assert_true(g->e[k].time >= g->e[k - 1].time);
		free(g);
	}
	free(ring);
	uni_strbuf_deinit(&b);
}

static void hiatus(void **state)
{
	static const struct uni_promise_event events[] = {
		{ .time = 10, .kind = UNI_PE_SWITCH, .thread = 1 },
		{ .time = 20, .kind = UNI_PE_HIATUS, .value = UNI_HIATUS_SUSPEND },
		{ .time = 30, .kind = UNI_PE_RESUME },
		{ .time = 40, .kind = UNI_PE_HIATUS, .value = UNI_HIATUS_WORK },
		{ .time = 50, .kind = UNI_PE_HIATUS, .value = UNI_HIATUS_HIBERNATE },
		{ .time = 60,
			.kind = UNI_PE_LABEL,
			.thread = 1,
			.text = "__resume",
			.text_len = 8 },
	};
	static const struct {
		uint64_t time, thread;
		int64_t value;
		uint8_t kind;
	} want[] = {
		{ 10, 1, 0, UNI_PE_SWITCH },
		{ 20, UNI_PROMISE_NOBODY, UNI_HIATUS_SUSPEND, UNI_PE_HIATUS },
		{ 20, UNI_PROMISE_NOBODY, 0, UNI_PE_SWITCH },
		{ 30, UNI_PROMISE_NOBODY, 0, UNI_PE_RESUME },
		{ 40, UNI_PROMISE_NOBODY, 0, UNI_PE_SWITCH },
		{ 50, UNI_PROMISE_NOBODY, UNI_HIATUS_HIBERNATE, UNI_PE_HIATUS },
		{ 50, UNI_PROMISE_NOBODY, 0, UNI_PE_SWITCH },
		{ 60, 1, 0, UNI_PE_LABEL }, /* a thread's own label stays one */
	};
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_mirage_writer *w = NULL;
	struct uni_mirage_stats st;
	struct uni_err err = { 0 };
	struct got *g;

	(void)state;
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_mirage_writer_open(out, 4096, &w, &err), 0);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		assert_int_equal(uni_mirage_writer_add(w, &events[i]), 0);
	assert_int_equal(uni_mirage_writer_close(w, NULL), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	g = read_all(b.s, b.len, &st);
	assert_int_equal(g->nr, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < g->nr; i++) {
		assert_int_equal(g->e[i].kind, want[i].kind);
		assert_int_equal(g->e[i].time, want[i].time);
		assert_int_equal(g->e[i].thread, want[i].thread);
		assert_int_equal(g->e[i].value, want[i].value);
	}
	free(g);
	uni_strbuf_deinit(&b);
}

static void merged(void **state)
{
	struct uni_strbuf b = write_all(400, 2, NULL);
	const struct uni_mirage_file files[] = { { b.s, b.len, 0 }, { b.s, b.len, 3 } };
	struct uni_mirage_stats st;
	struct uni_err err = { 0 };
	struct got *g = calloc(1, sizeof(*g));

	(void)state;
	assert_non_null(g);
	assert_int_equal(uni_mirage_merge(files, 2, take, g, &st, &err), 0);
	assert_int_equal(g->nr, 60);
	assert_int_equal(st.events, 60);
	for (size_t i = 0; i < g->nr; i++) {
		assert_int_equal(g->e[i].time, 1010 + 10 * (i / 2));
		assert_int_equal(g->e[i].cpu, i % 2 * 3);
	}
	assert_int_equal(uni_mirage_merge(files, 0, take, g, &st, &err), 0);
	free(g);
	uni_strbuf_deinit(&b);
}

/* A label that looks like a packet's beginning is a label: in a ring that nothing happened to. */
static void mark_in_a_text(void **state)
{
	char text[60];
	const struct uni_promise_event e = { .kind = UNI_PE_LABEL,
		.thread = 1,
		.time = 1000,
		.text = text,
		.text_len = sizeof(text) };
	struct uni_mirage_writer *w = NULL;
	struct uni_mirage_stats st;
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };
	struct uni_strbuf b;
	struct got *g;

	(void)state;
	memset(text, 'x', sizeof(text));
	for (unsigned other = 0; other < 2; other++) {
		uni_strbuf_init(&b);
		assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
		assert_int_equal(uni_mirage_writer_open(out, 400, &w, &err), 0);
		for (unsigned i = 0; i < 20; i++)
			assert_int_equal(uni_mirage_writer_add(w, &e), 0);
		assert_int_equal(uni_mirage_writer_close(w, NULL), 0);
		assert_int_equal(uni_sink_close(out, &err), 0);
		for (char *at = b.s; at != NULL;
			at = memchr(at + 60, 'x', b.len - (at + 60 - b.s))) {
			if (at == b.s)
				continue;
			memcpy(at, b.s, 20);
			if (other != 0) /* a length and a content that could be */
				memcpy(at + 20, "\xf0\1\1\1\1\1\xf0\1\1\1", 10);
		}
		g = read_all(b.s, b.len, &st);
		assert_int_equal(g->nr, 20);
		assert_int_equal(st.damaged, 0);
		free(g);
		uni_strbuf_deinit(&b);
	}
}

static void too_large(void **state)
{
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_mirage_writer *w = NULL;
	struct uni_err err = { 0 };
	uint64_t dropped = 0;
	char text[300];
	struct uni_promise_event e = { .kind = UNI_PE_LABEL, .text = text, .text_len = 300 };

	(void)state;
	memset(text, 'x', sizeof(text));
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_mirage_writer_open(out, 100, &w, &err), -UNI_EINVAL);
	assert_int_equal(uni_mirage_writer_open(out, 300, &w, &err), 0);
	assert_int_equal(uni_mirage_writer_add(w, &e), 0);
	e.text_len = 3;
	assert_int_equal(uni_mirage_writer_add(w, &e), 0);
	assert_int_equal(uni_mirage_writer_close(w, &dropped), 0);
	assert_int_equal(dropped, 1);
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(b.len, 30 + 9 + 8 + 4);
	uni_strbuf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(rotated),
		cmocka_unit_test(missing),
		cmocka_unit_test(gaps),
		cmocka_unit_test(every_byte),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(whole_packets),
		cmocka_unit_test(no_head),
		cmocka_unit_test(no_head_in_a_ring),
		cmocka_unit_test(hiatus),
		cmocka_unit_test(merged),
		cmocka_unit_test(mark_in_a_text),
		cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests_name("mirage", tests, NULL, NULL);
}
