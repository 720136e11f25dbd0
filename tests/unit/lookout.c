/* SPDX-License-Identifier: BSD-2-Clause */
/* Images that come while a made guest is sampled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../support/loaded.h"
#include "base/clock.h"
#include "sampling/lookout.h"

#define BIAS	0x10000000ull
#define STEP_NS 50000u

struct seen {
	unsigned nr;
	struct uni_located last;
};

static void on_image(void *ctx, const struct uni_located *image)
{
	struct seen *s = ctx;

	s->nr++;
	s->last = *image;
}

static struct uni_lookout *start(struct world *w, struct seen *seen, struct uni_located *missing)
{
	const struct uni_sysroot *const *roots = (const struct uni_sysroot *const *)&w->root;
	const struct uni_lookout_cfg cfg = { .gmem = w->g.m,
		.arch = &uni_arch_x86_64,
		.sysroot = roots,
		.nr_sysroots = w->root != NULL,
		.list = missing,
		.nr = missing != NULL,
		.on_image = on_image,
		.ctx = seen };
	struct uni_lookout *l = NULL;

	assert_int_equal(uni_lookout_create(&cfg, &l, &w->err), 0);
	return l;
}

/* As the sampler does, until there is an image or the time is over. */
static void go_on(struct world *w, struct uni_lookout *l, const struct seen *seen, uint64_t ns)
{
	uint64_t until_ns = uni_now_ns() + ns;
	unsigned before = seen->nr;

	while (seen->nr == before && uni_now_ns() < until_ns)
		uni_lookout_go_on(l, w->regs, 2, STEP_NS);
}

static void test_unknown_address(void **state)
{
	const uint64_t pc[] = { LINK + BIAS + 4096 };
	struct seen seen = { 0 };
	struct world *w = *state;
	struct uni_lookout *l;

	write_file(w, "app", w->file);
	assert_int_equal(uni_sysroot_open(w->dir, &w->root, &w->err), 0);
	l = start(w, &seen, NULL);
	map_image(w, BIAS, 0, true);
	go_on(w, l, &seen, 100 * UNI_NSEC_PER_MSEC);
	assert_int_equal(seen.nr, 0); /* nobody asked for it */
	uni_lookout_saw(l, pc, 1);
	go_on(w, l, &seen, 5 * UNI_NSEC_PER_SEC);
	assert_int_equal(seen.nr, 1);
	assert_true(seen.last.owned);
	assert_int_equal(seen.last.bias, BIAS);
	/* A known program is not looked for again. */
	uni_lookout_saw(l, pc, 1);
	go_on(w, l, &seen, 1500 * UNI_NSEC_PER_MSEC);
	assert_int_equal(seen.nr, 1);
	uni_lookout_destroy(l);
	uni_image_destroy(seen.last.image);
}

/* A file that was named and not there; it stays its owner's. */
static void test_missing_file(void **state)
{
	const uint64_t pc[] = { 0x1234 };
	struct seen seen = { 0 };
	struct world *w = *state;
	struct uni_lookout *l;

	w->list[w->nr++].image = load(w->file);
	l = start(w, &seen, &w->list[0]);
	uni_lookout_saw(l, pc, 1);
	go_on(w, l, &seen, 20 * UNI_NSEC_PER_MSEC); /* in vain */
	map_image(w, BIAS, 0, true);
	uni_lookout_saw(l, pc, 1);
	go_on(w, l, &seen, 8 * UNI_NSEC_PER_SEC);
	assert_int_equal(seen.nr, 1);
	assert_false(seen.last.owned);
	assert_ptr_equal(seen.last.image, w->list[0].image);
	uni_lookout_destroy(l);
}

static void test_packets(void **state)
{
	struct world *w = *state;
	struct uni_lookout_cfg cfg = { .gmem = w->g.m };
	struct uni_lookout *l = NULL;

	uni_gmem_set_granule(w->g.m, 256);
	assert_int_equal(uni_lookout_create(&cfg, &l, &w->err), -UNI_ENOTSUP);
	assert_null(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unknown_address, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_missing_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_packets, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
