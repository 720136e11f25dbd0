/* SPDX-License-Identifier: BSD-2-Clause */
/* Spans in JSON, as a reader with doubles sees them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "format/chrome/time.h"

struct span {
	double ts, dur;
};

static double member(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	assert_non_null(at);
	return strtod(at + strlen(key), NULL);
}

static struct span read_span(uint64_t begin_ns, uint64_t end_ns)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	struct uni_sink *out;
	struct span s;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_chrome_span(out, begin_ns, end_ns);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	s = (struct span){ member(b.s, ",\"ts\":"), member(b.s, ",\"dur\":") };
	return s;
}

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 20) % n;
}

/* Also after all times were moved so that the first is 0, as speedscope does. */
static void a_span_ends_where_the_next_begins(void **state)
{
	static const uint64_t starts[] = { 0, 1, 999, 1083122786329, UINT64_C(1083122786329111),
		UINT64_C(31536000000000123) };
	uint64_t rng = 1, odd = 0;

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		double first = read_span(starts[i], starts[i]).ts;
		uint64_t at = starts[i];

		for (unsigned k = 0; k < 3000; k++) {
			uint64_t end = at + random_below(&rng, k % 3 == 0 ? 5 : 500000000);
			struct span a = read_span(at, end), b = read_span(end, end + 1);

			assert_true(a.ts + a.dur == b.ts);
			if (starts[i] != 1 && starts[i] != 999) /* there, 0 is another moment */
				assert_true((a.ts - first) + a.dur == b.ts - first);
			/* The written time is the time that passed, as near as a double has it. */
			assert_true(a.dur - (double)(end - at) / 1e3 < 0.01);
			assert_true(a.dur - (double)(end - at) / 1e3 > -0.01);
			odd += a.dur != (double)(end - at) / 1e3;
			at = end;
		}
	}
	assert_true(odd > 1000); /* or this tests nothing */
}

static void decimals_that_fit_stay(void **state)
{
	_cleanup_strbuf_ struct uni_strbuf b;
	struct uni_sink *out;

	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_chrome_span(out, 1500, 4250);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s, ",\"ts\":1.500,\"dur\":2.750");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_span_ends_where_the_next_begins),
		cmocka_unit_test(decimals_that_fit_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
