/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of a ring's packets, found whatever bit of a counter or of a first time is damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "format/mirage/mirage.h"

#define HEAD   30
#define EVENT  17 /* a switch */
#define EACH   20 /* events of a packet */
#define PACKET ((size_t)HEAD + EACH * EVENT)
#define MOST   6 /* packets */

struct ring {
	uint8_t data[MOST * PACKET];
	unsigned nr;	/* packets */
	unsigned first; /* in the file, that is the oldest */
};

struct got {
	uint64_t who[MOST * EACH * 2];
	size_t nr;
};

static int take(void *arg, const struct uni_promise_event *e)
{
	struct got *g = arg;

	if (e->kind == UNI_PE_SWITCH && g->nr < sizeof(g->who) / sizeof(g->who[0]))
		g->who[g->nr++] = e->thread;
	return 0;
}

/* Event i, of the oldest packet on, is of thread i; packets are counted from `count` on. */
static struct ring make(unsigned nr, unsigned first, uint16_t count)
{
	struct ring r = { .nr = nr, .first = first };
	struct uni_strbuf b;
	struct uni_sink *out = NULL;
	struct uni_mirage_writer *w = NULL;
	struct uni_err err = { 0 };

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	assert_int_equal(uni_mirage_writer_open(out, PACKET, &w, &err), 0);
	for (unsigned i = 0; i < nr * EACH; i++)
		assert_int_equal(
			uni_mirage_writer_add(w, &(struct uni_promise_event){ .kind = UNI_PE_SWITCH,
							 .time = 1000000 + 100 * i,
							 .thread = i }),
			0);
	assert_int_equal(uni_mirage_writer_close(w, NULL), 0);
	assert_int_equal(uni_sink_close(out, &err), 0);
	assert_int_equal(b.len, nr * PACKET);
	for (unsigned i = 0; i < nr; i++) {
		uint8_t *p = r.data + (first + i) % nr * PACKET;
		uint16_t c = (uint16_t)(count + i);

		memcpy(p, b.s + i * PACKET, PACKET);
		memcpy(p + 24, &c, sizeof(c));
	}
	uni_strbuf_deinit(&b);
	return r;
}

/* All events in order, but for those of packet `damaged` of the file, of which any may be missing.
 */
static bool is_whole(const struct ring *r, unsigned damaged)
{
	struct uni_mirage_stats st;
	struct uni_err err = { 0 };
	struct got g = { 0 };
	uint64_t next = 0;

	assert_int_equal(uni_mirage_read(r->data, r->nr * PACKET, take, &g, &st, &err), 0);
	for (size_t i = 0; i < g.nr; i++) {
		while (next < g.who[i] && (r->first + next / EACH) % r->nr == damaged)
			next++;
		if (g.who[i] != next++)
			return false;
	}
	while (next < (uint64_t)r->nr * EACH && (r->first + next / EACH) % r->nr == damaged)
		next++;
	return next == (uint64_t)r->nr * EACH;
}

/* Each bit of these bytes of each packet's header in turn, wherever the ring's beginning is. */
static void flip_each(size_t from, size_t to, unsigned excused)
{
	for (unsigned nr = 2; nr <= MOST; nr++) {
		for (unsigned k = 0; k < nr * 3; k++) {
			struct ring r = make(nr, k % nr, (uint16_t[]){ 0, 8, 65533 }[k / nr]);

			assert_true(is_whole(&r, MOST));
			for (size_t bit = 0; bit < nr * (to - from) * 8; bit++) {
				unsigned p = (unsigned)(bit / ((to - from) * 8));
				size_t at = p * PACKET + from + bit / 8 % (to - from);

				r.data[at] ^= (uint8_t)(1u << bit % 8);
				if (!is_whole(&r, excused != 0 ? p : MOST))
					fail_msg("%u packets, the oldest is %u, counted from %u: "
						 "packet %u, byte %zu, bit %zu",
						nr, r.first, k / nr, p, at % PACKET, bit % 8);
				r.data[at] ^= (uint8_t)(1u << bit % 8);
			}
		}
	}
}

static void counters(void **state)
{
	(void)state;
	flip_each(24, 26, 0);
}

static void first_times(void **state)
{
	(void)state;
	flip_each(HEAD, HEAD + 8, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters),
		cmocka_unit_test(first_times),
	};

	return cmocka_run_group_tests_name("mirageorder", tests, NULL, NULL);
}
