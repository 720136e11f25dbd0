/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/pb.h"

static struct uni_cursor over(const struct uni_strbuf *b)
{
	return uni_cursor_make(b->s, b->len);
}

/* Examples of the format's own description: 150 is 96 01, field 2 "testing". */
static void writes_what_the_description_says(void **state)
{
	struct uni_strbuf b, part;

	uni_strbuf_init(&b);
	uni_strbuf_init(&part);
	uni_pb_put_u64(&b, 1, 150);
	uni_pb_put_str(&b, 2, "testing");
	uni_pb_put_u64(&part, 1, 150);
	uni_pb_put_part(&b, 3, &part);
	assert_int_equal(part.len, 0);
	assert_int_equal(b.len, 3 + 9 + 5);
	assert_memory_equal(b.s, "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01", 17);
	uni_strbuf_deinit(&b);
	uni_strbuf_deinit(&part);
}

static void reads_what_it_writes(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 127, 128, 300, UINT32_MAX, INT64_MAX,
		UINT64_MAX };
	struct uni_pb_field f;
	struct uni_strbuf b;
	struct uni_cursor c;
	double d;

	uni_strbuf_init(&b);
	for (size_t i = 0; i < 8; i++)
		uni_pb_put_u64(&b, (uint32_t)i + 1, numbers[i]);
	uni_pb_put_double(&b, 536870911, 0.5);
	c = over(&b);
	for (size_t i = 0; i < 8; i++) {
		assert_true(uni_pb_next(&c, &f));
		assert_int_equal(f.number, i + 1);
		assert_int_equal(f.wire, UNI_PB_VARINT);
		assert_true(f.v == numbers[i]);
	}
	assert_true(uni_pb_next(&c, &f));
	assert_int_equal(f.number, 536870911);
	memcpy(&d, &f.v, sizeof(d));
	assert_true(d == 0.5);
	assert_false(uni_pb_next(&c, &f));
	assert_false(c.failed);
	uni_strbuf_deinit(&b);
}

/* Each beginning of a message either ends at a field's end or is damaged: never read beyond. */
static void every_cut_is_noticed(void **state)
{
	static const size_t ends[] = { 0, 3, 12, 17, 26 };
	struct uni_strbuf b, part;

	uni_strbuf_init(&b);
	uni_strbuf_init(&part);
	uni_pb_put_u64(&b, 1, 150);
	uni_pb_put_str(&b, 2, "testing");
	uni_pb_put_u64(&part, 1, 150);
	uni_pb_put_part(&b, 3, &part);
	uni_pb_put_fixed64(&b, 4, 7);
	assert_int_equal(b.len, 26);
	for (size_t len = 0; len <= b.len; len++) {
		struct uni_cursor c = uni_cursor_make(b.s, len);
		struct uni_pb_field f;
		bool whole = false;

		while (uni_pb_next(&c, &f))
			assert_true(f.wire != UNI_PB_BYTES || f.sub.size <= len);
		for (size_t i = 0; i < 5; i++)
			whole = whole || ends[i] == len;
		assert_int_equal(c.failed, !whole);
	}
	uni_strbuf_deinit(&b);
	uni_strbuf_deinit(&part);
}

static void nonsense_is_refused(void **state)
{
	static const char *const bad[] = {
		"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", /* a number without an end */
		"\x07\x01",					/* field 0 */
		"\x0b",						/* a group */
		"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", /* longer than all there is */
	};

	for (size_t i = 0; i < 4; i++) {
		struct uni_cursor c = uni_cursor_make(bad[i], strlen(bad[i]));
		struct uni_pb_field f;

		assert_false(uni_pb_next(&c, &f));
		assert_true(c.failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_what_the_description_says),
		cmocka_unit_test(reads_what_it_writes),
		cmocka_unit_test(every_cut_is_noticed),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
