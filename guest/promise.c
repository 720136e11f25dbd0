/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of threads and promises: extended records, written in place where there is room. */
#include "uniscope/promise.h"

#include "cpu.h"
#include "machine.h"
#include "promise_table.h"
#include "ring.h"

#define SUB_MASK ((uint64_t)UNI_TRACE_SUB_SIZE - 1)

void (*uni_promise_keeper)(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text);

/* Keeps the table up to date, if there is one. Returns whether the event is to be recorded. */
static inline int is_told(unsigned kind, uint64_t a, uint64_t b, uint32_t c, const char *text)
{
	uint32_t on = *(volatile uint32_t *)&uni_trace_head.control.promises;

	if (__builtin_expect(on & UNI_TRACE_PROMISES_KEEP, 0) && uni_promise_keeper)
		uni_promise_keeper(kind, a, b, c, text);
	return (on & UNI_TRACE_PROMISES_TELL) != 0;
}

/* As write() in ring.c, which explains it. If there is no room here, or the time's upper half is
 * new, uni_trace_write() does it. Inlined with a known number of words, it costs little more than
 * reading the counter. */
static inline __attribute__((always_inline)) void put(
	unsigned kind, const uint64_t *words, unsigned nr)
{
	struct uni_trace_cpu *c = uni_trace_this_cpu();
	uint64_t first =
		UNI_TRACE_EXT | (uint64_t)nr << 4 | (uint64_t)(UNI_TRACE_CLASS_USER + kind) << 16;
	uint64_t bytes = 8 + (uint64_t)nr * 8, wptr, now, *to;

	do {
		wptr = *(volatile uint64_t *)&c->wptr;
		now = uni_machine_time();
		if (*(volatile uint32_t *)&c->hi != now >> 32 ||
			(wptr & SUB_MASK) + bytes > SUB_MASK - 7) {
			uni_trace_write(c, first, words, nr);
			return;
		}
	} while (!uni_machine_swap(&c->wptr, wptr, wptr + bytes));
	uni_trace_extra(c, wptr, nr);
	to = (uint64_t *)wptr;
	for (unsigned i = 0; i < nr; i++)
		to[1 + i] = words[i];
	to[0] = (uint32_t)now | first << 32;
	uni_machine_release();
	uni_trace_written(wptr, (int32_t)bytes);
}

void uni_promise_word(unsigned kind, uint64_t a)
{
	const uint64_t words[2] = { a, 0 };

	if (is_told(kind, a, 0, 0, ""))
		put(kind, words, 2);
}

void uni_promise_two(unsigned kind, uint64_t a, uint64_t b)
{
	const uint64_t words[3] = { a, b, 0 };

	if (is_told(kind, a, b, 0, ""))
		put(kind, words, 3);
}

void uni_promise_three(unsigned kind, uint64_t a, uint64_t b, uint32_t c)
{
	const uint64_t words[3] = { a, b, c };

	if (is_told(kind, a, b, c, ""))
		put(kind, words, 3);
}

/* Puts the text behind `nr` words; returns how many words there are then. */
static unsigned add_text(uint64_t *words, unsigned nr, const char *text)
{
	unsigned len = 0;

	while (text[len] && len < UNI_PROMISE_TEXT)
		len++;
	/* The last word's upper half stays 0: bit 32 of the newest word is an entry's. */
	for (unsigned i = 0; i < (len + 12) / 8; i++)
		words[nr + i] = 0;
	for (unsigned i = 0; i < len; i++)
		words[nr + i / 8] |= (uint64_t)(uint8_t)text[i] << i % 8 * 8;
	return nr + (len + 12) / 8;
}

void uni_promise_text1(unsigned kind, uint64_t a, const char *text)
{
	uint64_t words[1 + UNI_PROMISE_TEXT / 8 + 2];

	if (!is_told(kind, a, 0, 0, text))
		return;
	words[0] = a;
	uni_trace_event(UNI_TRACE_CLASS_USER + kind, words, add_text(words, 1, text));
}

void uni_promise_text2(unsigned kind, uint64_t a, uint64_t b, const char *text)
{
	uint64_t words[2 + UNI_PROMISE_TEXT / 8 + 2];

	if (!is_told(kind, a, b, 0, text))
		return;
	words[0] = a;
	words[1] = b;
	uni_trace_event(UNI_TRACE_CLASS_USER + kind, words, add_text(words, 2, text));
}
