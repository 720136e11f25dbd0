/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers that `record` and `report` tell: how samples are counted, summed and chosen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "arch/stop.h"
#include "base/checked.h"
#include "recording/recording.h"
#include "recording/stats.h"

static void each_sample_by_its_weight(void **state)
{
	static const uint8_t sure[] = { UNI_FRAME_EXACT, 0 }, guess[] = { 0, UNI_FRAME_GUESS };
	const struct uni_sample samples[] = {
		{ .weight = 1,
			.stop = UNI_STOP_ROOT,
			.state = UNI_VCPU_RUNNING,
			.nr = 2,
			.flags = sure },
		{ .weight = 10,
			.stop = UNI_STOP_LIMIT,
			.state = UNI_VCPU_HALTED,
			.nr = 2,
			.flags = guess },
		{ .weight = 100, .stop = UNI_STOP_FAULT, .state = UNI_VCPU_STOLEN },
		/* Numbers of a newer or hostile file. */
		{ .weight = 1000, .stop = UNI_STOP_NR, .state = UNI_VCPU_STATE_NR },
	};
	struct uni_record_stats *st = calloc(1, sizeof(*st));

	assert_non_null(st);
	for (size_t i = 0; i < uni_array_len(samples); i++)
		uni_record_stats_count(st, &samples[i]);
	assert_int_equal(st->weight, 1111);
	assert_int_equal(st->truncated, 1110);
	assert_int_equal(st->guessed, 10);
	assert_int_equal(st->stop[UNI_STOP_ROOT], 1);
	assert_int_equal(st->stop[UNI_STOP_LIMIT], 10);
	assert_int_equal(st->stop[UNI_STOP_FAULT], 100);
	assert_int_equal(st->stop[UNI_STOP_NOREGS], 1000);
	assert_int_equal(st->state[UNI_VCPU_HALTED], 10);
	assert_int_equal(st->state[UNI_VCPU_STOLEN], 100);
	assert_int_equal(st->state[UNI_VCPU_UNKNOWN], 1000);
	uni_record_stats_count(st, &(struct uni_sample){ .weight = UINT64_MAX });
	assert_true(st->weight == UINT64_MAX);
	free(st);
}

/* Every number is another one, so that none is taken for another. */
static struct uni_record_stats *make_stats(uint64_t n)
{
	struct uni_record_stats *st = calloc(1, sizeof(*st));

	assert_non_null(st);
	*st = (struct uni_record_stats){ .samples = n + 1,
		.weight = n + 2,
		.ticks = n + 3,
		.late = n + 4,
		.skipped = n + 5,
		.throttled = n + 6,
		.failed = n + 7,
		.truncated = n + 8,
		.guessed = n + 9,
		.lost = n + 10,
		.exits = n + 11,
		.exits_lost = n + 12,
		.begin_ns = n + 13,
		.end_ns = n + 14,
		.unwind_ns = n + 15,
		.own_cpu_ns = n + 16,
		.host_ns = n + 17,
		.host_runs = n + 18,
		.serve_ns = n + 19,
		.silent = (uint32_t)n + 20,
		.short_lists = n + 28 };
	st->stop[UNI_STOP_LIMIT] = n + 21;
	st->state[UNI_VCPU_VMM] = n + 22;
	st->pause = (struct uni_pause_stats){ n + 23, n + 24, n + 25, n + 26, n + 27 };
	return st;
}

static void guests_are_summed(void **state)
{
	struct uni_record_stats *a = make_stats(1000), *b = make_stats(5000);
	struct uni_record_stats *sum = calloc(1, sizeof(*sum));

	assert_non_null(sum);
	uni_record_stats_add(sum, b);
	uni_record_stats_add(sum, a);
	assert_int_equal(sum->samples, 6002);
	assert_int_equal(sum->weight, 6004);
	assert_int_equal(sum->ticks, 6006);
	assert_int_equal(sum->late, 6008);
	assert_int_equal(sum->skipped, 6010);
	assert_int_equal(sum->throttled, 6012);
	assert_int_equal(sum->failed, 6014);
	assert_int_equal(sum->truncated, 6016);
	assert_int_equal(sum->guessed, 6018);
	assert_int_equal(sum->lost, 6020);
	assert_int_equal(sum->exits, 6022);
	assert_int_equal(sum->short_lists, 6056);
	assert_int_equal(sum->exits_lost, 6024);
	/* From the first to the last of them; own_cpu is the whole process's. */
	assert_int_equal(sum->begin_ns, 1013);
	assert_int_equal(sum->end_ns, 5014);
	assert_int_equal(sum->unwind_ns, 6030);
	assert_int_equal(sum->own_cpu_ns, 5016);
	assert_int_equal(sum->host_ns, 6034);
	assert_int_equal(sum->host_runs, 6036);
	assert_int_equal(sum->serve_ns, 6038);
	assert_int_equal(sum->silent, 6040);
	assert_int_equal(sum->stop[UNI_STOP_LIMIT], 6042);
	assert_int_equal(sum->state[UNI_VCPU_VMM], 6044);
	assert_int_equal(sum->pause.nr, 6046);
	assert_int_equal(sum->pause.sum_ns, 6048);
	/* The worst of the percentiles. */
	assert_int_equal(sum->pause.p50_ns, 5025);
	assert_int_equal(sum->pause.p99_ns, 5026);
	assert_int_equal(sum->pause.max_ns, 5027);
	free(a);
	free(b);
	free(sum);
}

static void percentiles_of_pauses(void **state)
{
	struct uni_hist *h = calloc(1, sizeof(*h));
	struct uni_pause_stats st;

	assert_non_null(h);
	uni_hist_summary(h, &st);
	assert_int_equal(st.nr + st.p50_ns + st.p99_ns + st.max_ns, 0);
	/* 1 to 1000, and one that is far longer. */
	for (uint64_t v = 1000; v != 0; v--)
		uni_hist_add(h, v * 1000);
	uni_hist_add(h, 50000000);
	uni_hist_summary(h, &st);
	assert_int_equal(st.nr, 1001);
	assert_int_equal(st.sum_ns, 500500000 + 50000000);
	assert_in_range(st.p50_ns, 501000 - 501000 / 32 - 1, 501000 + 501000 / 32 + 1);
	assert_in_range(st.p99_ns, 991000 - 991000 / 32 - 1, 991000 + 991000 / 32 + 1);
	assert_int_equal(st.max_ns, 50000000);
	free(h);
}

static bool passes(struct uni_sample_filter f, unsigned of_state, uint32_t vcpu, uint32_t thread)
{
	const struct uni_sample s = {
		.guest = 1, .vcpu = vcpu, .thread = thread, .state = (uint8_t)of_state
	};

	return uni_sample_passes(&f, &s);
}

static void samples_are_chosen(void **state)
{
	const struct uni_sample_filter all = { 0 };
	struct uni_sample_filter f;
	bool has[] = { false, false, true };
	struct uni_thread_set *set = calloc(1, sizeof(*set));

	assert_non_null(set);
	for (unsigned s = 0; s < UNI_VCPU_STATE_NR; s++) {
		bool off = s >= UNI_OFF_CPU_READY && s <= UNI_OFF_CPU_WAITING;
		bool host = s == UNI_VCPU_HALTED || s == UNI_VCPU_STOLEN || s == UNI_VCPU_KVM ||
			    s == UNI_VCPU_VMM;

		assert_true(passes(all, s, 0, 0));
		f = all;
		f.on_cpu = true;
		assert_int_equal(passes(f, s, 0, 0), !off && !host);
		f = all;
		f.off_cpu = true;
		assert_int_equal(passes(f, s, 0, 0), off);
		f = all;
		f.vcpu = uni_only(3); /* what was on no vCPU has no number */
		assert_int_equal(passes(f, s, 3, 0), !off);
		assert_false(passes(f, s, 2, 0));
	}
	f = all;
	f.guest = uni_only(0);
	assert_false(passes(f, UNI_VCPU_RUNNING, 0, 0));
	f.guest = uni_only(1);
	assert_true(passes(f, UNI_VCPU_RUNNING, 0, 0));
	set->nr_guests = 2;
	set->guest[1].nr = 3;
	set->guest[1].has = has;
	f.threads = set;
	assert_true(passes(f, UNI_VCPU_RUNNING, 0, 2));
	assert_false(passes(f, UNI_VCPU_RUNNING, 0, 1));
	assert_false(passes(f, UNI_VCPU_RUNNING, 0, 3));
	free(set);
}

/* In the order of time, and none overlaps another: a reader refuses such a session. */
static void gaps_are_in_order(void **state)
{
	const struct uni_record_gap add[] = {
		{ .begin_ns = 10, .end_ns = 20, .held = UNI_HELD_VMM },
		/* Behind it by a VMM that was held meanwhile: one that restored a snapshot. */
		{ .begin_ns = 15, .end_ns = 18, .back_ns = 5 },
		{ .begin_ns = 19, .end_ns = 30, .held = UNI_HELD_SIGNAL },
		{ .begin_ns = 40, .end_ns = 50, .held = UNI_HELD_SIGNAL },
		/* A new part. */
		{ .begin_ns = 45, .end_ns = 60, .pid = 2, .method = "bpf" },
		{ .begin_ns = 55, .end_ns = 70, .held = UNI_HELD_VMM },
	};
	const struct uni_record_gap want[] = { { .begin_ns = 10, .end_ns = 30, .back_ns = 5 },
		{ .begin_ns = 40, .end_ns = 50, .held = UNI_HELD_SIGNAL },
		{ .begin_ns = 50, .end_ns = 60 },
		{ .begin_ns = 60, .end_ns = 70, .held = UNI_HELD_VMM } };
	struct uni_record_meta *m = calloc(1, sizeof(*m));

	assert_non_null(m);
	for (size_t i = 0; i < uni_array_len(add); i++)
		assert_true(uni_record_add_gap(m, &add[i]));
	assert_int_equal(m->nr_gap, uni_array_len(want));
	for (size_t i = 0; i < uni_array_len(want); i++) {
		assert_int_equal(m->gap[i].begin_ns, want[i].begin_ns);
		assert_int_equal(m->gap[i].end_ns, want[i].end_ns);
		assert_int_equal(m->gap[i].back_ns, want[i].back_ns);
		assert_int_equal(m->gap[i].held, want[i].held);
	}
	/* However often it was held, there is room for the parts behind. */
	for (uint64_t t = 100; t < 1000; t += 10)
		(void)uni_record_add_gap(
			m, &(struct uni_record_gap){
				   .begin_ns = t, .end_ns = t + 5, .held = UNI_HELD_VMM });
	for (uint64_t t = 1000; t < 1100; t += 10)
		assert_true(uni_record_add_gap(
			m, &(struct uni_record_gap){ .begin_ns = t, .end_ns = t + 5, .pid = 3 }));
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sample_by_its_weight),
		cmocka_unit_test(guests_are_summed),
		cmocka_unit_test(percentiles_of_pauses),
		cmocka_unit_test(samples_are_chosen),
		cmocka_unit_test(gaps_are_in_order),
	};

	return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
