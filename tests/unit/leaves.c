/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of functions of which most calls have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "calls_tell.h"
#include "base/strbuf.h"
#include "trace/breakdown.h"

/* Mode lite: most calls of C and D have no end. Their time is their caller's, and that of the one
 * call that has one is not the function's. */
static void times_of_leaves(void **state)
{
	struct uni_funcs *funcs = letters();
	struct uni_trace_report r;
	struct uni_breakdown b;
	struct uni_strbuf text;
	struct uni_sink *out;
	struct make m;

	(void)state;
	make_init(&m, 1, 0);
	make_enter(&m, 0, 100, A);
	for (unsigned i = 0; i < 20; i++) {
		make_leaf(&m, 0, 110 + 20 * i, C);
		make_enter(&m, 0, 112 + 20 * i, B);
		make_leaf(&m, 0, 113 + 20 * i, D);
		make_exit(&m, 0, 122 + 20 * i, 0x7f00);
	}
	make_leaf(&m, 0, 600, B);
	make_enter(&m, 0, 610, C);
	make_exit(&m, 0, 650, 0x7f00);
	make_exit(&m, 0, 1100, 0x8000);
	assert_int_equal(uni_trace_report_make(make_input(&m), NULL, funcs, &r, NULL), 0);
	uni_strbuf_init(&text);
	assert_int_equal(uni_sink_open_strbuf(&text, &out), 0);
	uni_trace_report_print(&r, funcs, 0, out);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_non_null(strstr(text.s, "           1   1.000 us     760 ns   1.000 us"));
	assert_non_null(strstr(text.s, "          21     200 ns     200 ns"));
	assert_non_null(strstr(text.s, "          21          -          -          -          -"));
	assert_non_null(strstr(text.s, "          20          -          -          -          -"));
	uni_strbuf_deinit(&text);
	uni_trace_report_deinit(&r);
	assert_int_equal(uni_breakdown_make(make_input(&m), NULL, funcs, false, &b, NULL), 0);
	uni_vec_foreach (c, &b.cell) {
		if (c->func == UNI_FUNC_NONE)
			continue;
		assert_int_equal(uni_calls_have_time(c->calls, c->timed),
			letter(funcs, c->func) == 'A' || letter(funcs, c->func) == 'B');
	}
	uni_breakdown_deinit(&b);
	uni_funcs_destroy(funcs);
	make_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_of_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
