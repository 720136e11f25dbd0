/* SPDX-License-Identifier: BSD-2-Clause */
/* Unikraft's tracepoints: definitions, records of every type and width, damage, and what becomes of
 * them in other formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "ukt_make.h"
#include "format/uktrace/ctf.h"
#include "format/uktrace/timeline.h"

static struct ukt_bytes defs, buf;

static void reset(void)
{
	defs.n = buf.n = 0;
}

/* The message of the only record. */
static void expect_message(unsigned ptr_size, const char *want)
{
	struct uni_ukt_defs d;
	struct uni_ukt_record r;
	struct uni_ukt_reader reader;
	struct uni_strbuf msg;

	assert_int_equal(uni_ukt_defs_parse(defs.b, defs.n, &d, NULL), 0);
	reader = uni_ukt_reader_make(buf.b, buf.n, &d, ptr_size, 0);
	assert_true(uni_ukt_next(&reader, &r));
	assert_non_null(r.def);
	uni_strbuf_init(&msg);
	uni_ukt_format(&r, &msg);
	assert_string_equal(msg.s, want);
	assert_false(uni_ukt_next(&reader, &r));
	assert_int_equal(reader.stats.damaged, 0);
	uni_strbuf_deinit(&msg);
	uni_ukt_defs_free(&d);
}

/* One integer of each width, by each conversion, on guests of both widths. */
static void integers(void **state)
{
	static const struct {
		const char *format, *arg;
		uint64_t v;
		const char *want;
	} all[] = {
		{ "%hhd", "1", 0xff, "-1" },
		{ "%hhu", "1", 0xff, "255" },
		{ "%d", "1", 0x7f, "127" },
		{ "%hd", "2", 0x8000, "-32768" },
		{ "%hu", "2", 0x8000, "32768" },
		{ "%d", "4", 0xffffffff, "-1" },
		{ "%i", "4", 0x80000000, "-2147483648" },
		{ "%u", "4", 0xffffffff, "4294967295" },
		{ "%ld", "8", UINT64_MAX, "-1" },
		{ "%lld", "8", UINT64_C(1) << 63, "-9223372036854775808" },
		{ "%lu", "8", UINT64_MAX, "18446744073709551615" },
		{ "%zu", "8", 42, "42" },
		{ "%zd", "8", UINT64_MAX - 1, "-2" },
		{ "%jd", "8", UINT64_MAX, "-1" },
		{ "%td", "8", 5, "5" },
		{ "%x", "4", 0xdeadbeef, "deadbeef" },
		{ "%X", "4", 0xdeadbeef, "DEADBEEF" },
		{ "%#x", "4", 0, "0" },
		{ "%#x", "8", 0xb, "0xb" },
		{ "%#o", "4", 8, "010" },
		{ "%o", "4", 8, "10" },
		{ "%5d|", "4", 42, "   42|" },
		{ "%-5d|", "4", 42, "42   |" },
		{ "%05d", "4", 0xffffffff, "-0001" },
		{ "%+d", "4", 7, "+7" },
		{ "% d", "4", 7, " 7" },
		{ "%.4d", "4", 7, "0007" },
		{ "%8.4x|", "4", 0xab, "    00ab|" },
		{ "%#010x", "4", 0xab, "0x000000ab" },
		{ "%.0d", "4", 0, "" },
		{ "%p", "8", 0x1234, "0x0000000000001234" },
		{ "%p", "4", 0x1234, "0x00001234" },
		{ "%c", "1", 'x', "x" },
		{ "%3c|", "1", 'x', "  x|" },
		{ "%f", "8", UINT64_MAX, "-1" },
		{ "%s", "8", 0x1000, "0x1000" },
		{ "100%% of %u", "2", 5, "100% of 5" },
		{ "nothing", "4", 5, "nothing 0x5" },
		{ "%u %u", "4", 5, "5 ?" },
		{ "cut %", "4", 5, "cut  0x5" },
		{ "line\n", "1", 1, "line 0x1" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (unsigned ptr_size = 4; ptr_size <= 8; ptr_size += 4) {
			size_t at;

			reset();
			ukt_define(&defs, 0x1000, "tp", all[i].format, all[i].arg, 32);
			at = ukt_begin(&buf, 5, 0x1000, ptr_size);
			ukt_put(&buf, all[i].v, (size_t)(all[i].arg[0] - '0'));
			ukt_end(&buf, at);
			expect_message(ptr_size, all[i].want);
		}
	}
	(void)state;
}

static void strings(void **state)
{
	static const char longest[] = "0123456789012345678901234567890123456789"
				      "0123456789012345678901234567890123456789";
	size_t at;

	reset();
	ukt_define(&defs, 8, "tp", "\"%s\"%10s|%-6s|%.2s %u", "ssss4", 8);
	at = ukt_begin(&buf, 5, 8, 8);
	ukt_string(&buf, longest);
	ukt_string(&buf, "right");
	ukt_string(&buf, "");
	ukt_string(&buf, "cut off");
	ukt_put(&buf, 9, 4);
	ukt_end(&buf, at);
	expect_message(8, "\"0123456789012345678901234567890123456789"
			  "0123456789012345678901234567890123456789\"     right|      |cu 9");

	/* A guest's text must not reach a terminal as it is. */
	reset();
	ukt_define(&defs, 8, "tp", "%s", "s", 8);
	at = ukt_begin(&buf, 5, 8, 8);
	ukt_string(&buf, "a\x1b[2J\xff");
	ukt_end(&buf, at);
	expect_message(8, "a\xef\xbf\xbd[2J\xef\xbf\xbd");
	(void)state;
}

static void star(void **state)
{
	size_t at;

	reset();
	ukt_define(&defs, 8, "tp", "%*d|%.*s|%-*u|", "444s44", 8);
	at = ukt_begin(&buf, 5, 8, 8);
	ukt_put(&buf, 4, 4);
	ukt_put(&buf, 7, 4);
	ukt_put(&buf, 2, 4);
	ukt_string(&buf, "abc");
	ukt_put(&buf, 3, 4);
	ukt_put(&buf, 1, 4);
	ukt_end(&buf, at);
	expect_message(8, "   7|ab|1  |");
	(void)state;
}

/* x86_64's compiler puts definitions 32 bytes apart, aarch64's 8; damage between them is counted.
 */
static void definitions(void **state)
{
	static const size_t align[] = { 8, 32 };

	for (size_t a = 0; a < 2; a++) {
		struct uni_ukt_defs d;

		reset();
		for (unsigned i = 0; i < 20; i++) {
			char name[16];

			(void)snprintf(name, sizeof(name), "tp%u", i);
			ukt_define(&defs, 0x100 * (20 - i), name, "", "", align[a]);
		}
		assert_int_equal(uni_ukt_defs_parse(defs.b, defs.n, &d, NULL), 0);
		assert_int_equal(d.all.nr, 20);
		assert_int_equal(d.damaged, 0);
		for (unsigned i = 0; i < 20; i++) {
			char name[16];
			const struct uni_ukt_def *def = uni_ukt_defs_find(&d, 0x100 * (20 - i));

			(void)snprintf(name, sizeof(name), "tp%u", i);
			assert_non_null(def);
			assert_string_equal(def->name, name);
		}
		assert_null(uni_ukt_defs_find(&d, 1));
		uni_ukt_defs_free(&d);
		defs.b[0]++; /* no magic: the first one's bytes are passed over */
		assert_int_equal(uni_ukt_defs_parse(defs.b, defs.n, &d, NULL), 0);
		assert_int_equal(d.all.nr, 19);
		assert_true(d.damaged != 0);
		uni_ukt_defs_free(&d);
		for (size_t cut = 0; cut < 64; cut++) {
			assert_int_equal(uni_ukt_defs_parse(defs.b, cut, &d, NULL), 0);
			uni_ukt_defs_free(&d);
		}
	}
	(void)state;
}

static void put_count(uint64_t ns, uint32_t v)
{
	size_t at = ukt_begin(&buf, ns, 8, 8);

	ukt_put(&buf, v, 4);
	ukt_end(&buf, at);
}

/* Reads all; the numbers of the records that are of the tracepoint, and what is said of the rest.
 */
static size_t read_all(uint32_t *v, size_t max, uint64_t bias, struct uni_ukt_stats *st)
{
	struct uni_ukt_defs d;
	struct uni_ukt_reader r;
	struct uni_ukt_record rec;
	size_t nr = 0;

	assert_int_equal(uni_ukt_defs_parse(defs.b, defs.n, &d, NULL), 0);
	r = uni_ukt_reader_make(buf.b, buf.n, &d, 8, bias);
	while (uni_ukt_next(&r, &rec)) {
		if (rec.def != NULL && nr < max)
			v[nr++] = (uint32_t)rec.arg[0].v;
	}
	*st = r.stats;
	uni_ukt_defs_free(&d);
	return nr;
}

/* Whatever stands between two records: the one behind is found, and the bytes are counted. */
static void damage(void **state)
{
	struct uni_ukt_stats st;
	uint32_t v[8];
	size_t at;

	reset();
	ukt_define(&defs, 8, "count", "%u", "4", 8);
	put_count(1, 1);
	at = ukt_begin(&buf, 2, 8, 8); /* torn: a head, another CPU's record in its middle */
	ukt_put(&buf, 7, 2);
	put_count(2, 2);
	ukt_put(&buf, 7, 2);
	ukt_bytes(&buf, "TRh", 3);
	put_count(3, 3);
	assert_int_equal(read_all(v, 8, 0, &st), 3);
	assert_int_equal(v[0], 1);
	assert_int_equal(v[1], 2);
	assert_int_equal(v[2], 3);
	assert_int_equal(st.damaged, 24 + 2 + 2 + 3);
	assert_int_equal(st.gaps, 2);

	/* A record that claims to be larger than the buffer, or than its arguments. */
	reset();
	ukt_define(&defs, 8, "count", "%u", "4", 8);
	at = buf.n;
	put_count(1, 1);
	put_count(2, 2);
	for (unsigned size = 0; size < 64; size++) {
		memcpy(buf.b + at + 4, &size, 4);
		assert_int_equal(read_all(v, 8, 0, &st), size == 4 ? 2 : 1);
		assert_int_equal(v[size == 4], 2);
	}
	memcpy(buf.b + at + 4, "\xff\xff\xff\xff", 4);
	assert_int_equal(read_all(v, 8, 0, &st), 1);

	/* A partial one at the end, at any byte. */
	for (size_t cut = 28; cut < 56; cut++) {
		buf.n = cut;
		memcpy(buf.b + 4, "\4\0\0\0", 4);
		assert_int_equal(read_all(v, 8, 0, &st), 1);
		assert_int_equal(st.damaged, cut - 28);
	}
	(void)state;
}

/* Unknown tracepoints are records where the next one stands right behind. */
static void unknown(void **state)
{
	struct uni_ukt_stats st;
	uint32_t v[8];
	size_t at;

	reset();
	ukt_define(&defs, 8, "count", "%u", "4", 8);
	ukt_define(&defs, 16, "odd", "%u", "4", 8);
	defs.b[defs.n - 8 - 5] = 0;
	put_count(1, 1);
	at = ukt_begin(&buf, 2, 0x999, 8);
	ukt_put(&buf, 1, 7);
	ukt_end(&buf, at);
	put_count(3, 3);
	assert_int_equal(read_all(v, 8, 0, &st), 2);
	assert_int_equal(st.records, 3);
	assert_int_equal(st.unknown, 1);
	assert_int_equal(st.damaged, 0);
	(void)state;
}

/* A position-independent image: cookies in the buffer have moved with it. */
static void moved(void **state)
{
	struct uni_ukt_stats st;
	uint32_t v[8];
	size_t at;

	reset();
	ukt_define(&defs, 8, "count", "%u", "4", 8);
	at = ukt_begin(&buf, 2, 0x200008, 8);
	ukt_put(&buf, 9, 4);
	ukt_end(&buf, at);
	assert_int_equal(read_all(v, 8, 0x200000, &st), 1);
	assert_int_equal(v[0], 9);
	assert_int_equal(read_all(v, 8, 0, &st), 0);
	(void)state;
}

static void put_plain(uint64_t ns, uint64_t cookie)
{
	ukt_end(&buf, ukt_begin(&buf, ns, cookie, 8));
}

static struct uni_ukt_file file_of(void)
{
	return (struct uni_ukt_file){ .ptr_size = 8,
		.defs = defs.b,
		.defs_size = defs.n,
		.buffer = buf.b,
		.buffer_size = buf.n };
}

enum { OPEN = 0x100, OPEN_RET = 0x200, OPEN_ERR = 0x300, SWITCH = 0x400, OTHER = 0x500 };

static void define_calls(void)
{
	reset();
	ukt_define(&defs, OPEN, "trace_open", "\"%s\"", "s", 8);
	ukt_define(&defs, OPEN_RET, "trace_open_ret", "", "", 8);
	ukt_define(&defs, OPEN_ERR, "trace_open_err", "%d", "4", 8);
	ukt_define(&defs, SWITCH, "sched_switch", "%s %p", "s8", 8);
	ukt_define(&defs, OTHER, "other", "", "", 8);
}

static void put_open(uint64_t ns)
{
	size_t at = ukt_begin(&buf, ns, OPEN, 8);

	ukt_string(&buf, "/x");
	ukt_end(&buf, at);
}

static void put_switch(uint64_t ns, const char *name, uint64_t id)
{
	size_t at = ukt_begin(&buf, ns, SWITCH, 8);

	ukt_string(&buf, name);
	ukt_put(&buf, id, 8);
	ukt_end(&buf, at);
}

/* Calls of two threads, one in the other's time; and records that two CPUs wrote out of order. */
static void timeline(void **state)
{
	static const struct {
		uint8_t type, flags;
		uint64_t ns, duration;
		const char *func;
	} want[] = {
		{ UNI_CALL_ENTRY, 0, 5, 0, "other" },
		{ UNI_CALL_RETURN, 0, 6, 0, "" },
		{ UNI_CALL_SWITCH, 0, 10, 0, "" },
		{ UNI_CALL_ENTER, 0, 20, 0, "trace_open" },
		{ UNI_CALL_SWITCH, 0, 30, 0, "" },
		{ UNI_CALL_ENTER, 0, 40, 0, "trace_open" },
		{ UNI_CALL_LEAVE, 0, 50, 10, "trace_open" },
		{ UNI_CALL_ENTER, 0, 55, 0, "trace_open" },
		{ UNI_CALL_SWITCH, 0, 60, 0, "" },
		{ UNI_CALL_LEAVE, 0, 70, 50, "trace_open" },
		{ UNI_CALL_LEAVE, UNI_CALL_CUT | UNI_CALL_OPEN, 70, 15, "trace_open" },
	};
	const struct uni_call_event *e;
	struct uni_ukt_timeline *tl;
	struct uni_ukt_trace t;
	struct uni_timeline got;
	struct uni_ukt_file f;
	uint64_t number;
	size_t nr;

	define_calls();
	put_plain(6, OPEN_RET); /* its beginning is not there; and it lies before an earlier one */
	put_plain(5, OTHER);
	put_switch(10, "one", 0x10);
	put_open(20);
	put_switch(30, "two", 0x20);
	put_open(40);
	put_plain(50, OPEN_RET);
	put_open(55);
	put_switch(60, "one", 0x10);
	nr = ukt_begin(&buf, 70, OPEN_ERR, 8);
	ukt_put(&buf, 2, 4);
	ukt_end(&buf, nr);
	f = file_of();
	assert_int_equal(uni_ukt_trace_open(&f, &t, NULL), 0);
	assert_int_equal(t.unordered, 1);
	tl = uni_ukt_timeline_open(&t);
	assert_non_null(tl);
	got = uni_ukt_timeline_get(tl);
	assert_int_equal(got.read(got.ctx, &e, &nr), 1);
	assert_int_equal(nr, sizeof(want) / sizeof(want[0]));
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(e[i].type, want[i].type);
		assert_int_equal(e[i].flags, want[i].flags);
		assert_int_equal(e[i].ns, want[i].ns);
		assert_int_equal(e[i].duration, want[i].duration);
		assert_string_equal(got.func(got.ctx, e[i].func), want[i].func);
	}
	assert_string_equal(got.thread(got.ctx, e[0].thread, &number), "tracepoints");
	assert_string_equal(got.thread(got.ctx, e[3].thread, &number), "one");
	assert_int_equal(number, 0x10);
	assert_string_equal(got.thread(got.ctx, e[5].thread, &number), "two");
	assert_int_equal(got.read(got.ctx, &e, &nr), 0);
	uni_ukt_timeline_close(tl);
	uni_ukt_trace_close(&t);
	(void)state;
}

/* The stream's bytes are what the metadata says: head, then time, id and fields of each event. */
static void ctf(void **state)
{
	static const uint8_t want[] = { 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0xfe, 'a', 'b', 0, 6, 0,
		0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x99, 9, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0 };
	char folder[] = "/tmp/uktrace-XXXXXX", path[64], *data;
	struct uni_ukt_trace t;
	struct uni_ukt_file f;
	size_t size, at;

	reset();
	ukt_define(&defs, 8, "first", "", "", 8);
	ukt_define(&defs, 16, "na\"me", "%hhd %s", "1s", 8);
	at = ukt_begin(&buf, 5, 16, 8);
	ukt_put(&buf, 0xfe, 1);
	ukt_string(&buf, "ab");
	ukt_end(&buf, at);
	at = ukt_begin(&buf, 6, 0x999, 8);
	ukt_put(&buf, 0, 3);
	ukt_end(&buf, at);
	f = file_of();
	assert_non_null(mkdtemp(folder));
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(uni_ukt_trace_open(&f, &t, NULL), 0);
	assert_int_equal(uni_ukt_ctf_write(&t, folder, NULL), 0);
	assert_int_not_equal(uni_ukt_ctf_write(&t, folder, NULL), 0); /* it is there */
	(void)snprintf(path, sizeof(path), "%s/stream", folder);
	assert_int_equal(uni_read_file(path, 4096, &data, &size, NULL), 0);
	assert_int_equal(size, 64 + sizeof(want));
	assert_memory_equal(data + 64, want, 29);
	assert_int_equal(data[64 + 28], (char)0x99);
	free(data);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/metadata", folder);
	assert_int_equal(uni_read_file(path, 65536, &data, &size, NULL), 0);
	assert_non_null(strstr(data, "name = \"na\\\"me\";"));
	assert_non_null(
		strstr(data, "integer { size = 8; align = 8; signed = true; base = 10; } arg1;"));
	free(data);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	uni_ukt_trace_close(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(strings),
		cmocka_unit_test(star),
		cmocka_unit_test(definitions),
		cmocka_unit_test(damage),
		cmocka_unit_test(unknown),
		cmocka_unit_test(moved),
		cmocka_unit_test(timeline),
		cmocka_unit_test(ctf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
