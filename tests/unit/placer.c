/* SPDX-License-Identifier: BSD-2-Clause */
/* An image is placed by return addresses: this program's own, of its own stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <link.h>

#include "base/checked.h"
#include "sampling/placer.h"

#define NOINLINE __attribute__((noinline))

static uint64_t called[16];
static size_t nr_called;

/* A function that has its caller's return address noted. */
NOINLINE static void note_caller(void)
{
	assert_in_range(nr_called, 0, uni_array_len(called) - 1);
	called[nr_called++] = (uint64_t)(uintptr_t)__builtin_return_address(0);
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void call_one(void)
{
	note_caller();
	__asm__ volatile("" ::: "memory");
}

NOINLINE static void call_many(void)
{
	note_caller();
	__asm__ volatile("");
	note_caller();
	__asm__ volatile("nop");
	note_caller();
	__asm__ volatile("nop; nop");
	note_caller();
	__asm__ volatile("nop; nop; nop");
	note_caller();
	__asm__ volatile("nop; nop; nop; nop");
	note_caller();
	call_one();
	note_caller();
	__asm__ volatile("" ::: "memory");
}

static int take_bias(struct dl_phdr_info *info, size_t size, void *ctx)
{
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1; /* the first one is the program */
}

struct own {
	struct uni_image *img;
	struct uni_placer *p;
	uint64_t bias;
};

static int load_own(void **state)
{
	static struct own own;

	assert_int_equal(uni_image_load("/proc/self/exe", &own.img, NULL), 0);
	(void)dl_iterate_phdr(take_bias, &own.bias);
	nr_called = 0;
	call_many();
	assert_int_equal(uni_placer_create(own.img, &own.p, NULL), 0);
	*state = &own;
	return 0;
}

static int free_own(void **state)
{
	struct own *own = *state;

	uni_placer_destroy(own->p);
	uni_image_destroy(own->img);
	return 0;
}

static void see_own(struct own *own, uint64_t off)
{
	for (size_t i = 0; i < nr_called; i++)
		(void)uni_placer_saw(own->p, called[i] + off);
}

static void found_by_its_calls(void **state)
{
	struct own *own = *state;
	struct uni_placed at;
	uint64_t bias = 1;

	see_own(own, 0);
	/* Others are of no image that is known, and lie farther apart than this one is long. */
	for (uint64_t i = 0; i < 100; i++)
		(void)uni_placer_saw(own->p, UINT64_C(0x600000000123) + i * 0x20110f3);
	assert_true(uni_placer_find(own->p, &bias, &at));
	assert_int_equal(bias, own->bias);
	assert_int_equal(at.inside, nr_called);
	assert_int_equal(at.behind, nr_called);
}

static void moved_with_them(void **state)
{
	struct own *own = *state;
	struct uni_placed at;
	uint64_t bias = 1;

	see_own(own, 0x7000);
	assert_true(uni_placer_find(own->p, &bias, &at));
	assert_int_equal(bias, own->bias + 0x7000);
}

/* An address that has come already is no news. */
static void too_few_do_not_tell(void **state)
{
	struct own *own = *state;
	struct uni_placed at;
	uint64_t bias = 1;

	for (unsigned i = 0; i < 100; i++) {
		assert_false(uni_placer_saw(own->p, called[0]));
		assert_false(uni_placer_saw(own->p, called[1]));
	}
	assert_false(uni_placer_find(own->p, &bias, &at));
	assert_int_equal(bias, 1);
	assert_true(uni_placer_saw(own->p, called[2]));
}

/* Another build: what is behind calls there is not here. */
static void addresses_behind_no_call(void **state)
{
	struct own *own = *state;
	struct uni_placed at;
	uint64_t bias = 1;

	see_own(own, 1);
	assert_false(uni_placer_find(own->p, &bias, &at));
	uni_placer_count(own->p, own->bias, &at);
	assert_int_equal(at.inside, nr_called);
	assert_in_range(at.behind, 0, nr_called / 2);
	/* With the right ones beside, a half is not enough either. */
	see_own(own, 0);
	assert_false(uni_placer_find(own->p, &bias, &at));
}

/* More than there is room for: the first ones count. */
static void too_many_are_left_out(void **state)
{
	struct own *own = *state;
	struct uni_placed at;
	uint64_t bias = 1;

	see_own(own, 0);
	for (uint64_t i = 0; i < 100000; i++)
		(void)uni_placer_saw(own->p, UINT64_C(0x600000000123) + i * 0x20110f3);
	assert_true(uni_placer_find(own->p, &bias, &at));
	assert_int_equal(bias, own->bias);
	assert_false(uni_placer_saw(own->p, called[0] + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(found_by_its_calls, load_own, free_own),
		cmocka_unit_test_setup_teardown(moved_with_them, load_own, free_own),
		cmocka_unit_test_setup_teardown(too_few_do_not_tell, load_own, free_own),
		cmocka_unit_test_setup_teardown(addresses_behind_no_call, load_own, free_own),
		cmocka_unit_test_setup_teardown(too_many_are_left_out, load_own, free_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
