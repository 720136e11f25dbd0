/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampling loop over a target made of a few words of memory that does as it is told; in fake
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sampler_fake.h"

/* If a hold stops them all anyway, they share one. */
static void whole_stops_are_shared(void **state)
{
	struct bench *b = *state;

	b->f.nr_vcpus = 3;
	b->f.caps |= UNI_CAP_WHOLE_STOP;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_DURATION);
	assert_int_equal(b->nr, 3 * b->stats.ticks);
	assert_int_equal(b->f.holds, b->stats.ticks);
	assert_int_equal(b->stats.pause.nr, b->stats.ticks);
}

static void samples_every_vcpu(void **state)
{
	struct bench *b = *state;
	uint64_t slots;

	b->f.nr_vcpus = 3;
	b->f.state[1] = UNI_VCPU_HALTED;
	b->cfg.duration_ns = 0;
	b->stop_after = 3 * 150; /* longer than from one report of progress to the next */
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_STOPPED);
	assert_int_equal(b->nr, 3 * b->stats.ticks);
	assert_int_equal(b->f.holds, 3 * b->stats.ticks); /* each vCPU for itself */
	assert_int_equal(b->f.releases, b->f.holds);
	assert_int_equal(b->stats.stop[UNI_STOP_ROOT], b->nr);
	assert_int_equal(b->stats.state[UNI_VCPU_HALTED], b->stats.samples / 3);
	assert_int_equal(b->stats.truncated, 0);
	assert_int_equal(b->stats.failed, 0);
	/* Each slot of the time that passed was served or counted: the schedule does not drift. */
	slots = wall(b) * 500 / UNI_NSEC_PER_SEC;
	assert_in_range(b->stats.ticks + b->stats.skipped, slots - 1, slots + 2);
	assert_int_equal(b->stats.ticks, 150);
	assert_true(b->progresses >= 1);
	assert_int_equal(b->stats.pause.nr, 3 * b->stats.ticks);
	assert_true(b->stats.pause.p50_ns <= b->stats.pause.p99_ns);
	assert_true(b->stats.pause.p99_ns <= b->stats.pause.max_ns);
	/* A tenth of the time, as the fake clock has it. */
	assert_in_range(b->stats.own_cpu_ns, wall(b) / 10 - 10000, wall(b) / 10 + 10000);
}

/* Each vCPU is held for itself, so a sample has the pause of its own and not of the others. */
static void each_sample_has_its_own_pause(void **state)
{
	struct bench *b = *state;

	b->f.nr_vcpus = 3;
	b->f.busy_ns = MS;
	assert_int_equal(bench_run(b), 0);
	assert_true(b->nr >= 3 && b->nr % 3 == 0);
	assert_in_range(b->pause_ns / b->nr, MS, MS + MS / 4);
	assert_in_range(b->pause_max_ns, MS, MS + MS / 4);
	/* The numbers of the whole run are those of its samples. */
	assert_int_equal(b->stats.pause.nr, b->nr);
	assert_int_equal(b->stats.pause.sum_ns, b->pause_ns);
	assert_int_equal(b->stats.pause.max_ns, b->pause_max_ns);
	assert_in_range(b->stats.pause.p50_ns, MS - MS / 8, MS + MS / 4);
}

/* Runs with that CPU time and counts the samples that are said to be of a vCPU that waited. */
static uint64_t nr_stolen(struct bench *b, bool moves, uint64_t cpu_permille)
{
	b->f.tells_cpu = !b->hides_cpu;
	b->f.moves = moves;
	b->f.cpu_permille = cpu_permille;
	b->cfg.duration_ns = 0;
	b->stop_after = 20;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->stats.samples, 20);
	return b->stats.state[UNI_VCPU_STOLEN];
}

/* On a busy host it is held again before it has run: only the first sample is of the guest. */
static void a_vcpu_that_waits_is_stolen(void **state)
{
	struct bench *b = *state;

	uint64_t stolen = nr_stolen(b, false, 20);

	/* After a late tick, the next one may come too soon to tell. */
	if (fake_late_ns == 0)
		assert_int_equal(stolen, b->stats.samples - 1);
	assert_in_range(stolen, b->stats.samples / 2, b->stats.samples - 1);
	assert_int_equal(stolen + b->stats.state[UNI_VCPU_RUNNING], b->stats.samples);
}

static void a_vcpu_that_moved_is_not_stolen(void **state)
{
	assert_int_equal(nr_stolen(*state, true, 20), 0);
}

/* A loop that waits for a word in memory changes no register. */
static void a_loop_that_changes_nothing_is_not_stolen(void **state)
{
	assert_int_equal(nr_stolen(*state, false, 990), 0);
}

/* Less than an eighth of the time on a CPU. A process of another host does not tell its time. */
static void an_eighth_of_the_time_is_enough(void **state)
{
	assert_int_equal(nr_stolen(*state, false, 126), 0);
}

static void a_little_less_is_not(void **state)
{
	assert_int_not_equal(nr_stolen(*state, false, 124), 0);
}

static void what_tells_no_time_is_not_stolen(void **state)
{
	struct bench *b = *state;

	b->hides_cpu = true;
	assert_int_equal(nr_stolen(b, false, 20), 0);
}

static void a_halted_vcpu_is_not_stolen(void **state)
{
	struct bench *b = *state;

	b->f.state[0] = UNI_VCPU_HALTED;
	assert_int_equal(nr_stolen(b, false, 0), 0);
}

static uint64_t percent_of(const struct bench *b, uint8_t state)
{
	return (b->stats.state[state] * 100 + b->stats.weight / 2) / b->stats.weight;
}

/* One sample of so many finds the vCPU awake. The host's counts tell what it did. */
static void check_shares(struct bench *b, uint64_t awake_every, uint64_t on, uint64_t ready)
{
	uint64_t slots;

	b->f.awake_every = awake_every;
	b->f.on_percent = on;
	b->f.ready_percent = ready;
	b->cfg.duration_ns = 20000 * MS;
	assert_int_equal(bench_run(b), 0);
	assert_in_range(percent_of(b, UNI_VCPU_RUNNING), on - 2, on + 2);
	assert_in_range(percent_of(b, UNI_VCPU_STOLEN), ready > 2 ? ready - 2 : 0, ready + 2);
	assert_in_range(percent_of(b, UNI_VCPU_HALTED) + 2, 100 - on - ready, 104 - on - ready);
	/* All time is told. */
	slots = wall(b) * (uint64_t)b->cfg.frequency / UNI_NSEC_PER_SEC;
	assert_in_range(b->stats.weight, slots * 95 / 100, slots * 102 / 100);
}

/* On a busy host the sampler gets a CPU when the guest sleeps. */
static void shares_are_the_hosts(void **state)
{
	check_shares(*state, 5, 30, 40);
}

/* The guest sleeps more than it was found asleep. */
static void shares_are_the_hosts_also_of_sleep(void **state)
{
	check_shares(*state, 2, 8, 2);
}

/* On a quiet host, every sample stands for its own slot. */
static void quiet_samples_weigh_one(void **state)
{
	struct bench *b = *state;

	check_shares(b, 1, 100, 0);
	if (fake_late_ns == 0)
		assert_int_equal(b->stats.state[UNI_VCPU_RUNNING], b->stats.samples);
}

#define IF_FLAG 0x200u

/* How long none of two vCPUs could be woken, as a share of the run in percent. */
static uint64_t halted_share(struct bench *b, uint8_t state1, uint64_t flags)
{
	struct uni_sampler_job job = { .t = &b->f.t, .cfg = b->cfg };
	uint64_t share;

	job.cfg.duration_ns = 3000 * MS; /* the first tick may be late */
	b->f.nr_vcpus = 2;
	b->f.state[0] = UNI_VCPU_HALTED;
	b->f.state[1] = state1;
	b->f.flags = flags;
	uni_sampler_run_all(&job, 1);
	assert_int_equal(job.rc, 0);
	share = job.halted_ns * 100 / (job.stats.end_ns - job.stats.begin_ns);
	uni_record_stats_deinit(&job.stats);
	return share;
}

static void halted_for_good(void **state)
{
	assert_in_range(halted_share(*state, UNI_VCPU_HALTED, 2), 80, 100);
	assert_in_range(halted_share(*state, UNI_VCPU_OFFLINE, 2), 80, 100);
	assert_int_equal(halted_share(*state, UNI_VCPU_HALTED, 2 | IF_FLAG), 0);
	assert_int_equal(halted_share(*state, UNI_VCPU_HALTED, 0), 0); /* not known */
	assert_int_equal(halted_share(*state, UNI_VCPU_RUNNING, 2), 0);
	assert_int_equal(halted_share(*state, UNI_VCPU_UNKNOWN, 2), 0);
}

static void vcpus_without_registers(void **state)
{
	struct bench *b = *state;

	b->f.nr_vcpus = 3;
	b->f.state[1] = UNI_VCPU_OFFLINE;
	b->f.state[2] = UNI_VCPU_UNKNOWN;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->nr, b->stats.ticks);
	assert_int_equal(b->stats.failed, b->stats.ticks);
}

/* The cap holds for the pauses as the target itself saw them, whatever was asked for. */
static void check_duty(struct bench *b)
{
	uint64_t most;

	assert_int_equal(bench_run(b), 0);
	/* One pause may be unpaid at the end, and a period is slack. */
	most = (wall(b) + (uint64_t)(1e9 / b->cfg.frequency)) / 10 + b->stats.pause.max_ns;
	assert_true(b->stats.samples > 0);
	assert_true(b->stats.throttled > 0 || fake_late_ns != 0); /* late enough pays by itself */
	assert_true(b->stats.skipped >= b->stats.throttled);
	/* Each stands for the deadlines before it that were skipped, too. */
	assert_true(b->stats.throttled == 0 || b->stats.weight > b->stats.samples);
	assert_true(b->stats.weight - b->stats.samples <= b->f.nr_vcpus * b->stats.throttled);
	assert_true(b->f.in_snap_ns <= most);
	assert_true(b->stats.pause.sum_ns <= most);
}

static void slow_target_keeps_the_duty_cap(void **state)
{
	struct bench *b = *state;

	b->f.busy_ns = 5 * MS;
	b->cfg.frequency = 100;
	b->cfg.duration_ns = 500 * MS;
	check_duty(b);
}

static void duty_cap_at_100_khz(void **state)
{
	struct bench *b = *state;

	b->f.busy_ns = 20000;
	b->cfg.frequency = 100000;
	check_duty(b);
}

static void late_samples_can_be_skipped(void **state)
{
	struct bench *b = *state;

	b->cfg.max_duty = 1.0;
	b->cfg.skip_late = true;
	b->f.slow_once_ns = 100 * MS;
	assert_int_equal(bench_run(b), 0);
	assert_true(b->stats.skipped >= 45);
	assert_int_equal(b->stats.throttled, 0);
}

/* All, and never two of a vCPU within half a period. */
static void late_samples_are_taken(void **state)
{
	struct bench *b = *state;

	b->cfg.max_duty = 1.0;
	b->cfg.duration_ns = 3000 * MS;
	b->f.slow_once_ns = 100 * MS;
	b->gap_ns = MS - 1;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->stats.throttled, 0);
	assert_true(b->stats.late >= 45);
	if (fake_late_ns == 0) { /* else, naps end later than the slots of half a second */
		assert_true(b->stats.skipped <= 1); /* in the last microseconds */
		assert_in_range(b->stats.ticks, 1499, 1501);
	}
}

static void failing_now_and_then(void **state)
{
	struct bench *b = *state;

	b->f.fail = -UNI_EAGAIN;
	b->cfg.frequency = 1000;
	assert_int_equal(bench_run(b), 0); /* nothing to be had is no error */
	assert_int_equal(b->nr, 0);
	assert_int_equal(b->stats.ticks, 0);
	assert_int_equal(b->stats.failed, b->f.snaps);
	assert_int_equal(b->f.releases, 0);
	assert_int_equal(b->stats.pause.nr, 0);
}

static void failing_for_good_gives_up(void **state)
{
	struct bench *b = *state;
	uint64_t begin = uni_now_ns();

	b->f.fail = -UNI_EIO;
	b->cfg.duration_ns = 0;
	assert_int_equal(bench_run(b), -UNI_EIO);
	assert_non_null(strstr(b->err.msg, "fake"));
	assert_true(b->f.snaps >= 20);
	assert_true(uni_now_ns() - begin < 30 * UNI_NSEC_PER_SEC);
	assert_int_equal(b->stats.failed, b->f.snaps);
}

static void gone_in_a_snap(void **state)
{
	struct bench *b = *state;

	b->f.gone_after = 20;
	b->cfg.duration_ns = 0;
	b->cfg.max_duty = 1.0;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_GONE);
	assert_int_equal(b->nr, 20);
}

static void gone_between_samples(void **state)
{
	struct bench *b = *state;

	b->cfg.frequency = 0.001;
	b->cfg.duration_ns = 60 * UNI_NSEC_PER_SEC;
	b->cfg.jitter = false; /* the first deadline is now, the second in 1000 s */
	b->die_after = 1;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_GONE);
	assert_int_equal(b->nr, 1);
}

static void stops_when_asked(void **state)
{
	struct bench *b = *state;

	b->cfg.duration_ns = 0;
	b->stop_after = 3;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_STOPPED);
	assert_int_equal(b->nr, 3);
}

static void stops_before_a_far_deadline(void **state)
{
	struct bench *b = *state;

	b->cfg.frequency = 0.001;
	b->cfg.duration_ns = 0;
	b->cfg.jitter = false; /* the first deadline is now, the second in 1000 s */
	b->stop_after = 1;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_STOPPED);
	assert_int_equal(b->nr, 1);
}

/* Another thread asks, so no signal ends the nap. */
static void stops_while_it_waits(void **state)
{
	struct bench *b = *state;

	b->cfg.frequency = 0.001;
	b->cfg.duration_ns = 0;
	b->cfg.jitter = false;
	b->stop_at_progress = 2;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_STOPPED);
	assert_int_equal(b->nr, 1);
	assert_true(wall(b) < 10 * UNI_NSEC_PER_SEC);
}

static void ends_before_a_far_deadline(void **state)
{
	struct bench *b = *state;

	b->cfg.frequency = 0.001;
	b->cfg.duration_ns = 60 * UNI_NSEC_PER_SEC;
	b->cfg.jitter = false; /* the first deadline is now, the second in 1000 s */
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_DURATION);
	assert_int_equal(b->nr, 1);
	assert_true(wall(b) < 120 * UNI_NSEC_PER_SEC);
}

static void resume_is_tried_again(void **state)
{
	struct bench *b = *state;

	b->f.fail_release = -UNI_EIO;
	assert_int_equal(uni_sampler_run(&b->f.t, &b->cfg, &b->stats, &b->end, &b->err), -UNI_EIO);
	assert_int_equal(b->f.snaps, 1); /* never a second pause on top of one that did not end */
	assert_true(b->f.releases > 1);
	assert_int_equal(b->stats.samples, 1);
	assert_non_null(strstr(b->err.msg, "go on"));
}

static void gone_at_resume_keeps_the_sample(void **state)
{
	struct bench *b = *state;

	b->f.fail_release = -UNI_EGONE;
	assert_int_equal(uni_sampler_run(&b->f.t, &b->cfg, &b->stats, &b->end, &b->err), 0);
	assert_int_equal(b->end, UNI_END_GONE);
	assert_int_equal(b->nr, 1);
	assert_int_equal(b->f.releases, 1);
}

static void without_hold_nothing_is_released(void **state)
{
	struct bench *b = *state;

	b->f.caps = UNI_CAP_NO_PAUSE;
	assert_int_equal(bench_run(b), 0);
	assert_true(b->nr > 0);
	assert_int_equal(b->f.holds, 0);
	assert_int_equal(b->f.releases, 0);
	assert_int_equal(b->stats.pause.nr, 0);
}

static void watches_hold_first_and_last(void **state)
{
	struct bench *b = *state;
	struct uni_watch w[2] = { { .name = "counter", .gva = MEM_GVA + 32 * 8, .size = 8 },
		{ .name = "nowhere", .gva = 0x900000, .size = 8 } };
	uint64_t first, last;

	b->cfg.watch = w;
	b->cfg.nr_watch = 2;
	assert_int_equal(bench_run(b), 0);
	assert_non_null(w[0].first);
	assert_non_null(w[0].last);
	memcpy(&first, w[0].first, 8);
	memcpy(&last, w[0].last, 8);
	assert_int_equal(first, 1); /* the first snap */
	assert_int_equal(last, b->f.snaps);
	assert_true(w[0].t_first_ns >= b->stats.begin_ns);
	assert_true(w[0].t_last_ns > b->last_ns);
	assert_null(w[1].first);
	assert_null(w[1].last);
	assert_int_equal(b->f.holds, b->stats.ticks + 1);
	assert_int_equal(b->f.releases, b->f.holds);
	free(w[0].first);
	free(w[0].last);
}

/* The content of a guest a second before it ended is known. */
static void watches_are_refreshed(void **state)
{
	struct bench *b = *state;
	struct uni_watch w = { .name = "counter", .gva = MEM_GVA + 32 * 8, .size = 8 };
	uint64_t last;

	b->cfg.watch = &w;
	b->cfg.nr_watch = 1;
	b->cfg.frequency = 10;
	b->cfg.duration_ns = 0;
	b->f.gone_after = 35;
	assert_int_equal(bench_run(b), 0);
	assert_int_equal(b->end, UNI_END_GONE);
	memcpy(&last, w.last, 8);
	assert_in_range(last, 35 - 11, 35);
	free(w.first);
	free(w.last);
}

static void method_is_what_is_done(void **state)
{
	struct bench *b = *state;

	b->f.caps = UNI_CAP_HOLD;
	assert_string_equal(uni_sampler_method(&b->f.t), "pause");
	b->f.caps = UNI_CAP_HOLD | UNI_CAP_NO_PAUSE;
	assert_string_equal(uni_sampler_method(&b->f.t), "pause");
	b->f.caps = UNI_CAP_NO_PAUSE;
	assert_string_equal(uni_sampler_method(&b->f.t), "read");
	b->f.caps = UNI_CAP_DEAD;
	assert_string_equal(uni_sampler_method(&b->f.t), "replay");
}

static void nonsense_is_refused(void **state)
{
	struct bench *b = *state;
	struct uni_watch w = { .name = "big", .gva = 0, .size = UINT32_MAX };

	b->cfg.frequency = 0.0;
	assert_int_equal(bench_run(b), -UNI_EINVAL);
	b->cfg.frequency = 1e9;
	assert_int_equal(bench_run(b), -UNI_EINVAL);
	b->cfg.frequency = 99.0;
	b->cfg.max_duty = 0.0;
	assert_int_equal(bench_run(b), -UNI_EINVAL);
	b->cfg.max_duty = 0.1;
	b->cfg.watch = &w;
	b->cfg.nr_watch = 1;
	assert_int_equal(bench_run(b), -UNI_EINVAL);
	assert_int_equal(b->f.snaps, 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* sampler [ROUNDS]: each round with another seed */
int main(int argc, char **argv)
{
	const uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : ROUNDS;
	const struct CMUnitTest tests[] = {
		T(samples_every_vcpu),
		T(each_sample_has_its_own_pause),
		T(whole_stops_are_shared),
		T(halted_for_good),
		T(vcpus_without_registers),
		T(shares_are_the_hosts),
		T(shares_are_the_hosts_also_of_sleep),
		T(quiet_samples_weigh_one),
		T(a_vcpu_that_waits_is_stolen),
		T(a_vcpu_that_moved_is_not_stolen),
		T(a_loop_that_changes_nothing_is_not_stolen),
		T(an_eighth_of_the_time_is_enough),
		T(a_little_less_is_not),
		T(what_tells_no_time_is_not_stolen),
		T(a_halted_vcpu_is_not_stolen),
		T(slow_target_keeps_the_duty_cap),
		T(duty_cap_at_100_khz),
		T(late_samples_can_be_skipped),
		T(late_samples_are_taken),
		T(failing_now_and_then),
		T(failing_for_good_gives_up),
		T(gone_in_a_snap),
		T(gone_between_samples),
		T(stops_when_asked),
		T(stops_before_a_far_deadline),
		T(stops_while_it_waits),
		T(ends_before_a_far_deadline),
		T(resume_is_tried_again),
		T(gone_at_resume_keeps_the_sample),
		T(without_hold_nothing_is_released),
		T(watches_hold_first_and_last),
		T(watches_are_refreshed),
		T(method_is_what_is_done),
		T(nonsense_is_refused),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* Whenever a nap ends too late, and by how much. */
	for (uint64_t seed = 1; seed <= rounds && failed == 0; seed++) {
		fake_time_begin(seed, (1 + (seed - 1) % ROUNDS) * LATE_MS * MS / ROUNDS);
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
