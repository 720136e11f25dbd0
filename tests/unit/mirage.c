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
#include "promise/text.h"

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

static bool is_there(const struct got *g, const struct uni_promise_event *e)
{
	for (size_t i = 0; i < g->nr; i++) {
		if (g->e[i].kind == e->kind && g->e[i].thread == e->thread)
			return true;
	}
	return false;
}

/* Every event of every packet but the damaged one; thread and kind tell them apart. */
static void each_packet_is_kept(const struct uni_strbuf *b, size_t damaged, const struct got *g)
{
	size_t size;

	for (size_t at = 0, packet = 0; at < b->len; at += size, packet++) {
		struct uni_mirage_stats st;
		struct got *one;

		size = packet_bytes(b->s + at + 20);
		if (damaged >= at && damaged < at + size)
			continue;
		one = read_all(b->s + at, size, &st);
		assert_true(one->nr >= 8 || at + size == b->len);
		for (size_t i = 0; i < one->nr; i++) {
			if (!is_there(g, &one->e[i]))
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
	for (size_t i = 20; i < b.len; i++) {
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

/* Events of a scheduler at random, with everything that our rings can tell. */
static void random_event(struct uni_promise_event *e, uint64_t *random, uint64_t time)
{
	static const uint8_t kinds[] = { UNI_PE_CREATE, UNI_PE_READ, UNI_PE_RESOLVE, UNI_PE_FAIL,
		UNI_PE_BECOME, UNI_PE_LABEL, UNI_PE_INCREASE, UNI_PE_SWITCH, UNI_PE_GC,
		UNI_PE_SIGNAL, UNI_PE_TRY_READ, UNI_PE_COUNTER, UNI_PE_READ_LATER, UNI_PE_NOTIFY,
		UNI_PE_SHOULD_RESOLVE, UNI_PE_HIATUS, UNI_PE_RESUME };
	static const char *const texts[] = { "a", "b", "longer name" };
	uint64_t r;

	*random = *random * 6364136223846793005u + 1442695040888963407u;
	r = *random >> 20;
	*e = (struct uni_promise_event){ .time = time,
		.kind = kinds[r % sizeof(kinds)],
		.thread = 1 + r / 32 % 40,
		.other = r / 2048 % 8 == 0 ? UNI_PROMISE_NOBODY : 1 + r / 16384 % 40,
		.value = (int64_t)(r / 65536 % 3),
		.type = (uint8_t)(r / 131072 % 20) };
	/* As our rings are decoded: who is not told is nobody. */
	if (e->kind >= UNI_PE_LABEL && e->kind != UNI_PE_SIGNAL && e->kind != UNI_PE_TRY_READ &&
		e->kind != UNI_PE_READ_LATER && e->kind != UNI_PE_NOTIFY)
		e->other = UNI_PROMISE_NOBODY;
	if (e->kind == UNI_PE_GC || e->kind == UNI_PE_HIATUS || e->kind == UNI_PE_RESUME)
		e->thread = UNI_PROMISE_NOBODY;
	if (e->kind == UNI_PE_LABEL || e->kind == UNI_PE_FAIL || e->kind == UNI_PE_INCREASE ||
		e->kind == UNI_PE_COUNTER) {
		e->text = texts[r / 262144 % 3];
		e->text_len = (uint32_t)strlen(e->text);
	}
}

static int build(void *arg, const struct uni_promise_event *e)
{
	return uni_promise_builder_add(arg, e);
}

/* The whole model as its JSON, but for how many events it was made of. */
static char *model_text(struct uni_promise_builder *b)
{
	const struct uni_promise_model *m = uni_promise_builder_finish(b);
	struct uni_promise_model shown = *m;
	struct uni_findings f = { 0 };
	struct uni_strbuf text;
	struct uni_sink *out = NULL;
	struct uni_err err = { 0 };

	uni_strbuf_init(&text);
	shown.events = 0;
	assert_int_equal(uni_promise_findings(m, 50, &f), 0);
	assert_int_equal(uni_sink_open_strbuf(&text, &out), 0);
	uni_promise_json(out, &shown, &f);
	assert_int_equal(uni_sink_close(out, &err), 0);
	uni_vec_free(&f.all);
	return uni_strbuf_detach(&text);
}

static void equal_model(void **state)
{
	struct uni_promise_builder *first = uni_promise_builder_create(),
				   *second = uni_promise_builder_create();
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_mirage_writer *w = NULL;
	struct uni_mirage_stats st;
	struct uni_err err = { 0 };
	uint64_t random = 7;
	char *x, *y;

	(void)state;
	assert_true(first != NULL && second != NULL);
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_mirage_writer_open(out, 1000, &w, &err), 0);
	for (uint64_t i = 0; i < 20000; i++) {
		struct uni_promise_event e;

		random_event(&e, &random, 1000 + 5 * i);
		assert_int_equal(uni_promise_builder_add(first, &e), 0);
		assert_int_equal(uni_mirage_writer_add(w, &e), 0);
	}
	assert_int_equal(uni_mirage_writer_close(w, NULL), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(uni_mirage_read(b.s, b.len, build, second, &st, &err), 0);
	assert_int_equal(st.damaged + st.missing, 0);
	x = model_text(first);
	y = model_text(second);
	assert_true(strlen(x) > 100000);
	if (strcmp(x, y) != 0) {
		size_t at = 0;

		while (x[at] == y[at])
			at++;
		fail_msg("differ at %zu: %.80s | %.80s", at, x + (at > 40 ? at - 40 : 0),
			y + (at > 40 ? at - 40 : 0));
	}
	free(x);
	free(y);
	uni_promise_builder_destroy(first);
	uni_promise_builder_destroy(second);
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
		cmocka_unit_test(whole_packets),
		cmocka_unit_test(hiatus),
		cmocka_unit_test(merged),
		cmocka_unit_test(equal_model),
		cmocka_unit_test(too_large),
	};

	return cmocka_run_group_tests_name("mirage", tests, NULL, NULL);
}
