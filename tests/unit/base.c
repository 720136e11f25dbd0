/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cursor.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "base/json_load.h"
#include "base/outdir.h"
#include "base/privilege.h"
#include "base/sink.h"
#include "base/memo.h"
#include "base/strbuf.h"
#include "base/strtab.h"
#include "base/text.h"

/* The 64-bit functions shifted to the top of the space, against plain counting on 8-bit numbers. */
static void range_exhaustive(void **state)
{
	const uint64_t top = UINT64_MAX - 255;

	for (unsigned start = 0; start < 256; start += 3) {
		for (unsigned size = 0; start + size <= 256; size += 5) {
			for (unsigned addr = 0; addr < 256; addr++) {
				for (unsigned len = 0; len < 40; len++) {
					bool want = addr >= start && addr + len <= start + size;

					assert_int_equal(want, uni_range_contains(top + start, size,
								       top + addr, len));
				}
				assert_int_equal(addr >= start && addr < start + size,
					uni_range_has(top + start, size, top + addr));
			}
		}
	}
	assert_true(uni_range_ok(UINT64_MAX, 1));
	assert_false(uni_range_ok(UINT64_MAX, 2));
	assert_true(uni_range_overlaps(0, 0, 0, 0) == false);
	assert_true(uni_range_overlaps(10, 5, 14, 1));
	assert_false(uni_range_overlaps(10, 5, 15, 1));
	assert_true(uni_range_overlaps(UINT64_MAX, 1, UINT64_MAX - 3, 4));
}

static void text_is_cleaned(void **state)
{
	char out[32];

	assert_int_equal(uni_text_clean(out, sizeof(out), "ok\x1b[31m", 7), 9);
	assert_string_equal(out, "ok\xef\xbf\xbd[31m");
	(void)uni_text_clean(out, sizeof(out),
		"a\xe2\x80\xae"
		"b",
		5); /* right-to-left override */
	assert_string_equal(out, "a\xef\xbf\xbd"
				 "b");
	(void)uni_text_clean(out, sizeof(out), "\xc0\xaf", 2); /* overlong '/' */
	assert_string_equal(out, "\xef\xbf\xbd\xef\xbf\xbd");
	(void)uni_text_clean(out, 4, "abcdef", 6);
	assert_string_equal(out, "abc");
	(void)uni_text_clean(out, 4, "ab\xc3\xa9", 4); /* does not fit whole: not cut in half */
	assert_string_equal(out, "ab");
}

static void numbers_are_strict(void **state)
{
	static const char *const no_times[] = { "", "s", "0s", "-1s", "1 s", "1.2.3s", "5m", "5nss",
		"0.5ns", "1000000001s", "0x5s", "1e3s", "11111111111111111111111111111111s" };
	uint64_t v;
	double d;

	assert_true(uni_parse_u64("18446744073709551615", &v) && v == UINT64_MAX);
	assert_true(uni_parse_u64("0xfF", &v) && v == 255);
	assert_false(uni_parse_u64("18446744073709551616", &v));
	assert_false(uni_parse_u64("", &v));
	assert_false(uni_parse_u64("-1", &v));
	assert_false(uni_parse_u64(" 1", &v));
	assert_false(uni_parse_u64("1x", &v));
	assert_false(uni_parse_u64("0x", &v));
	assert_true(uni_parse_double("0.5", &d) && d == 0.5);
	assert_false(uni_parse_double("nan", &d));
	assert_true(uni_parse_time("1.5us", 0, &v) && v == 1500);
	assert_true(uni_parse_time("20ns", 1e9, &v) && v == 20);
	assert_true(uni_parse_time("3ms", 1e9, &v) && v == 3000000);
	assert_true(uni_parse_time("1000000000s", 0, &v) && v == 1000000000ull * 1000000000);
	assert_true(uni_parse_time("0.5", 1e9, &v) && v == 500000000);
	for (size_t i = 0; i < uni_array_len(no_times); i++)
		assert_false(uni_parse_time(no_times[i], 1e9, &v));
	assert_false(uni_parse_time("5", 0, &v)); /* no unit */
	assert_false(uni_parse_double(".", &d));
	assert_true(uni_parse_size("64M", &v) && v == 64u << 20);
	assert_false(uni_parse_size("99999999999999G", &v));
}

static void globs(void **state)
{
	assert_true(uni_glob_match("tcp_*", "tcp_input"));
	assert_false(uni_glob_match("tcp_*", "udp_input"));
	assert_true(uni_glob_match("*[io]nput?", "tcp_input1"));
	assert_true(uni_glob_match("a*b*c", "aXXbYYbZc"));
	assert_false(uni_glob_match("a*b*c", "aXXbYYbZ"));
	assert_true(uni_glob_match("**", ""));
	assert_true(uni_glob_match("[!a-c]x", "dx"));
	assert_false(uni_glob_match("[!a-c]x", "bx"));
}

static void cursor_never_overruns(void **state)
{
	const uint8_t data[] = { 1, 2, 3, 4, 5 };
	struct uni_cursor c = uni_cursor_make(data, sizeof(data));

	assert_int_equal(uni_cursor_u32(&c), 0x04030201);
	assert_int_equal(uni_cursor_u16(&c), 0);
	assert_true(c.failed);
	assert_int_equal(c.failed_at, 4);
	assert_int_equal(uni_cursor_u8(&c), 0); /* stays failed */
}

/* Text without room is not added, and text after it neither: there is no hole. */
static void strbuf_without_room(void **state)
{
	struct uni_strbuf b;

	uni_strbuf_init(&b);
	uni_strbuf_adds(&b, "a");
	assert_false(uni_strbuf_reserve(&b, SIZE_MAX));
	assert_true(uni_strbuf_failed(&b));
	uni_strbuf_adds(&b, "b");
	assert_string_equal(b.s, "a");
	uni_strbuf_reset(&b);
	assert_false(uni_strbuf_failed(&b));
	uni_strbuf_deinit(&b);
}

static void json_escapes_and_nests(void **state)
{
	struct uni_strbuf b;
	struct uni_sink *out;
	struct uni_json j;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_json_init(&j, out, false);
	uni_json_object(&j);
	uni_json_kv(str, &j, "a\"", "</script>\n\xe2\x80\xa8");
	uni_json_key(&j, "l");
	uni_json_array(&j);
	uni_json_u64(&j, UINT64_MAX);
	uni_json_double(&j, 1.0 / 0.0);
	uni_json_array_end(&j);
	uni_json_object_end(&j);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s,
		"{\"a\\\"\":\"\\u003c/script>\\u000a\\u2028\",\"l\":[18446744073709551615,null]}");
	uni_strbuf_deinit(&b);
}

static void strtab_interns(void **state)
{
	struct uni_strtab *t = uni_strtab_create();
	char name[16];

	for (int i = 0; i < 5000; i++) {
		int n = snprintf(name, sizeof(name), "n%d", i);

		assert_int_equal(uni_strtab_add(t, name, (size_t)n), i + 1);
	}
	assert_int_equal(uni_strtab_add(t, "n77", 3), 78);
	assert_string_equal(uni_strtab_get(t, 78), "n77");
	assert_int_equal(uni_strtab_find(t, "nope", 4), UNI_STR_NONE);
	assert_string_equal(uni_strtab_get(t, UNI_STR_NONE), "");
	uni_strtab_destroy(t);
}

/* Ends of names fall into each place of a word, and next to what looks like one. */
static void memo_finds_ends_and_texts(void **state)
{
	static const char texts[][24] = { "", "a", "1234567", "12345678", "123456789", "a:b",
		"\x01\xbb\x3a", "0123456789abcdef", "0123456789abcdefg" };
	struct uni_memo m = { 0 };
	char line[64];

	for (uint32_t i = 0; i < 9; i++) {
		size_t len = strlen(texts[i]);
		struct uni_memo_key all = uni_memo_key_until(texts[i], len, ';'), part;

		assert_int_equal(all.len, len);
		for (size_t tail = 0; tail < 20; tail++) {
			(void)snprintf(line, sizeof(line), "%s;:;%.*s", texts[i], (int)tail,
				"ab;defghijklmnopqrstuv");
			part = uni_memo_key_until(line, strlen(line), ';');
			assert_int_equal(part.len, len);
			assert_int_equal(part.hash, all.hash);
		}
		assert_int_equal(uni_memo_find(&m, all), UNI_MEMO_NONE);
		assert_true(uni_memo_put(&m, all, i));
		assert_int_equal(uni_memo_find(&m, part), i);
	}
	uni_memo_deinit(&m);
}

static void memo_grows(void **state)
{
	enum { NR = 5000 };
	char(*names)[8] = calloc(NR, sizeof(*names));
	struct uni_memo m = { 0 };

	for (uint32_t i = 0; i < NR; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "n%u", i);
		assert_true(
			uni_memo_put(&m, uni_memo_key_until(names[i], strlen(names[i]), ';'), i));
	}
	for (uint32_t i = 0; i < NR; i++)
		assert_int_equal(
			uni_memo_find(&m, uni_memo_key_until(names[i], strlen(names[i]), ';')), i);
	uni_memo_deinit(&m);
	free(names);
}

static void files_appear_whole_or_not(void **state)
{
	char dir[] = "/tmp/uni-base-XXXXXX", path[64], link[64], one[1];
	struct uni_sink *out;
	struct uni_err err = { 0 };
	char *data;
	size_t size;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	assert_int_equal(uni_sink_open_file(path, &out, &err), 0);
	uni_sink_printf(out, "%s", "half");
	assert_int_not_equal(access(path, F_OK), 0);
	uni_sink_abort(out);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_equal(uni_sink_open_file(path, &out, &err), 0);
	uni_sink_puts(out, "whole");
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(uni_read_file(path, 100, &data, &size, &err), 0);
	assert_int_equal(size, 5);
	assert_string_equal(data, "whole");
	free(data);
	(void)snprintf(link, sizeof(link), "%s/l", dir);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(uni_sink_open_file(link, &out, &err), 0);
	uni_sink_puts(out, "whole");
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(readlink(link, one, sizeof(one)), 1); /* still a link */
	(void)unlink(link);
	assert_int_equal(uni_read_file(path, 4, &data, &size, &err), -UNI_ERANGE);
	(void)unlink(path);
	assert_int_equal(rmdir(dir), 0); /* no temporary file was left */
	err.code = 0;
	assert_int_equal(uni_sink_open_file("/nonexistent/x", &out, &err), -UNI_EIO);
	assert_non_null(strstr(err.msg, "/nonexistent/x"));
}

/* Files that never end, or wait for somebody, are refused at once. */
static void special_files_are_refused(void **state)
{
	char dir[] = "/tmp/uni-base-XXXXXX", path[64], *data;
	struct uni_err err = { 0 };
	size_t size;
	int fd[2];

	assert_int_equal(uni_read_file("/dev/zero", 100, &data, &size, &err), -UNI_EFORMAT);
	assert_string_equal(err.msg, "/dev/zero is not a regular file or pipe");
	assert_int_equal(uni_read_file("/tmp", 100, &data, &size, NULL), -UNI_EFORMAT);
	assert_int_equal(uni_read_regular("/dev/zero", 100, &data, &size, NULL), -UNI_EFORMAT);
	assert_int_equal(uni_read_regular("/nonexistent", 9, &data, &size, NULL), -UNI_ENOENT);
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	err.code = 0;
	assert_int_equal(uni_read_regular(path, 100, &data, &size, &err), -UNI_EFORMAT);
	assert_non_null(strstr(err.msg, "is not a regular file"));
	(void)unlink(path);
	(void)rmdir(dir);
	/* A pipe is a stream like any other. */
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(uni_write_full(fd[1], "abc", 3), 0);
	(void)close(fd[1]);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[0]);
	assert_int_equal(uni_read_file(path, 100, &data, &size, NULL), 0);
	assert_string_equal(data, "abc");
	free(data);
	(void)close(fd[0]);
	/* A regular file of /proc has no size, and is read all the same. */
	assert_int_equal(uni_read_regular("/proc/self/stat", 4096, &data, &size, NULL), 0);
	assert_true(size > 10);
	free(data);
}

/* "[V,V,...]" */
static json_t *load_many(const char *value, unsigned nr, unsigned times, struct uni_err *err)
{
	struct uni_strbuf b;
	json_t *root;

	uni_strbuf_init(&b);
	for (unsigned i = 0; i < nr; i++)
		uni_strbuf_addf(&b, "%c%s", i == 0 ? '[' : ',', value);
	uni_strbuf_adds(&b, "]");
	assert_false(uni_strbuf_failed(&b));
	root = uni_json_load(b.s, b.len, 0, times, err);
	uni_strbuf_deinit(&b);
	return root;
}

static void json_has_a_budget(void **state)
{
	struct uni_err err = { 0 };
	json_t *root = load_many("1", 100000, UNI_JSON_TIMES_NUMBERS, &err);

	assert_int_equal(json_array_size(root), 100000);
	json_decref(root);
	root = load_many("{}", 4000, UNI_JSON_TIMES, &err); /* any file may take 1 MB */
	assert_int_equal(json_array_size(root), 4000);
	json_decref(root);
	assert_null(load_many("{}", 100000, UNI_JSON_TIMES_NUMBERS, &err));
	assert_non_null(strstr(err.msg, "32 bytes for each"));
	err.code = 0;
	assert_null(load_many("[]", 100000, UNI_JSON_TIMES, &err));
	assert_non_null(strstr(err.msg, "16 bytes for each"));
	err.code = 0;
	assert_null(load_many("x", 1, UNI_JSON_TIMES, &err));
	assert_non_null(strstr(err.msg, "line 1"));
	/* There is none for what this thread makes by itself. */
	root = json_array();
	for (unsigned i = 0; i < 100000; i++)
		assert_int_equal(json_array_append_new(root, json_object()), 0);
	json_decref(root);
}

/* Folders in which somebody else can put another file in the place of ours. */
static void folders_of_others(void **state)
{
	const uid_t own = geteuid(), other = own + 1;
	const bool rights = uni_privilege_has();
	const struct {
		uid_t uid;
		gid_t gid;
		mode_t mode;
		bool is_open;
	} row[] = {
		{ own, 5, 0755, false },
		{ 0, 5, 0755, false },
		{ other, 0, 0700, true },
		{ own, 5, 0777, true },
		{ own, 5, 01777, rights }, /* /tmp: others cannot replace a file of ours */
		{ own, 5, 0775, rights },
		{ own, 0, 0775, false },
		{ own, 1, 0775, rights },
	};

	for (size_t i = 0; i < uni_array_len(row); i++) {
		const struct stat st = {
			.st_uid = row[i].uid, .st_gid = row[i].gid, .st_mode = S_IFDIR | row[i].mode
		};

		assert_int_equal(uni_outdir_is_open(&st), row[i].is_open);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_of_others),
		cmocka_unit_test(range_exhaustive),
		cmocka_unit_test(text_is_cleaned),
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(globs),
		cmocka_unit_test(cursor_never_overruns),
		cmocka_unit_test(strbuf_without_room),
		cmocka_unit_test(json_escapes_and_nests),
		cmocka_unit_test(json_has_a_budget),
		cmocka_unit_test(strtab_interns),
		cmocka_unit_test(memo_finds_ends_and_texts),
		cmocka_unit_test(memo_grows),
		cmocka_unit_test(files_appear_whole_or_not),
		cmocka_unit_test(special_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
