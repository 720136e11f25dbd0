/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace files of Unikraft's scripts: pickles as Python writes them, and hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/uktrace/pickle.h"
#include "format/uktrace/tracefile.h"

/* {'format_version': '1'}, '/img', 8, b'defs', b'buffer' by Python's pickle, protocols 2.. below */
#define FIVE_P4                                           \
	"\x80\x04\x95\x1b\0\0\0\0\0\0\0}\x94\x8c\x0e"     \
	"format_version\x94\x8c\x01"                      \
	"1\x94s."                                         \
	"\x80\x04\x95\x08\0\0\0\0\0\0\0\x8c\x04/img\x94." \
	"\x80\x04K\x08."                                  \
	"\x80\x04\x95\x08\0\0\0\0\0\0\0"                  \
	"C\x04"                                           \
	"defs\x94."                                       \
	"\x80\x04\x95\x0a\0\0\0\0\0\0\0"                  \
	"C\x06"                                           \
	"buffer\x94."
#define FOUR_P3                                                 \
	"\x80\x03}q\0X\x0e\0\0\0format_versionq\x01X\x01\0\0\0" \
	"1q\x02s.\x80\x03K\x08.\x80\x03"                        \
	"C\x04"                                                 \
	"defsq\0.\x80\x03"                                      \
	"C\x06"                                                 \
	"bufferq\0."
/* Two pairs at once, between a mark and SETITEMS. */
#define TWO_PAIRS                                                                \
	"\x80\x03}q\0(X\x0e\0\0\0format_versionq\x01X\x01\0\0\0"                 \
	"1q\x02X\x03\0\0\0keyq\x03X\x05\0\0\0valueq\x04u.\x80\x03K\x08.\x80\x03" \
	"C\x04"                                                                  \
	"defsq\0.\x80\x03"                                                       \
	"C\x06"                                                                  \
	"bufferq\0."

static void expect(const char *data, size_t size, const char *elf)
{
	struct uni_ukt_file f;
	struct uni_err err = { 0 };

	assert_true(uni_ukt_file_is(data, size));
	assert_int_equal(uni_ukt_file_read(data, size, &f, &err), 0);
	assert_int_equal(f.version, 1);
	assert_int_equal(f.ptr_size, 8);
	if (elf != NULL)
		assert_string_equal(f.elf, elf);
	else
		assert_null(f.elf);
	assert_int_equal(f.defs_size, 4);
	assert_memory_equal(f.defs, "defs", 4);
	assert_int_equal(f.buffer_size, 6);
	assert_memory_equal(f.buffer, "buffer", 6);
	uni_ukt_file_free(&f);
}

static void theirs(void **state)
{
	expect(FIVE_P4, sizeof(FIVE_P4) - 1, "/img");
	expect(FOUR_P3, sizeof(FOUR_P3) - 1, NULL);
	expect(TWO_PAIRS, sizeof(TWO_PAIRS) - 1, NULL);
	(void)state;
}

/* A file that ends anywhere before the buffer is refused, with a word. */
static void cut(void **state)
{
	const size_t buffer = sizeof(FIVE_P4) - 1 - sizeof("buffer\x94.") + 1;

	for (size_t size = 0; size < sizeof(FIVE_P4) - 1; size++) {
		struct uni_ukt_file f;
		struct uni_err err = { 0 };

		if (size >= buffer) {
			assert_int_equal(uni_ukt_file_read(FIVE_P4, size, &f, &err), 0);
			assert_true(f.cut);
			assert_int_equal(f.buffer_size, size - buffer < 6 ? size - buffer : 6);
			assert_memory_equal(f.buffer, "buffer", f.buffer_size);
			uni_ukt_file_free(&f);
			continue;
		}
		assert_int_not_equal(uni_ukt_file_read(FIVE_P4, size, &f, &err), 0);
		assert_int_equal(err.code, UNI_EFORMAT);
		assert_null(strstr(err.msg, "needs"));
		assert_null(f.defs);
	}
	(void)state;
}

static void ours(void **state)
{
	uint8_t defs[300], buffer[] = { 1, 0, 2 };
	char elf[] = "/a/b";
	struct uni_ukt_file f = { .version = 1,
		.bias = 0xffffffff80000000,
		.capacity = 16384,
		.full = true,
		.elf = elf,
		.ptr_size = 4,
		.defs = defs,
		.defs_size = sizeof(defs),
		.buffer = buffer,
		.buffer_size = sizeof(buffer) };

	memset(defs, 7, sizeof(defs));
	for (int with_elf = 0; with_elf < 2; with_elf++) {
		struct uni_ukt_file got;
		struct uni_sink *out;
		struct uni_strbuf b;

		uni_strbuf_init(&b);
		assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
		uni_ukt_file_write(&f, with_elf, out);
		assert_int_equal(uni_sink_close(out, NULL), 0);
		assert_true(uni_ukt_file_is(b.s, b.len));
		assert_int_equal(uni_ukt_file_read(b.s, b.len, &got, NULL), 0);
		assert_int_equal(got.version, 1);
		assert_int_equal(got.bias, f.bias);
		assert_int_equal(got.capacity, f.capacity);
		assert_true(got.full);
		assert_int_equal(got.ptr_size, 4);
		assert_int_equal(got.elf != NULL, with_elf);
		assert_int_equal(got.defs_size, sizeof(defs));
		assert_memory_equal(got.defs, defs, sizeof(defs));
		assert_int_equal(got.buffer_size, sizeof(buffer));
		assert_memory_equal(got.buffer, buffer, sizeof(buffer));
		uni_ukt_file_free(&got);
		uni_strbuf_deinit(&b);
	}
	(void)state;
}

/* Nothing that runs, nothing that grows without end. */
static void hostile(void **state)
{
	static const struct {
		const char *s;
		size_t size;
	} all[] = {
#define H(text) { text, sizeof(text) - 1 }
		H("\x80\x03"
		  "cposix\nsystem\nX\x02\0\0\0lsq\0\x85R."),	       /* a call */
		H("\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93."), /* the same by the stack */
		H("\x80\x03X\xff\xff\xff\x7f"
		  "a."), /* a text longer than the file */
		/* bytes of all memory, in a pair */
		H("\x80\x04}\x8c\x01"
		  "k\x8e\xff\xff\xff\xff\xff\xff\xff\xff"
		  "s."),
		H("\x80\x03s."),
		H("\x80\x03u."),
		H("\x80\x03h\x05."), /* from the memo, where nothing is */
		H("\x80\x03r\xff\xff\xff\xff."),
		H("\x80\x03}}."), /* two values */
		H("\x80\x03(."),
		H("\x80\x03."),
		H("\x80\x09}."),
		H("\x80\x03\x8a\x09"
		  "123456789."),
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct uni_pickle p;
		struct uni_err err = { 0 };

		assert_int_equal(uni_pickle_load((const uint8_t *)all[i].s, all[i].size, &p, &err),
			-UNI_EFORMAT);
		assert_int_equal(err.code, UNI_EFORMAT);
		uni_pickle_free(&p);
	}
	(void)state;
}

/* Some values, then one of these operations with a number, and the end. */
static int load_with(size_t marks, char op, uint32_t number, struct uni_err *err)
{
	struct uni_pickle p;
	uint8_t *data = malloc(marks + 16);
	size_t n = 0;
	int rc;

	assert_non_null(data);
	memcpy(data, "\x80\x03", 2);
	memset(data + 2, '(', marks);
	n = 2 + marks;
	memcpy(data + n, "K\x07", 2); /* the value 7 */
	data[n + 2] = (uint8_t)op;
	memcpy(data + n + 3, &number, 4);
	data[n + 7] = '.';
	*err = (struct uni_err){ 0 };
	rc = uni_pickle_load(data, op == '.' ? n + 3 : n + 8, &p, err);
	uni_pickle_free(&p);
	free(data);
	return rc;
}

/* The memo has so many places, and the stack holds so many values. */
static void rooms(void **state)
{
	const uint32_t memo = 2 * UNI_PICKLE_PAIRS_MAX + 16, stack = 2 * UNI_PICKLE_PAIRS_MAX + 4;
	struct uni_err err;

	(void)state;
	assert_int_equal(load_with(0, 'r', memo - 1, &err), 0);
	for (uint32_t far = 0; far < 0x10000000; far = far * 16 + 1) {
		assert_int_equal(load_with(0, 'r', memo + far, &err), -UNI_EFORMAT);
		assert_non_null(strstr(err.msg, "(0x72)"));
		assert_int_equal(load_with(0, 'j', memo + far, &err), -UNI_EFORMAT);
		assert_non_null(strstr(err.msg, "(0x6a)"));
	}
	assert_int_equal(load_with(stack - 1, '.', 0, &err), -UNI_EFORMAT);
	assert_non_null(strstr(err.msg, "holds not one value"));
	for (uint32_t more = 0; more < 20; more++) {
		assert_int_equal(load_with(stack + more, '.', 0, &err), -UNI_EFORMAT);
		assert_non_null(strstr(err.msg, more == 0 ? "(0x4b)" : "(0x28)"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(theirs),
		cmocka_unit_test(cut),
		cmocka_unit_test(ours),
		cmocka_unit_test(hostile),
		cmocka_unit_test(rooms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
