/* SPDX-License-Identifier: BSD-2-Clause */
/* Text behind arguments, copied by the guest's tracer in this process. The process says itself
 * which bytes can be read, because user mode has no page tables to look at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guesttrace.h"
#include "trace/values.h"

void uni_trace_entry_text(void);

#define PAGE 4096

static struct {
	uint64_t room[5];
	char *page; /* two pages that can be read, and one that faults */
	uint64_t asked;
} s;

static int in_pages(uint64_t at, uint64_t bytes)
{
	uint64_t from = (uint64_t)s.page;

	assert_true(bytes != 0 && at % PAGE + bytes <= PAGE);
	s.asked += bytes;
	return at >= from && at < from + 2 * PAGE;
}

static void put_text(char *to, const char *text)
{
	memcpy(to, text, strlen(text) + 1);
}

static struct uni_trace_text_rule *rules(void)
{
	return (struct uni_trace_text_rule *)(void *)&s.room[1];
}

/* As a host does it: work_sum copies what these say. */
static struct ring_memory start(unsigned texts, unsigned buffers, unsigned bytes)
{
	const struct uni_trace_memory memory = { .readable = in_pages };
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit_value);
	struct uni_trace_text_rules *head = (void *)s.room;

	entry_hook = uni_trace_entry_text;
	memset(s.page, 'p', 2 * PAGE);
	assert_int_equal(uni_trace_copy_text(s.room, 15, &memory), -1);
	assert_int_equal(uni_trace_copy_text((char *)s.room + 4, sizeof(s.room) - 8, &memory), -1);
	assert_int_equal(uni_trace_copy_text(s.room, sizeof(s.room), &memory), 0);
	assert_int_equal(head->room, 4);
	assert_int_equal(uni_trace_head.features & UNI_TRACE_COPIES_TEXT, UNI_TRACE_COPIES_TEXT);
	for (unsigned i = 0; i < 4; i++)
		rules()[i] = (struct uni_trace_text_rule){ .function = i };
	rules()[2] = (struct uni_trace_text_rule){ .function = (uint32_t)(uintptr_t)work_sum,
		.bytes = (uint16_t)bytes,
		.arguments = (uint8_t)texts,
		.buffers = (uint8_t)buffers };
	rules()[3].function = ~0u;
	head->nr = 4;
	return m;
}

/* The one entry with arguments of the ring. */
static struct {
	uint64_t words[600];
	unsigned nr, records;
	struct uni_trace_copied text[UNI_TRACE_ARGS];
} got;

static int keep_args(void *arg, unsigned nr, const struct uni_trace_sub *sub, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, sub, content);
	struct uni_trace_record rec;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind != UNI_TRACE_KIND_EXT || (rec.cls != UNI_TRACE_CLASS_ENTRY_ARGS &&
							      rec.cls != UNI_TRACE_CLASS_CALL_ARGS))
			continue;
		got.nr = rec.nr;
		got.records++;
		memcpy(got.words, rec.words, rec.nr * sizeof(uint64_t));
	}
	return 0;
}

static void read_args(void)
{
	struct uni_ring *r;

	got.records = 0;
	r = open_ring();
	assert_int_equal(uni_ring_drain(r, 0, keep_args, NULL), 0);
	assert_int_equal(got.records, work_calls);
	assert_int_equal(info->text_window | (uint32_t)got.words[got.nr - 1], (uint64_t)work_sum);
	uni_ring_close(r);
	/* A call has its caller there, which is in the test. Bit 32 is 0: it is no entry. */
	assert_int_equal(got.words[got.nr - 1] >> 32 & 1, 0);
	assert_int_equal(got.words[got.nr - 1] >> 32 != 0,
		UNI_TRACE_ENTRIES_ONLY(uni_trace_head.control.mode));
	uni_trace_copied(got.words, got.nr, got.text);
}

static void check_text(unsigned i, const char *text, unsigned flags)
{
	assert_non_null(got.text[i].text);
	assert_int_equal(got.text[i].len, strlen(text));
	assert_memory_equal(got.text[i].text, text, strlen(text));
	assert_int_equal(got.text[i].flags, flags);
}

static void call(const void *a, const void *b, uint64_t c)
{
	long want = (long)((uint64_t)a + (uint64_t)b * c + 14 * 15 + 16);

	assert_int_equal(work_sum((long)a, (long)b, (long)c, 14, 15, 16), want);
	read_args();
	assert_int_equal(got.words[0], (uint64_t)a);
	assert_int_equal(got.words[1], (uint64_t)b);
	assert_int_equal(got.words[5], 16);
}

static void texts_are_copied(void **state)
{
	struct ring_memory m = start(1 << 0 | 1 << 1, 0, 16);

	put_text(s.page, "/etc/nginx.conf");
	put_text(s.page + 100, "abcdefgh");
	call(s.page, s.page + 100, 3);
	check_text(0, "/etc/nginx.conf", 0);
	check_text(1, "abcdefgh", 0);
	assert_null(got.text[2].text);
	assert_int_equal(got.nr, 6 + 1 + 2 + 1 + 1 + 1);
	/* Exactly as long as the limit, and one more. */
	put_text(s.page, "0123456789abcdef");
	put_text(s.page + 100, "0123456789abcdefg");
	call(s.page, s.page + 100, 3);
	check_text(0, "0123456789abcdef", 0);
	check_text(1, "0123456789abcdef", UNI_TRACE_TEXT_CUT);
	/* An empty one, and none. */
	call("", NULL, 3);
	assert_int_equal(got.text[0].flags, UNI_TRACE_TEXT_BAD); /* not in the pages */
	s.page[7] = '\0';
	call(s.page + 7, NULL, 3);
	check_text(0, "", 0);
	assert_null(got.text[1].text);
	trace_end(&m);
}

/* A text may end with the last byte that can be read, but not beyond it. */
static void nothing_else_is_read(void **state)
{
	struct ring_memory m = start(1 << 0 | 1 << 1, 0, 64);
	char *end = s.page + 2 * PAGE;

	put_text(end - 5, "last");
	put_text(s.page + PAGE - 3, "two pages");
	call(end - 5, s.page + PAGE - 3, 1);
	check_text(0, "last", 0);
	check_text(1, "two pages", 0);
	end[-1] = 'x';
	call(end - 5, end, 1);
	check_text(0, "lastx", UNI_TRACE_TEXT_BAD);
	check_text(1, "", UNI_TRACE_TEXT_BAD);
	call((void *)1, (void *)-9, 1);
	check_text(0, "", UNI_TRACE_TEXT_BAD);
	check_text(1, "", UNI_TRACE_TEXT_BAD);
	/* Outside of ring 0 and without a function that knows, nothing is read. */
	entry_hook = work_skip_entry;
	assert_int_equal(uni_trace_copy_text(s.room, sizeof(s.room),
				 &(struct uni_trace_memory){ .size = 1 << 30 }),
		0);
	rules()[0] = rules()[2];
	*((uint32_t *)(void *)s.room + 1) = 1;
	entry_hook = uni_trace_entry_text;
	put_text(s.page, "text");
	call(s.page, NULL, 1);
	check_text(0, "", UNI_TRACE_TEXT_BAD);
	trace_end(&m);
}

static void bytes_have_their_number(void **state)
{
	struct ring_memory m = start(0, 1 << 1 | 1 << 5, 8);

	memcpy(s.page, "a\0b\0c\0d\0e", 9);
	call(NULL, s.page, 3);
	assert_int_equal(got.text[1].len, 3);
	assert_memory_equal(got.text[1].text, "a\0b", 3);
	assert_int_equal(got.text[1].flags, 0);
	call(NULL, s.page, 9);
	assert_int_equal(got.text[1].len, 8);
	assert_int_equal(got.text[1].flags, UNI_TRACE_TEXT_CUT);
	call(NULL, s.page, 0);
	assert_int_equal(got.text[1].len, 0);
	assert_int_equal(got.text[1].flags, 0);
	call(NULL, s.page, ~0ull);
	assert_int_equal(got.text[1].len, 8);
	assert_int_equal(got.text[1].flags, UNI_TRACE_TEXT_CUT);
	trace_end(&m);
}

/* No more than UNI_TRACE_TEXT_MAX, whatever the rule says; also in function mode, and of a
 * function without a rule. */
static void limits(void **state)
{
	struct ring_memory m = start(0x3f, 0, 65535);

	s.page[2 * PAGE - 1] = '\0';
	uni_trace_set_mode(UNI_TRACE_FUNCTION);
	s.asked = 0;
	(void)work_sum(
		(long)s.page, (long)s.page, (long)s.page, (long)s.page, (long)s.page, (long)s.page);
	read_args();
	assert_int_equal(got.nr, 6 + 6 * (1 + UNI_TRACE_TEXT_MAX / 8) + 1);
	assert_int_equal(s.asked, 6 * (UNI_TRACE_TEXT_MAX + 1));
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(got.text[i].len, UNI_TRACE_TEXT_MAX);
		assert_int_equal(got.text[i].flags, UNI_TRACE_TEXT_CUT);
	}
	rules()[2].function++;
	call(s.page, s.page, 1);
	assert_int_equal(got.nr, 7);
	assert_null(got.text[0].text);
	trace_end(&m);
}

/* Texts at each edge of a sub-buffer, until the ring is full: each call is there, or counted. */
static void edges(void **state)
{
	struct ring_memory m = start(1 << 0, 0, 200);
	struct uni_ring_stats stats;
	struct seen seen;
	const struct uni_trace_sub *last;
	unsigned long calls = 0;

	for (unsigned len = 0; calls < 60000; len = (len + 1) % 200, calls++) {
		memset(s.page, 't', len);
		s.page[len] = '\0';
		(void)work_sum((long)s.page, 0, 0, 0, 0, 0);
	}
	seen = read_all(&stats);
	assert_true(cpu.lost != 0);
	assert_int_equal(seen.entries + seen.exits + cpu.lost, 2 * calls);
	assert_int_equal(seen.backwards, 0);
	assert_int_equal(stats.torn + stats.lapped, 0);
	/* The words that are no events are counted: a reader that missed some knows how many. */
	last = (void *)(cpu.wptr & ~(uint64_t)(UNI_TRACE_SUB_SIZE - 1));
	assert_int_equal(last->extra_before + (last->extra_after & ~UNI_TRACE_EXTRA_GONE),
		seen.ext_words + 3 * seen.syncs);
	trace_end(&m);
}

/* Records that a guest may make up: a reader stays within them. */
static void made_up_records(void **state)
{
	struct uni_trace_copied text[UNI_TRACE_ARGS];
	uint64_t *words;

	srandom(1);
	for (unsigned round = 0; round < 200000; round++) {
		size_t nr = (size_t)random() % 24;

		words = malloc(nr * sizeof(*words) + 1);
		assert_non_null(words);
		for (size_t i = 0; i < nr; i++)
			words[i] = (uint64_t)random() & (random() % 2 ? 0x1f0307 : ~0ull);
		uni_trace_copied(words, nr, text);
		for (unsigned i = 0; i < UNI_TRACE_ARGS; i++) {
			if (text[i].text == NULL)
				continue;
			assert_true(text[i].text > (char *)&words[6]);
			assert_true(text[i].text + text[i].len <= (char *)&words[nr - 1]);
		}
		free(words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_copied),
		cmocka_unit_test(nothing_else_is_read),
		cmocka_unit_test(bytes_have_their_number),
		cmocka_unit_test(limits),
		cmocka_unit_test(edges),
		cmocka_unit_test(made_up_records),
	};

	s.page = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s.page == MAP_FAILED || mprotect(s.page + 2 * PAGE, PAGE, PROT_NONE) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
