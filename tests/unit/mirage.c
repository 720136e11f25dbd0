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
#include "promise/mirage.h"

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

static void round_trip(void **state)
{
	uint64_t dropped = 1;
	struct uni_strbuf b = write_all(400, 20, &dropped);
	struct uni_mirage_stats st;
	struct got *g = read_all(b.s, b.len, &st);

	(void)state;
	assert_int_equal(dropped, 0);
	assert_int_equal(g->nr, 20 * 15);
	assert_int_equal(st.events, g->nr);
	assert_true(st.packets > 10);
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

/* Of the packet whose header is there. */
static size_t packet_bytes(const char *size_field)
{
	uint32_t bits;

	memcpy(&bits, size_field, sizeof(bits));
	return bits / 8;
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
		if (uni_mirage_read(b.s, b.len, take, g, &st, &err) == 0) {
			assert_true(st.events + packet >= 300);
			assert_true(st.events <= 300);
		} else {
			assert_true(i < 20); /* the first bytes say what it is */
		}
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
		cmocka_unit_test(every_byte),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests_name("mirage", tests, NULL, NULL);
}
