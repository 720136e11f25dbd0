/* SPDX-License-Identifier: BSD-2-Clause */
/* The times at which somebody holds a guest, as gaps of its recording. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "app/standing.h"
#include "base/clock.h"

static unsigned caps(struct uni_target *t)
{
	return 0;
}

static void tell_nothing(struct uni_target *t, struct uni_target_info *ret)
{
	*ret = (struct uni_target_info){ .pid = 1 };
}

static bool is_awake(void *ctx)
{
	return *(const bool *)ctx;
}

static const struct uni_target_ops ops = { .caps = caps, .info = tell_nothing };

struct fixture {
	struct uni_target target;
	struct uni_guest guest;
	struct uni_record_meta meta;
	struct uni_standing s;
	bool awake;
};

static int set_up(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.target.ops = &ops;
	f.guest.t = &f.target;
	f.s = (struct uni_standing){ .g = &f.guest,
		.name = "",
		.meta = &f.meta,
		.quiet = true,
		.awake = is_awake,
		.ctx = &f.awake };
	*state = &f;
	return 0;
}

/* Held until it goes on, and again until the recording ends. */
static void times_are_gaps(void **state)
{
	struct fixture *f = *state;
	uint64_t began_ns = uni_now_ns(), end_ns;

	f->awake = true;
	uni_standing_look(&f->s);
	f->awake = false;
	uni_standing_look(&f->s);
	assert_int_equal(f->meta.nr_gap, 0);
	f->awake = true;
	uni_standing_look(&f->s);
	assert_int_equal(f->meta.nr_gap, 1);
	f->awake = false;
	uni_standing_look(&f->s);
	end_ns = uni_now_ns() + 1;
	uni_standing_end(&f->s, end_ns);
	assert_int_equal(f->meta.nr_gap, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct uni_record_gap *gap = &f->meta.gap[i];

		assert_int_equal(gap->held, UNI_HELD_VMM);
		assert_true(gap->begin_ns >= began_ns && gap->begin_ns < gap->end_ns);
		began_ns = gap->end_ns;
	}
	assert_true(f->meta.gap[1].end_ns == end_ns);
	/* It has ended: nothing more. */
	uni_standing_end(&f->s, end_ns + 1);
	assert_int_equal(f->meta.nr_gap, 2);
}

/* Nobody held it; or the end is before that. */
static void no_gap(void **state)
{
	struct fixture *f = *state;

	f->awake = true;
	uni_standing_look(&f->s);
	uni_standing_end(&f->s, uni_now_ns() + 1);
	assert_int_equal(f->meta.nr_gap, 0);
	f->awake = false;
	uni_standing_look(&f->s);
	uni_standing_end(&f->s, f->s.since_ns);
	assert_int_equal(f->meta.nr_gap, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(times_are_gaps, set_up),
		cmocka_unit_test_setup(no_gap, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
