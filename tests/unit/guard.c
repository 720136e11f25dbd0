/* SPDX-License-Identifier: BSD-2-Clause */
/* Stops that are let go and tried again, and writes that are refused, on a target that is not
 * there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/vcpus.h"
#include "base/checked.h"
#include "backend/guard.h"
#include "backend/patch.h"

struct fake {
	struct uni_target t;
	unsigned fail; /* snaps that come to nothing */
	uint64_t stood_ns[4];
	unsigned snaps, brief, releases, writes;
};

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fake *f = (struct fake *)t;
	unsigned i = f->snaps++;

	(void)set;
	(void)ret;
	assert_true(flags & UNI_SNAP_HOLD);
	f->brief += (flags & UNI_SNAP_BRIEF) != 0;
	if (i >= f->fail)
		return 0;
	t->stood_ns = f->stood_ns[i % 4];
	return -UNI_EAGAIN;
}

static int fake_release(struct uni_target *t)
{
	((struct fake *)t)->releases++;
	return 0;
}

static unsigned fake_caps(struct uni_target *t)
{
	(void)t;
	return UNI_CAP_WRITE_TEXT;
}

static int fake_write(struct uni_target *t, struct uni_patch_job *job)
{
	(void)job;
	((struct fake *)t)->writes++;
	return 0;
}

#define OPS .snap = fake_snap, .release = fake_release, .caps = fake_caps, .write_text = fake_write
static const struct uni_target_ops ops = { OPS };
static const struct uni_target_ops stops_others = { OPS, .write_stops_left_off = true };

/* The longest of the stops that came to nothing is told, and only the last one is held. */
static void test_tries_again(void **state)
{
	struct fake f = { .t.ops = &ops, .fail = 3, .stood_ns = { 100, 400, 200 } };
	struct uni_regs regs[2];
	struct uni_pause p;

	(void)state;
	assert_int_equal(uni_pause_begin_brief(&p, &f.t, VCPUS(3), regs), 0);
	assert_int_equal(f.snaps, 4);
	assert_int_equal(f.brief, 4);
	assert_int_equal(p.tried_ns, 400);
	assert_int_equal(f.releases, 0);
	assert_int_equal(uni_pause_end(&p), 0);
	assert_int_equal(f.releases, 1);
	assert_true(p.end_ns >= p.begin_ns);
}

static int leave_early(struct uni_target *t)
{
	_cleanup_pause_ struct uni_pause p;
	struct uni_regs regs[2];
	int rc = uni_pause_begin(&p, t, VCPUS(3), regs);

	return rc != 0 ? rc : 1;
}

/* A function that returns in a pause has ended it; a pause that failed has no end. */
static void test_ends_with_its_scope(void **state)
{
	struct fake f = { .t.ops = &ops, .fail = 1 };

	(void)state;
	assert_int_equal(leave_early(&f.t), -UNI_EAGAIN);
	assert_int_equal(f.releases, 0);
	assert_int_equal(leave_early(&f.t), 1);
	assert_int_equal(f.releases, 1);
}

/* In the end the others stand for the one that is late. */
static void test_waits_at_last(void **state)
{
	struct fake f = { .t.ops = &ops, .fail = UINT32_MAX };
	struct uni_regs regs[2];
	struct uni_pause p;

	(void)state;
	assert_int_equal(uni_pause_begin_brief(&p, &f.t, VCPUS(3), regs), -UNI_EAGAIN);
	assert_true(f.brief > 1);
	assert_int_equal(f.snaps, f.brief + 1);
	assert_null(p.t);
}

/* A sampler waits: its samples say how long that took. */
static void test_plain(void **state)
{
	struct fake f = { .t.ops = &ops, .fail = 1, .stood_ns = { 5 } };
	struct uni_regs regs[2];
	struct uni_pause p;

	(void)state;
	assert_int_equal(uni_pause_begin(&p, &f.t, VCPUS(3), regs), -UNI_EAGAIN);
	assert_int_equal(f.snaps, 1);
	assert_int_equal(f.brief, 0);
}

/* If one vCPU of a guest is not held, nothing is written, unless the backend stops it too.
 */
static void test_writes_with_all_held_only(void **state)
{
	const struct uni_patch patch = { .va = 4096, .gpa = 4096, .len = 1, .new_bytes = { 0x90 } };
	struct uni_patch_job job = { .patch = &patch, .nr = 1 };
	struct fake f = { .t.ops = &ops };

	(void)state;
	assert_true(uni_patch_allowed(&f.t));
	assert_int_equal(uni_patch_run(&f.t, &job), 0);
	assert_int_equal(f.writes, 1);
	f.t.nr_left_off = 1;
	assert_false(uni_patch_allowed(&f.t));
	assert_int_equal(uni_patch_run(&f.t, &job), -UNI_ENOTSUP);
	assert_int_equal(f.writes, 1);
	f.t.ops = &stops_others;
	assert_true(uni_patch_allowed(&f.t));
	assert_int_equal(uni_patch_run(&f.t, &job), 0);
	assert_int_equal(f.writes, 2);
}

/* Against a plain array, for every size. */
static void test_sets(void **state)
{
	(void)state;
	for (uint32_t nr = 0; nr <= UNI_VCPU_MAX; nr++) {
		struct uni_vcpuset all = uni_vcpuset_first(nr), last = uni_vcpuset_one(nr);
		uint32_t has = 0;

		for (uint32_t i = 0; i <= UNI_VCPU_MAX; i++) {
			assert_int_equal(uni_vcpuset_has(&all, i), i < nr);
			assert_int_equal(uni_vcpuset_has(&last, i), i == nr && i < UNI_VCPU_MAX);
			has += uni_vcpuset_has(&all, i);
		}
		assert_int_equal(uni_vcpuset_count(&all), has);
		assert_int_equal(uni_vcpuset_fits(&all, nr), nr != 0);
		assert_int_equal(uni_vcpuset_fits(&last, nr), false);
		assert_int_equal(uni_vcpuset_fits(&last, nr + 1), nr < UNI_VCPU_MAX);
		uni_vcpuset_add(&all, nr);
		assert_int_equal(uni_vcpuset_count(&all), uni_min(nr + 1, UNI_VCPU_MAX));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tries_again),
		cmocka_unit_test(test_ends_with_its_scope),
		cmocka_unit_test(test_waits_at_last),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_writes_with_all_held_only),
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
