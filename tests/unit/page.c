/* SPDX-License-Identifier: BSD-2-Clause */
/* The page's data: what is put into columns comes out of the HTML, number for number. */
#define ZLIB_CONST
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "page/page.h"
#include "page/parts.h"
#include "session_place.h"
#include "format/ftrace/fcalls.h"

static int digit(char c)
{
	static const char all[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c != '\0' ? strchr(all, c) : NULL;

	return at != NULL ? (int)(at - all) : -1;
}

/* All parts of the page, unpacked; owned by the caller. */
static char *unpack(const char *html, size_t *len_ret)
{
	size_t cap = strlen(html), n = 0, room = cap * 40 + 4096;
	unsigned char *packed = malloc(cap);
	char *data = malloc(room), key[32];
	z_stream z = { 0 };
	unsigned bits = 0, nr_bits = 0;

	assert_true(packed != NULL && data != NULL);
	for (unsigned part = 0;; part++) {
		const char *at;

		(void)snprintf(key, sizeof(key), "id=\"d%u\">", part);
		at = strstr(html, key);
		if (at == NULL)
			break;
		for (at += strlen(key); digit(*at) >= 0; at++) {
			bits = bits << 6 | (unsigned)digit(*at);
			nr_bits += 6;
			if (nr_bits >= 8)
				packed[n++] = (unsigned char)(bits >> (nr_bits -= 8));
		}
	}
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	z.next_in = packed;
	z.avail_in = (unsigned)n;
	z.next_out = (unsigned char *)data;
	z.avail_out = (unsigned)room;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	*len_ret = room - z.avail_out;
	(void)inflateEnd(&z);
	free(packed);
	return data;
}

struct read {
	char *data, *head;
	size_t len, columns; /* where they begin */
};

static void read_page(struct read *r, const char *html)
{
	uint32_t size = 0;

	r->data = unpack(html, &r->len);
	assert_true(r->len > 8);
	assert_memory_equal(r->data, "UPG1", 4);
	for (int i = 3; i >= 0; i--)
		size = size << 8 | (unsigned char)r->data[4 + i];
	assert_true(size <= r->len - 8);
	r->head = strndup(r->data + 8, size);
	r->columns = 8 + size;
}

static void read_free(struct read *r)
{
	free(r->data);
	free(r->head);
}

/* The numbers of a column; how many. 0: it is not there. */
static size_t column(const struct read *r, const char *name, uint64_t *ret, size_t cap)
{
	const char *at = strstr(r->head, "\"columns\":");
	size_t from = r->columns;

	while (at != NULL && (at = strstr(at, "{\"name\":\"")) != NULL) {
		unsigned long nr, bytes;
		char found[24];

		assert_int_equal(sscanf(at, "{\"name\":\"%23[^\"]\",\"nr\":%lu,\"bytes\":%lu}",
					 found, &nr, &bytes),
			3);
		at++;
		if (strcmp(found, name) != 0) {
			from += bytes;
			continue;
		}
		assert_true(nr <= cap);
		for (size_t i = 0; i < nr; i++) {
			ret[i] = 0;
			for (unsigned shift = 0;; shift += 7) {
				unsigned char b = (unsigned char)r->data[from++];

				ret[i] |= (uint64_t)(b & 0x7f) << shift;
				if (b < 0x80)
					break;
			}
		}
		return nr;
	}
	return 0;
}

#define is_column(r, name, ...)                                                        \
	do {                                                                           \
		const uint64_t want_[] = { __VA_ARGS__ };                              \
		uint64_t got_[64];                                                     \
		assert_int_equal(column((r), (name), got_, 64), uni_array_len(want_)); \
		assert_memory_equal(got_, want_, sizeof(want_));                       \
	} while (0)

static char *write_page(const struct uni_page_input *in)
{
	struct uni_strbuf b;
	struct uni_sink *out;
	struct uni_err err = { 0 };

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_page_write(in, out, NULL, &err), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	return uni_strbuf_detach(&b);
}

static void numbers(void **state)
{
	struct uni_blob b = { 0 };
	struct uni_column *c = uni_blob_column(&b, "a"), *s = uni_blob_column(&b, "b");

	uni_column_put(c, 0);
	uni_column_put(c, 127);
	uni_column_put(c, 128);
	uni_column_put(c, UINT64_MAX);
	assert_int_equal(c->nr, 4);
	assert_int_equal(c->bytes.len, 1 + 1 + 2 + 10);
	assert_memory_equal(
		c->bytes.s, "\x00\x7f\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14);
	uni_column_put_signed(s, 0);
	uni_column_put_signed(s, -1);
	uni_column_put_signed(s, 1);
	uni_column_put_signed(s, -64);
	uni_column_put_signed(s, INT64_MIN);
	assert_memory_equal(
		s->bytes.s, "\x00\x01\x02\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 14);
	assert_false(uni_blob_failed(&b));
	uni_column_put(NULL, 1);
	uni_blob_deinit(&b);
}

/* More than a chunk, and what does not compress. */
static void packed(void **state)
{
	const size_t len = 300001;
	char *data = malloc(len), *back;
	struct uni_strbuf html;
	struct uni_pack *p;
	struct uni_sink *out;
	uint64_t x = 88172645463325252ull;
	size_t got;

	assert_non_null(data);
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		data[i] = (char)x;
	}
	uni_strbuf_init(&html);
	assert_int_equal(uni_sink_open_strbuf(&html, &out), 0);
	assert_int_equal(uni_pack_begin(out, 'd', &p, NULL), 0);
	uni_pack_put(p, data, 1);
	uni_pack_put(p, data + 1, len - 1);
	assert_int_equal(uni_pack_end(p, NULL), 0);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	back = unpack(html.s, &got);
	assert_int_equal(got, len);
	assert_memory_equal(back, data, len);
	free(back);
	free(data);
	uni_strbuf_deinit(&html);
}

static void samples(void **state)
{
	struct place *p = *state;
	struct uni_build_opts opts = UNI_BUILD_DEFAULTS;
	struct uni_page_input in = {
		.title = "a</title><script>b", .quality = "</script>", .opts = &opts
	};
	const struct uni_record_stats st = { .begin_ns = T0, .end_ns = T0 + 9 };
	struct uni_recorder *rec = create(p);
	uint64_t node[8], parent[64];
	struct read r;
	char *html, *cut;

	for (uint64_t n = 0; n < 4; n++)
		put(rec, n);
	assert_int_equal(close_with(rec, &st, NULL, 0, &p->err), 0);
	assert_int_equal(uni_recording_open(p->path, &in.rec, &p->err), 0);
	html = write_page(&in);
	in.max_samples = 3;
	cut = write_page(&in);
	uni_recording_close(in.rec);
	read_page(&r, cut);
	is_column(&r, "s.time", 0, 1000000, 1000000);
	assert_non_null(strstr(r.head, "\"left_out\":1,"));
	read_free(&r);
	free(cut);
	/* The viewer's one script, and the data. */
	assert_null(strstr(html, "<script>b"));
	assert_non_null(strstr(html, "a&lt;/title&gt;&lt;script&gt;b</title>"));
	assert_non_null(strstr(html, "default-src 'none'; script-src 'sha256-"));
	read_page(&r, html);
	assert_non_null(strstr(r.head, "\"title\":\"a\\u003c/title>\\u003cscript>b\""));
	is_column(&r, "s.time", 0, 1000000, 1000000, 1000000);
	is_column(&r, "s.vcpu", 1, 2, 3, 1);
	is_column(&r, "s.weight", 2, 2, 2, 2);
	is_column(&r, "s.pause", 1000, 1001, 1002, 1003);
	/* Chains of 1, 2, 3 and 4 frames without a common one, so their leaves are nodes 1, 3,
	 * 6, 10. */
	assert_int_equal(column(&r, "s.node", node, 8), 4);
	assert_int_equal(node[0], 1);
	assert_int_equal(node[1], 3);
	assert_int_equal(column(&r, "s.parent", parent, 64), column(&r, "s.frame", parent, 64));
	assert_int_equal(column(&r, "x.time", node, 8), 0);
	read_free(&r);
	free(html);
}

static void calls(void **state)
{
	static const char text[] = "# tracer: function_graph\n"
				   " 0)               |  outer() {\n"
				   " 0)   1.000 us    |    inner();\n"
				   " 0)   2.000 us    |    inner();\n"
				   " 0)   5.000 us    |  }\n";
	struct uni_ftext t;
	struct uni_ftext_stats st;
	struct uni_fcalls *f;
	struct uni_timeline tl;
	struct uni_page_input in = { .timeline = &tl };
	struct read r;
	char *html;

	assert_int_equal(uni_ftext_parse(text, sizeof(text) - 1, &t, &st, NULL), 0);
	f = uni_fcalls_open(&t);
	assert_non_null(f);
	tl = uni_fcalls_timeline(f);
	html = write_page(&in);
	uni_fcalls_close(f);
	uni_ftext_deinit(&t);
	read_page(&r, html);
	/* outer's row, then that of the two in it. */
	is_column(&r, "r.nr", 1, 2);
	is_column(&r, "r.depth", 0, 1);
	is_column(&r, "r.thread", 0, 0);
	is_column(&r, "c.dur", 5000, 1000, 2000);
	is_column(&r, "c.node", 1, 2, 2);
	is_column(&r, "c.parent", 0, 0);
	assert_non_null(strstr(r.head, "\"nr\":3,\"lost\":0,\"left_out\":0"));
	read_free(&r);
	free(html);
}

static void promises(void **state)
{
	static const struct uni_promise_event events[] = {
		{ .time = 1000, .kind = UNI_PE_CREATE, .thread = 0, .other = 1, .type = 1 },
		{ .time = 1100,
			.kind = UNI_PE_LABEL,
			.thread = 1,
			.other = UNI_PROMISE_NOBODY,
			.text = "<b>one",
			.text_len = 6 },
		{ .time = 1200, .kind = UNI_PE_SWITCH, .thread = 1, .other = UNI_PROMISE_NOBODY },
		{ .time = 1500, .kind = UNI_PE_RESOLVE, .thread = 0, .other = 1 },
	};
	struct uni_promise_builder *b = uni_promise_builder_create();
	struct uni_page_input in = { .title = "t" }, other = { .title = "bad" };
	struct read r;
	char *html, *second;

	assert_non_null(b);
	for (size_t i = 0; i < uni_array_len(events); i++)
		assert_int_equal(uni_promise_builder_add(b, &events[i]), 0);
	in.promises = uni_promise_builder_finish(b);
	html = write_page(&in);
	read_page(&r, html);
	is_column(&r, "p.id", 0, 1);
	is_column(&r, "p.fate", UNI_FATE_OPEN, UNI_FATE_RESOLVED);
	is_column(&r, "p.begin", 0, 0);
	is_column(&r, "p.life", in.promises->all.v[0].last - 1000, 500);
	is_column(&r, "p.creator", 0, 1);
	is_column(&r, "label.who", 1);
	is_column(&r, "label.time", 100);
	assert_non_null(strstr(r.head, "\"\\u003cb>one\""));
	assert_non_null(strstr(r.head, "\"begin\":\"1000\",\"duration\":500"));
	assert_null(strstr(html, "id=\"o0\""));
	read_free(&r);
	free(html);
	/* Beside itself: a second stream, of the same columns. */
	other.beside = &in;
	html = write_page(&other);
	second = strstr(html, "id=\"o0\">");
	assert_non_null(second);
	second[4] = 'd';
	read_page(&r, second - 50);
	is_column(&r, "p.life", in.promises->all.v[0].last - 1000, 500);
	uni_promise_builder_destroy(b);
	read_free(&r);
	free(html);
}

/* Doubts are there beside the findings, as the CLI has them. */
static void doubts(void **state)
{
	static const struct uni_promise_event events[] = {
		{ .time = 1000, .kind = UNI_PE_CREATE, .thread = 0, .other = 1, .type = 19 },
		{ .time = 1100, .kind = UNI_PE_CREATE, .thread = 0, .other = 2, .type = 8 },
		{ .time = 1200, .kind = UNI_PE_NOTIFY, .thread = UNI_PROMISE_NOBODY, .other = 2 },
		{ .time = 1300, .kind = UNI_PE_TRY_READ, .thread = 1, .other = 2 },
	};
	struct uni_promise_builder *b = uni_promise_builder_create();
	struct uni_page_input in = { .title = "t" };
	struct read r;
	char *html;

	assert_non_null(b);
	for (size_t i = 0; i < uni_array_len(events); i++)
		assert_int_equal(uni_promise_builder_add(b, &events[i]), 0);
	in.promises = uni_promise_builder_finish(b);
	html = write_page(&in);
	read_page(&r, html);
	assert_non_null(strstr(r.head, "\"findings\":[],\"doubts\":[{\"kind\":\"lost_wakeup\","
				       "\"who\":2,\"other\":3,\"by\":1,\"time\":300,\"ns\":0,"
				       "\"signal\":201}]"));
	uni_promise_builder_destroy(b);
	read_free(&r);
	free(html);
}

/* A differential that was imported: values instead of samples. */
/* A page holds the first, and what a finding is about; numbers are those of the page. */
static void few_promises(void **state)
{
	static const struct uni_promise_event never = {
		.time = 2000, .kind = UNI_PE_SHOULD_RESOLVE, .thread = 7, .other = 0
	};
	struct uni_promise_builder *b = uni_promise_builder_create();
	struct uni_page_input in = { .title = "t", .max_promises = 2 };
	struct uni_promise_event e = { .kind = UNI_PE_CREATE, .type = 1 };
	struct read r;
	char *html;

	assert_non_null(b);
	for (uint64_t i = 1; i < 10; i++) {
		e.time = 1000 + 10 * i;
		e.other = i;
		e.kind = UNI_PE_CREATE;
		assert_int_equal(uni_promise_builder_add(b, &e), 0);
		e.kind = UNI_PE_LABEL;
		e.thread = i;
		e.other = UNI_PROMISE_NOBODY;
		e.text = i == 7 ? "seven" : i == 1 ? "one" : "other";
		e.text_len = strlen(e.text);
		assert_int_equal(uni_promise_builder_add(b, &e), 0);
		e.thread = 0;
	}
	assert_int_equal(uni_promise_builder_add(b, &never), 0);
	in.promises = uni_promise_builder_finish(b);
	html = write_page(&in);
	read_page(&r, html);
	/* 0 (the first thread), 1 and 7. */
	is_column(&r, "p.id", 0, 1, 7);
	is_column(&r, "p.creator", 0, 1, 1);
	is_column(&r, "label.who", 1, 2);
	assert_non_null(strstr(r.head, "\"left_out\":7,\"left_parts\":0"));
	assert_non_null(strstr(r.head, "\"kind\":\"unresolved\",\"who\":3"));
	assert_non_null(strstr(r.head, "\"seven\""));
	assert_null(strstr(r.head, "\"other\",\""));
	read_free(&r);
	free(html);
	/* All of them have room. */
	in.max_promises = 0;
	html = write_page(&in);
	read_page(&r, html);
	assert_non_null(strstr(r.head, "\"left_out\":0,\"left_parts\":0"));
	assert_non_null(strstr(r.head, "\"other\""));
	read_free(&r);
	free(html);
	uni_promise_builder_destroy(b);
}

static void aggregate(void **state)
{
	struct uni_profile *p = uni_profile_create();
	struct uni_page_input in = { .profile = p };
	uint32_t frame;
	struct read r;
	char *html;

	assert_non_null(p);
	frame = uni_profile_frame_named(p, "main", 4, UNI_FK_GUEST);
	assert_int_equal(uni_profile_add(p, &frame, 1, 1.5, 2.0), 0);
	assert_int_equal(uni_profile_finish(p), 0);
	html = write_page(&in);
	read_page(&r, html);
	assert_non_null(strstr(r.head,
		"{\"name\":\"s.self\",\"nr\":2,\"bytes\":16},{\"name\":\"s.self2\",\"nr\":2"));
	assert_memory_equal(r.data + r.columns + 8, &(double){ 1.5 }, 8);
	assert_memory_equal(r.data + r.columns + 24, &(double){ 2.0 }, 8);
	is_column(&r, "s.parent", 0);
	uni_profile_destroy(p);
	read_free(&r);
	free(html);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(packed),
		T(samples),
		cmocka_unit_test(calls),
		cmocka_unit_test(promises),
		cmocka_unit_test(few_promises),
		cmocka_unit_test(doubts),
		cmocka_unit_test(aggregate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
