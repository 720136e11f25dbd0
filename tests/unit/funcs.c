/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a trace: numbers by address, too many of them, and no memory for one more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/no_memory.h"
#include "calls_tell.h"

static uint32_t at(struct uni_funcs *f, uint64_t address)
{
	uint32_t ret;

	assert_int_equal(uni_funcs_at(f, address, &ret), 0);
	return ret;
}

static void numbers(void **state)
{
	struct uni_funcs *f = letters();

	(void)state;
	assert_int_equal(at(f, 0), UNI_FUNC_NONE);
	assert_int_equal(at(f, 0x1000), 1);
	assert_int_equal(at(f, 0x2000), 2);
	assert_int_equal(at(f, 0x1000), 1);
	assert_int_equal(uni_funcs_named(f, "main", 4), 3);
	assert_int_equal(at(f, 0x3000), 4);
	assert_int_equal(uni_funcs_address(f, 2), 0x2000);
	assert_int_equal(uni_funcs_nr(f), 5);
	uni_funcs_destroy(f);
}

static void too_many(void **state)
{
	struct uni_funcs *f = letters();
	uint32_t ret = 1;

	(void)state;
	for (uint32_t i = 1; i < UNI_FUNCS_MAX; i++)
		assert_int_equal(at(f, i * 16ull), i);
	assert_int_equal(uni_funcs_at(f, 8, &ret), -UNI_ERANGE);
	assert_int_equal(ret, UNI_FUNC_NONE);
	assert_int_equal(at(f, 16), 1);
	assert_int_equal(at(f, (UNI_FUNCS_MAX - 1) * 16ull), UNI_FUNCS_MAX - 1);
	assert_int_equal(uni_funcs_nr(f), UNI_FUNCS_MAX);
	uni_funcs_destroy(f);
}

/* Without memory there is no number, and nothing is remembered: the next question has an answer. */
static void no_memory(void **state)
{
	struct uni_funcs *f = letters();
	unsigned failed = 0;

	(void)state;
	for (uint32_t i = 1; i < 5000; i++) {
		uint32_t ret = 1;

		no_memory_begin(1);
		if (uni_funcs_at(f, i * 16ull, &ret) != 0) {
			failed++;
			assert_int_equal(ret, UNI_FUNC_NONE);
			assert_int_equal(uni_funcs_nr(f), i);
		}
		assert_int_equal(no_memory_end(), ret == UNI_FUNC_NONE);
		assert_int_equal(at(f, i * 16ull), i);
	}
	assert_in_range(failed, 10, 30);
	for (uint32_t i = 1; i < 5000; i++)
		assert_int_equal(at(f, i * 16ull), i);
	uni_funcs_destroy(f);
}

static void many_calls(struct make *m)
{
	static const uint64_t entry[] = { 0x123458 }, args[] = { 1, 2, 3, 4, 5, 6, 0x345678 };
	uint64_t time = 100;

	make_init(m, 1, 0);
	for (uint32_t i = 0; i < 24; i++) {
		make_leaf(m, 0, time++, 0x10000 + i * 16);
		make_ext(m, 0, time++, UNI_TRACE_CLASS_CALL, (uint64_t[]){ entry[0] + i * 16 }, 1);
		make_ext(m, 0, time++, UNI_TRACE_CLASS_CALL_ARGS, args, 7);
		make_enter(m, 0, time++, 0x20000 + i * 16);
	}
	(void)make_input(m);
}

/* The addresses of all events of the trace, or the error. */
static int read_addresses(const struct uni_trace_input *in, uint64_t *ret, size_t max)
{
	struct uni_funcs *funcs = uni_funcs_create(NULL);
	const struct uni_call_event *e;
	struct uni_err err = { 0 };
	struct uni_calls *c = NULL;
	size_t nr, found = 0;
	int rc;

	memset(ret, 0, max * sizeof(*ret));
	rc = funcs == NULL ? -UNI_ENOMEM : uni_calls_open(in, NULL, funcs, &c, &err);
	while (rc == 0 && (rc = uni_calls_read(c, &e, &nr)) == 1) {
		for (rc = 0; nr != 0 && found < max; e++, nr--)
			ret[found++] = uni_funcs_address(funcs, e->func);
	}
	uni_calls_close(c);
	uni_funcs_destroy(funcs);
	return rc;
}

/* Whichever allocation fails: the reader says so, or its functions are the right ones. */
static void reader(void **state)
{
	uint64_t want[512], got[512];
	struct make m;
	bool all = false;
	int said = 0;

	(void)state;
	many_calls(&m);
	assert_int_equal(read_addresses(&m.in, want, 512), 0);
	for (uint64_t n = 1; !all; n++) {
		int rc;

		no_memory_begin(n);
		rc = read_addresses(&m.in, got, 512);
		all = !no_memory_end();
		if (rc == 0)
			assert_memory_equal(got, want, sizeof(want));
		else
			assert_int_equal(rc, -UNI_ENOMEM);
		said += rc != 0;
	}
	assert_true(said > 10);
	make_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(too_many),
		cmocka_unit_test(no_memory),
		cmocka_unit_test(reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
