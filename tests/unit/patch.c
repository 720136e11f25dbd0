/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of a job before anything is stopped, what is read and written together, and vCPUs that
 * are among the instructions of a place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "backend/patch.h"

#define LEN 5u
#define MAX 64u /* bytes of an extent */

static unsigned writes;

static unsigned patch_caps(struct uni_target *t)
{
	return UNI_CAP_WRITE_TEXT;
}

static int patch_write(struct uni_target *t, struct uni_patch_job *job)
{
	writes++;
	return 0;
}

static const struct uni_target_ops patch_ops = { .caps = patch_caps, .write_text = patch_write };

static struct uni_patch place(uint64_t at, uint8_t len)
{
	struct uni_patch p = { .va = at, .gpa = at, .len = len };

	memset(p.old_bytes, 0x90, sizeof(p.old_bytes));
	memset(p.new_bytes, 0xcc, sizeof(p.new_bytes));
	return p;
}

static int run_two(struct uni_patch a, struct uni_patch b, size_t *bad_ret)
{
	const struct uni_patch both[] = { a, b };
	struct uni_target t = { .ops = &patch_ops };
	struct uni_patch_job job = { .patch = both, .nr = 2 };
	int rc;

	writes = 0;
	rc = uni_patch_run(&t, &job);
	*bad_ret = job.bad;
	assert_int_equal(writes, rc == 0);
	return rc;
}

static void places_rise_and_do_not_overlap(void **state)
{
	size_t bad;

	for (uint64_t at = 90; at <= 110; at++) {
		int rc = run_two(place(100, LEN), place(at, LEN), &bad);

		assert_int_equal(rc, at >= 100 + LEN ? 0 : -UNI_EINVAL);
		assert_int_equal(bad, rc != 0);
	}
}

static void places_are_places(void **state)
{
	size_t bad;

	assert_int_equal(run_two(place(1, 1), place(9, UNI_PATCH_BYTES), &bad), 0);
	assert_int_equal(run_two(place(1, 0), place(9, 1), &bad), -UNI_EINVAL);
	assert_int_equal(bad, 0);
	assert_int_equal(run_two(place(1, 1), place(9, UNI_PATCH_BYTES + 1), &bad), -UNI_EINVAL);
	assert_int_equal(bad, 1);
	assert_int_equal(run_two(place(1, 1), place(UINT64_MAX - 3, 4), &bad), 0);
	assert_int_equal(run_two(place(1, 1), place(UINT64_MAX - 3, 5), &bad), -UNI_EINVAL);
}

static void some_targets_are_not_written(void **state)
{
	static const struct uni_target_ops cannot = { .caps = patch_caps };
	static const struct uni_target_ops all = {
		.caps = patch_caps, .write_text = patch_write, .write_stops_left_off = true
	};
	struct uni_target t = { .ops = &patch_ops };

	assert_true(uni_patch_allowed(&t));
	t.nr_left_off = 1;
	assert_false(uni_patch_allowed(&t));
	t.ops = &all;
	assert_true(uni_patch_allowed(&t));
	t.ops = &cannot;
	assert_false(uni_patch_allowed(&t));
}

/* Whether a vCPU at this offset from the place is among its instructions. */
static bool is_within(int64_t offset, bool pieces)
{
	const struct uni_patch other = place(50, LEN);
	struct uni_patch both[] = { other, place(100, LEN) };
	struct uni_patch_job job = { .patch = both, .nr = 2 };
	struct uni_regs regs = { .pc = (uint64_t)(100 + offset) };
	struct uni_patch_plan p;
	bool hit;

	both[1].pieces = pieces;
	assert_int_equal(uni_patch_plan(&job, MAX, &p), 0);
	hit = uni_patch_hit(&p, &regs);
	uni_patch_plan_deinit(&p);
	return hit;
}

static void vcpus_are_among_pieces(void **state)
{
	for (int64_t offset = -60; offset < 60; offset++) {
		assert_int_equal(is_within(offset, true), offset > 0 && offset < LEN);
		assert_false(is_within(offset, false));
	}
}

/* Places that are near each other are one extent: at most MAX bytes, in at most two pages. */
static void near_places_go_together(void **state)
{
	static const struct {
		uint64_t a, b;
		size_t nr, size;
	} c[] = {
		{ 100, 105, 1, 10 },
		{ 100, 100 + MAX - LEN, 1, MAX },
		{ 100, 100 + MAX - LEN + 1, 2, 2 * LEN },
		{ 4090, 4096, 1, 11 },
		{ 4093, 4098, 1, 10 },
	};

	for (size_t i = 0; i < uni_array_len(c); i++) {
		const struct uni_patch both[] = { place(c[i].a, LEN), place(c[i].b, LEN) };
		struct uni_patch_job job = { .patch = both, .nr = 2 };
		struct uni_patch_plan p;

		assert_int_equal(uni_patch_plan(&job, MAX, &p), 0);
		assert_int_equal(p.nr, c[i].nr);
		assert_int_equal(p.size, c[i].size);
		assert_ptr_equal(uni_patch_was(&p, 0), p.was);
		assert_ptr_equal(uni_patch_was(&p, 1), p.was + p.size - LEN);
		uni_patch_plan_deinit(&p);
	}
}

static void bytes_are_as_expected(void **state)
{
	struct uni_patch both[] = { place(100, LEN), place(110, LEN) };
	struct uni_patch_job job = { .patch = both, .nr = 2 };
	struct uni_patch_plan p;

	assert_int_equal(uni_patch_plan(&job, MAX, &p), 0);
	memset(p.was, 0x90, p.size);
	memset(p.was + LEN, 0x11, 10 - LEN); /* between them */
	assert_int_equal(uni_patch_apply(&p), 0);
	assert_int_equal(job.nr_written, 2);
	for (size_t i = 0; i < p.size; i++)
		assert_int_equal(p.want[i], i >= LEN && i < 10 ? 0x11 : 0xcc);
	/* One has its new bytes; then a byte is neither. */
	memset(p.was, 0xcc, LEN);
	assert_int_equal(uni_patch_apply(&p), 0);
	assert_int_equal(job.nr_written, 1);
	p.was[10 + LEN - 1] = 0x91;
	assert_int_equal(uni_patch_apply(&p), -UNI_EMISMATCH);
	assert_int_equal(job.bad, 1);
	both[1].any = true;
	assert_int_equal(uni_patch_apply(&p), 0);
	assert_int_equal(job.nr_written, 0);
	assert_int_equal(p.want[10 + LEN - 1], 0xcc);
	uni_patch_plan_deinit(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_rise_and_do_not_overlap),
		cmocka_unit_test(places_are_places),
		cmocka_unit_test(some_targets_are_not_written),
		cmocka_unit_test(vcpus_are_among_pieces),
		cmocka_unit_test(near_places_go_together),
		cmocka_unit_test(bytes_are_as_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
