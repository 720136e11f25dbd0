/* SPDX-License-Identifier: BSD-2-Clause */
/* The display of `top`, fed by hand: no guest, no terminal. */
#include "top/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/clock.h"
#include "top/batch.h"
#include "top/say.h"
#include "obj/usym.h"
#include "profile/focus.h"

#define SEC UNI_NSEC_PER_SEC

/* Made-up functions; pc(i) is an address inside of number i. */
static const char *const names[] = { "main", "Work_a", "work_b", "leaf", "halt" };
enum { MAIN, WORK_A, WORK_B, LEAF, HALT };

static uint64_t pc(unsigned i)
{
	return UNI_NAMES_BASE + i * UNI_NAMES_STEP + 4;
}

struct fixture {
	struct uni_symtab *symtab;
	struct uni_build_guest guest;
	struct uni_top top;
	struct uni_feed_status status;
};

static int setup(void **state)
{
	static const uint32_t first_vcpu[] = { 0, 2 };
	struct fixture *f = calloc(1, sizeof(*f));
	struct uni_top_setup s = { .memory_bytes = 1 << 20, .start_ns = 100 * SEC };

	assert_non_null(f);
	assert_int_equal(
		uni_symtab_of_names("x", names, uni_array_len(names), &f->symtab, NULL), 0);
	f->guest = (struct uni_build_guest){ .symtab = f->symtab, .image_path = "x" };
	s.guests =
		(struct uni_live_guests){ .guest = &f->guest, .first_vcpu = first_vcpu, .nr = 1 };
	assert_int_equal(uni_top_init(&f->top, &s), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	uni_top_deinit(&f->top);
	uni_symtab_destroy(f->symtab);
	free(f);
	return 0;
}

static uint8_t chain_flags[16];

/* Leaf first. */
static void feed(struct fixture *f, uint64_t t_ns, uint32_t vcpu, uint8_t state, uint64_t weight,
	const unsigned *fn, uint16_t nr)
{
	uint64_t at[16];
	struct uni_sample s = { .t_ns = t_ns,
		.weight = weight,
		.vcpu = vcpu,
		.state = state,
		.stop = UNI_STOP_ROOT,
		.nr = nr,
		.pc = at,
		.flags = chain_flags };

	for (uint16_t i = 0; i < nr; i++)
		at[i] = pc(fn[i]);
	uni_top_add(&f->top, &s);
}

#define FEED(f, t, vcpu, state, weight, ...)                               \
	feed(f, t, vcpu, state, weight, (const unsigned[]){ __VA_ARGS__ }, \
		(uint16_t)(sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned)))

static void feed_usual(struct fixture *f)
{
	FEED(f, 101 * SEC, 0, UNI_VCPU_RUNNING, 60, WORK_A, MAIN);
	FEED(f, 105 * SEC, 0, UNI_VCPU_RUNNING, 30, LEAF, WORK_B, MAIN);
	FEED(f, 108 * SEC, 1, UNI_VCPU_RUNNING, 10, LEAF, MAIN);
	FEED(f, 109 * SEC, 1, UNI_VCPU_HALTED, 100, HALT, MAIN);
}

static void refresh(struct fixture *f, uint64_t now_ns)
{
	assert_int_equal(uni_top_refresh(&f->top, now_ns, &f->status), 0);
}

/* "NAME SELF TOTAL; ..." in order. */
static void assert_rows(const struct uni_top *top, const char *want)
{
	_cleanup_strbuf_ struct uni_strbuf b;

	uni_strbuf_init(&b);
	for (size_t i = 0; i < top->nr_rows; i++)
		uni_strbuf_addf(&b, "%s %g %g; ", uni_top_row_name(top, i), top->rows[i].self,
			top->rows[i].total);
	assert_string_equal(b.s, want);
}

static void assert_calls(const struct uni_top *top, const char *want)
{
	_cleanup_strbuf_ struct uni_strbuf b;

	uni_strbuf_init(&b);
	for (size_t i = 1; i < top->outline.lines.nr; i++) {
		const struct uni_outline_line *l = &top->outline.lines.v[i];

		uni_strbuf_addf(&b, "%u %s %g; ", l->depth,
			uni_profile_node_name(top->focus, l->node),
			uni_profile_node(top->focus, l->node)->total);
	}
	assert_string_equal(b.s, want);
}

static void test_sort(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	refresh(f, 110 * SEC);
	assert_rows(&f->top, "Work_a 60 60; leaf 40 40; main 0 100; work_b 0 30; ");
	f->top.sort = UNI_LIVE_TOTAL;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "main 0 100; Work_a 60 60; leaf 40 40; work_b 0 30; ");
	f->top.sort = UNI_LIVE_NAME;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "Work_a 60 60; leaf 40 40; main 0 100; work_b 0 30; ");
	assert_true(uni_top_percent(&f->top, 60) == 60.0);
}

static void test_filter(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	memcpy(f->top.filter, "WORK", 5);
	refresh(f, 110 * SEC);
	assert_rows(&f->top, "Work_a 60 60; work_b 0 30; ");
	/* Shares are still of everything. */
	assert_true(uni_top_percent(&f->top, f->top.rows[0].self) == 60.0);
}

static void test_window(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	f->top.window_ns = 3 * SEC;
	refresh(f, 110 * SEC);
	assert_rows(&f->top, "leaf 10 10; main 0 10; ");
	f->top.window_ns = 6 * SEC;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "leaf 40 40; main 0 40; work_b 0 30; ");
	f->top.window_ns = 0;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "Work_a 60 60; leaf 40 40; main 0 100; work_b 0 30; ");
	/* Time goes on without samples. */
	f->top.window_ns = 3 * SEC;
	refresh(f, 120 * SEC);
	assert_rows(&f->top, "");
	assert_int_equal(f->top.selected, SIZE_MAX);
	/* Nothing of before counts any more. */
	f->top.window_ns = 0;
	uni_top_clear(&f->top, 120 * SEC);
	refresh(f, 121 * SEC);
	assert_rows(&f->top, "");
	FEED(f, 121 * SEC, 0, UNI_VCPU_RUNNING, 1, MAIN);
	refresh(f, 122 * SEC);
	assert_rows(&f->top, "main 1 1; ");
}

static void test_idle_and_vcpu(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	f->top.idle = true;
	refresh(f, 110 * SEC);
	assert_string_equal(uni_top_row_name(&f->top, 0), "[idle]");
	f->top.vcpu = 1;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "[idle] 100 100; leaf 10 10; main 0 110; halt 0 100; ");
	f->top.idle = false;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "leaf 10 10; main 0 10; ");
	/* The vCPUs' times do not depend on what is shown. */
	assert_true(f->top.vcpus[0].guest == 1.0 && f->top.vcpus[0].idle == 0.0);
	assert_float_equal(f->top.vcpus[1].idle, 100.0 / 110.0, 1e-9);
	assert_true(f->top.vcpus[1].stolen < 0.0 && f->top.vcpus[1].exits < 0.0);
}

/* Equal addresses of two guests are two functions, below the names of the guests. */
static void test_two_guests(void **state)
{
	static const char *const other[] = { "first", "second" };
	static const uint32_t first_vcpu[] = { 0, 2, 3 };
	static const uint8_t flags[1];
	const uint64_t at = pc(1);
	struct uni_sample s = { .t_ns = 101 * SEC,
		.weight = 3,
		.guest = 1,
		.nr = 1,
		.pc = &at,
		.flags = flags,
		.stop = UNI_STOP_ROOT };
	struct fixture *f = *state;
	struct uni_build_guest guest[2] = { f->guest, f->guest };
	struct uni_symtab *symtab;

	assert_int_equal(uni_symtab_of_names("y", other, 2, &symtab, NULL), 0);
	guest[0].root = "g0";
	guest[1].root = "g1";
	guest[1].symtab = symtab;
	f->top.setup.guests = (struct uni_live_guests){ guest, first_vcpu, 2 };
	FEED(f, 101 * SEC, 1, UNI_VCPU_RUNNING, 2, WORK_A, MAIN);
	uni_top_add(&f->top, &s);
	s.guest = 2; /* there is none */
	uni_top_add(&f->top, &s);
	refresh(f, 110 * SEC);
	assert_rows(&f->top, "second 3 3; Work_a 2 2; g1 0 3; g0 0 2; main 0 2; ");
	assert_int_equal(uni_top_nr_vcpus(&f->top), 3);
	assert_true(f->top.vcpus[0].guest < 0.0);
	assert_true(f->top.vcpus[1].guest == 1.0 && f->top.vcpus[2].guest == 1.0);
	assert_int_equal(uni_top_place(&f->top, 1).guest, 0);
	assert_int_equal(uni_top_place(&f->top, 2).guest, 1);
	assert_int_equal(uni_top_place(&f->top, 2).vcpu, 0);
	f->top.guest = 0;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "Work_a 2 2; g0 0 2; main 0 2; ");
	f->top.setup.guests.guest = &f->guest;
	uni_symtab_destroy(symtab);
}

static void test_frozen(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	refresh(f, 110 * SEC);
	f->top.frozen_ns = f->top.shown_ns;
	FEED(f, 111 * SEC, 0, UNI_VCPU_RUNNING, 1000, HALT, MAIN);
	refresh(f, 112 * SEC);
	assert_rows(&f->top, "Work_a 60 60; leaf 40 40; main 0 100; work_b 0 30; ");
	/* Other windows are those of the frozen moment. */
	f->top.window_ns = 3 * SEC;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_rows(&f->top, "leaf 10 10; main 0 10; ");
	f->top.frozen_ns = 0;
	refresh(f, 112 * SEC);
	assert_rows(&f->top, "halt 1000 1000; main 0 1000; ");
}

static void test_selection_follows_the_function(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	refresh(f, 110 * SEC);
	/* At first it is the hottest, whichever that is. */
	assert_int_equal(f->top.selected, 0);
	assert_string_equal(f->top.selected_name, "Work_a");
	FEED(f, 110 * SEC, 0, UNI_VCPU_RUNNING, 1000, LEAF, WORK_B, MAIN);
	refresh(f, 111 * SEC);
	assert_int_equal(f->top.selected, 0);
	assert_string_equal(f->top.selected_name, "leaf");
	/* Once chosen, it stays. */
	assert_int_equal(uni_top_select(&f->top, 1), 0);
	assert_string_equal(f->top.selected_name, "Work_a");
	f->top.sort = UNI_LIVE_TOTAL;
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_string_equal(uni_top_row_name(&f->top, f->top.selected), "Work_a");
	assert_int_equal(f->top.selected, 3);
	/* Filtered away it is not on the list, but its calls are still shown. */
	memcpy(f->top.filter, "leaf", 5);
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_int_equal(f->top.selected, SIZE_MAX);
	assert_calls(&f->top, "1 Work_a 60; ");
	f->top.filter[0] = '\0';
	assert_int_equal(uni_top_again(&f->top), 0);
	assert_int_equal(f->top.selected, 3);
	assert_int_equal(uni_top_select(&f->top, SIZE_MAX), 0);
	assert_int_equal(f->top.selected, 0);
}

static void test_calls(void **state)
{
	struct fixture *f = *state;

	feed_usual(f);
	refresh(f, 110 * SEC);
	assert_int_equal(uni_top_select_name(&f->top, "main"), 0);
	assert_calls(&f->top, "1 main 100; 2 Work_a 60; 2 work_b 30; 3 leaf 30; 2 leaf 10; ");
	f->top.callers = true;
	assert_int_equal(uni_top_select_name(&f->top, "leaf"), 0);
	assert_calls(&f->top, "1 leaf 40; 2 work_b 30; 3 main 30; 2 main 10; ");
	assert_int_equal(uni_top_select_name(&f->top, "nobody"), 0);
	assert_calls(&f->top, "");
	/* From a line of the calls to its function. */
	assert_int_equal(uni_top_select_name(&f->top, "leaf"), 0);
	assert_int_equal(
		uni_top_select_frame(&f->top,
			uni_profile_node(f->top.focus, f->top.outline.lines.v[2].node)->frame),
		0);
	assert_string_equal(f->top.selected_name, "work_b");
	assert_calls(&f->top, "1 work_b 30; 2 main 30; ");
}

/* A stack with several calls of it counts once, whichever way it is looked at. */
static void test_recursion(void **state)
{
	struct fixture *f = *state;

	FEED(f, 101 * SEC, 0, UNI_VCPU_RUNNING, 8, LEAF, WORK_A, WORK_B, WORK_A, MAIN);
	FEED(f, 101 * SEC, 0, UNI_VCPU_RUNNING, 1, WORK_B, WORK_A, MAIN);
	refresh(f, 110 * SEC);
	assert_int_equal(uni_top_select_name(&f->top, "Work_a"), 0);
	assert_calls(&f->top, "1 Work_a 9; 2 work_b 9; 3 Work_a 8; 4 leaf 8; ");
	f->top.callers = true;
	assert_int_equal(uni_top_select_name(&f->top, "Work_a"), 0);
	assert_calls(&f->top, "1 Work_a 9; 2 work_b 8; 3 Work_a 8; 4 main 8; 2 main 1; ");
}

static void test_quality(void **state)
{
	struct fixture *f = *state;
	struct uni_record_stats *st = &f->status.stats;
	struct uni_say_parts p;

	feed_usual(f);
	f->status.at_ns = 110 * SEC;
	*st = (struct uni_record_stats){ .begin_ns = 100 * SEC,
		.end_ns = 110 * SEC,
		.samples = 1000,
		.weight = 2000, /* they stand for skipped deadlines, too */
		.ticks = 900,
		.skipped = 100,
		.lost = 3,
		.own_cpu_ns = 20000000,
		.pause = { .nr = 1000, .sum_ns = SEC / 10, .p50_ns = 20000, .p99_ns = 90000 } };
	f->status.dropped = 4;
	refresh(f, 110 * SEC);
	assert_float_equal(f->top.quality.rate, 100.0, 1e-9);
	uni_say_quality(&p, &f->top);
	assert_string_equal(p.v[0], "100 samples/s");
	assert_string_equal(p.v[1], "100.00% complete");
	assert_string_equal(p.v[2], "7 lost");
	assert_true(p.bad[2] && !p.bad[1]);
	assert_string_equal(p.v[3], "pauses 20 us, p99 90 us, 1.0%");
	assert_string_equal(p.v[4], "host 20 us/sample");
	assert_string_equal(p.v[5], "10.0% skipped");
	/* Rates are of the time since the last refresh. */
	st->samples = 1050;
	st->weight = 2100;
	f->status.at_ns = 112 * SEC;
	refresh(f, 112 * SEC);
	assert_float_equal(f->top.quality.rate, 25.0, 1e-9);
	assert_int_equal(f->top.quality.dropped, 4);
	/* No news: no new rate. */
	refresh(f, 113 * SEC);
	assert_float_equal(f->top.quality.rate, 25.0, 1e-9);
}

static void test_streams(void **state)
{
	struct fixture *f = *state;
	struct uni_vcpu_times *t = &f->status.vcpu[0].times;
	struct uni_say_parts p;

	feed_usual(f);
	f->status.streams = true;
	f->status.vcpu[0].timed = f->status.vcpu[1].timed = true;
	f->status.nr_vcpus = 2;
	f->status.stats.host_ns = 3000;
	f->status.stats.host_runs = 2;
	f->status.at_ns = 110 * SEC;
	f->status.stats.begin_ns = 100 * SEC;
	f->status.stats.weight = 200;
	*t = (struct uni_vcpu_times){ .guest_ns = 5 * SEC, .idle_ns = 5 * SEC };
	refresh(f, 110 * SEC);
	t->guest_ns += SEC;
	t->kvm_ns += SEC / 2;
	t->vmm_ns += SEC / 4;
	t->stolen_ns += SEC / 4;
	t->exits += 4000;
	t->split = true;
	f->status.at_ns = 112 * SEC;
	refresh(f, 112 * SEC);
	assert_float_equal(f->top.vcpus[0].guest, 0.5, 1e-9);
	assert_float_equal(f->top.vcpus[0].exits, 2000.0, 1e-6);
	uni_say_vcpu(&p, &f->top.vcpus[0]);
	assert_int_equal(p.nr, 6);
	assert_string_equal(p.v[0], "guest  50.0%");
	assert_string_equal(p.v[1], "idle   0.0%");
	assert_string_equal(p.v[2], "stolen  12.5%");
	assert_string_equal(p.v[3], "   2,000 exits/s");
	assert_string_equal(p.v[4], "kvm  25.0%");
	assert_string_equal(p.v[5], "vmm  12.5%");
	/* Without a sample, a busy vCPU was not "guest". */
	t->unsampled_ns += SEC;
	t->idle_ns += SEC;
	f->status.at_ns = 113 * SEC;
	refresh(f, 113 * SEC);
	uni_say_vcpu(&p, &f->top.vcpus[0]);
	assert_string_equal(p.v[0], "guest   0.0%");
	assert_string_equal(p.v[1], "not sampled  50.0%");
	assert_string_equal(p.v[2], "idle  50.0%");
	uni_say_quality(&p, &f->top);
	assert_string_equal(p.v[3], "never stopped");
	assert_string_equal(p.v[4], "host 1.5 us/sample");
	/* If a guest makes its own samples, their cost is no cost of the host. */
	f->status.inside = true;
	refresh(f, 114 * SEC);
	uni_say_quality(&p, &f->top);
	assert_string_equal(p.v[4], "guest's 1.5 us/sample");
	assert_true(f->top.quality.host_ns < 0.0);
}

/* Own CPU time by samples: from the first one on, and with none it is not known. */
static void test_cost_of_samples(void **state)
{
	struct fixture *f = *state;
	struct uni_record_stats *st = &f->status.stats;

	f->status.at_ns = 110 * SEC;
	st->own_cpu_ns = 1500;
	refresh(f, 110 * SEC);
	assert_true(f->top.quality.host_ns < 0.0);
	st->samples = 1;
	refresh(f, 111 * SEC);
	assert_float_equal(f->top.quality.host_ns, 1500.0, 1e-9);
	st->samples = 3;
	refresh(f, 112 * SEC);
	assert_float_equal(f->top.quality.host_ns, 500.0, 1e-9);
	assert_true(f->top.quality.guest_ns < 0.0);
}

/* A vCPU of the first of two guests comes later: those behind it keep what is known of them. */
static void test_plugged_in(void **state)
{
	static const uint32_t before[] = { 0, 2, 3 }, after[] = { 0, 3, 4 };
	struct fixture *f = *state;
	struct uni_build_guest guest[2] = { f->guest, f->guest };
	struct uni_feed_status *st = &f->status;

	guest[0].root = "g0";
	guest[1].root = "g1";
	memcpy(f->top.first_vcpu, before, sizeof(before));
	memcpy(st->first_vcpu, before, sizeof(before));
	f->top.setup.guests = (struct uni_live_guests){ guest, f->top.first_vcpu, 2 };
	st->at_ns = 110 * SEC;
	st->stats.begin_ns = 100 * SEC;
	st->nr_vcpus = 3;
	st->vcpu[0].timed = st->vcpu[1].timed = st->vcpu[2].timed = true;
	st->vcpu[2].times = (struct uni_vcpu_times){ .guest_ns = 10 * SEC, .exits = 50 };
	refresh(f, 110 * SEC);
	assert_int_equal(uni_top_nr_vcpus(&f->top), 3);
	memcpy(st->first_vcpu, after, sizeof(after));
	st->nr_vcpus = 4;
	st->vcpu[3].timed = true;
	st->vcpu[3].times =
		(struct uni_vcpu_times){ .guest_ns = 11 * SEC, .idle_ns = SEC, .exits = 70 };
	st->vcpu[2].times = (struct uni_vcpu_times){ .vmm_ns = SEC, .exits = 8 };
	st->at_ns = 112 * SEC;
	FEED(f, 111 * SEC, 2, UNI_VCPU_RUNNING, 2, WORK_A, MAIN);
	refresh(f, 112 * SEC);
	assert_int_equal(uni_top_nr_vcpus(&f->top), 4);
	assert_int_equal(uni_top_place(&f->top, 2).guest, 0);
	assert_int_equal(uni_top_place(&f->top, 3).guest, 1);
	assert_float_equal(f->top.vcpus[2].vmm, 1.0, 1e-9);
	assert_float_equal(f->top.vcpus[2].exits, 4.0, 1e-9);
	assert_float_equal(f->top.vcpus[3].guest, 0.5, 1e-9);
	assert_float_equal(f->top.vcpus[3].exits, 10.0, 1e-9);
	assert_int_equal(f->top.sums.state[2][UNI_VCPU_RUNNING], 2);
	f->top.setup.guests = (struct uni_live_guests){ &f->guest, f->top.first_vcpu, 1 };
}

static void test_memory_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct uni_history_info info;

	for (unsigned i = 0; i < 300000; i++)
		FEED(f, 101 * SEC + i, i % 2, UNI_VCPU_RUNNING, 1, i % 5, MAIN);
	uni_history_info(f->top.history, &info);
	assert_int_equal(info.seen, 300000);
	assert_in_range(info.kept, 10000, 20000);
	refresh(f, 110 * SEC);
	assert_float_equal(uni_profile_total(f->top.profile), 300000.0, 0.1);
	assert_int_equal(f->top.quality.dropped, 0);
}

static void test_batch(void **state)
{
	struct uni_batch_opts opts = { .guest = "g", .max_rows = 2, .tree = true };
	_cleanup_strbuf_ struct uni_strbuf b;
	struct fixture *f = *state;
	struct uni_sink *out = NULL;

	uni_strbuf_init(&b);
	feed_usual(f);
	refresh(f, 110 * SEC);
	assert_int_equal(uni_top_select_name(&f->top, "work_b"), 0);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_batch_text(&f->top, &opts, 7, out);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_string_equal(b.s,
		"g: snapshot 7, since the start, 10 s, by self, 100 % is the guest's time on "
		"a CPU\n"
		"0 samples/s, 100.00% complete, 0 lost, never stopped\n"
		"vCPU 0   busy 100.0%  idle   0.0%\n"
		"vCPU 1   busy   9.1%  idle  90.9%\n"
		"   SELF%  TOTAL%     SAMPLES  FUNCTION\n"
		"   60.00   60.00          60  Work_a\n"
		"   40.00   40.00          40  leaf\n"
		"     and 2 more\n"
		"calls of work_b\n"
		"   SELF%  TOTAL%  FUNCTION\n"
		"    0.00   30.00  work_b\n"
		"   30.00   30.00  leaf\n"
		"\n");
}

static void test_unsure(void **state)
{
	struct uni_batch_opts opts = { .guest = "g" };
	_cleanup_strbuf_ struct uni_strbuf b;
	struct fixture *f = *state;
	struct uni_sink *out = NULL;

	feed_usual(f);
	chain_flags[0] = UNI_FRAME_UNSURE;
	FEED(f, 101 * SEC, 0, UNI_VCPU_RUNNING, 9, LEAF);
	chain_flags[0] = 0;
	refresh(f, 110 * SEC);
	uni_strbuf_init(&b);
	assert_int_equal(uni_sink_open_strbuf(&b, &out), 0);
	uni_batch_text(&f->top, &opts, 7, out);
	uni_batch_json(&f->top, &opts, 8, out);
	assert_int_equal(uni_sink_close(out, NULL), 0);
	assert_non_null(strstr(b.s, "  leaf ~\n"));
	assert_non_null(strstr(b.s, "\n" UNI_UNSURE_MARK "  over 10 %"));
	assert_non_null(strstr(b.s, "\"unsure\":0.18367"));
}

static void test_nanoseconds(void **state)
{
	static const struct {
		double ns;
		const char *text;
	} want[] = { { 0, "0 ns" }, { 999, "999 ns" }, { 1060, "1.1 us" }, { 9949, "9.9 us" },
		{ 12345, "12 us" }, { 999600, "1.0 ms" }, { 27.8e6, "28 ms" }, { 3e9, "3.0 s" },
		{ 4e12, "4000 s" } };
	char text[32];

	(void)state;
	for (size_t i = 0; i < uni_array_len(want); i++) {
		uni_say_ns(text, sizeof(text), want[i].ns);
		assert_string_equal(text, want[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sort, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
		cmocka_unit_test_setup_teardown(test_window, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_and_vcpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_guests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frozen, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_selection_follows_the_function, setup, teardown),
		cmocka_unit_test_setup_teardown(test_calls, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recursion, setup, teardown),
		cmocka_unit_test_setup_teardown(test_quality, setup, teardown),
		cmocka_unit_test_setup_teardown(test_streams, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cost_of_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plugged_in, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unsure, setup, teardown),
		cmocka_unit_test(test_nanoseconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
