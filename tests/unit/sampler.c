/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampling loop over a target made of a few words of memory that does as it is told; in fake
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "../support/fake_time.h"
#include "sampling/sampler.h"

#define MEM_GVA 0x10000u
#define DEPTH	4u /* return addresses on the fake stack */
#define MS	UNI_NSEC_PER_MSEC
#define ROUNDS	50u
#define LATE_MS 100u

struct fake {
	struct uni_target t;
	struct uni_gmem *m;
	unsigned caps, nr_vcpus;
	uint64_t word[64]; /* guest memory at MEM_GVA: a stack, and [32] a counter */
	uint64_t busy_ns;  /* how long a snap takes */
	uint8_t state[UNI_VCPU_MAX];
	int fail, fail_release; /* what snap() and release() return */
	uint64_t gone_after;	/* snaps; 0: never */
	uint64_t slow_once_ns;	/* the next snap takes this long */
	bool dead;
	bool tells_cpu, moves; /* its CPU time; a register changes from snap to snap */
	uint64_t cpu_permille; /* of the time that passes */

	bool held;
	uint64_t snaps, holds, releases, bad_reads;
	uint64_t in_snap_ns;
};

static unsigned fake_caps(struct uni_target *t)
{
	return ((struct fake *)t)->caps;
}

static int fake_nr_vcpus(struct uni_target *t)
{
	return (int)((struct fake *)t)->nr_vcpus;
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fake *f = (struct fake *)t;
	uint64_t begin = uni_now_ns();

	assert_false(f->held);
	f->snaps++;
	if (f->dead || (f->gone_after != 0 && f->snaps > f->gone_after))
		return -UNI_EGONE;
	if (f->fail != 0)
		return f->fail;
	fake_ns += f->busy_ns + f->slow_once_ns;
	f->slow_once_ns = 0;
	f->word[32]++;
	for (unsigned v = 0; v < f->nr_vcpus; v++) {
		if (!uni_vcpuset_has(set, v))
			continue;
		ret[v].state = f->state[v];
		ret[v].pc_valid = ret[v].sp_valid = f->state[v] < UNI_VCPU_OFFLINE;
		ret[v].pc = 0x1000 + v;
		ret[v].sp = MEM_GVA;
		uni_regs_set(&ret[v], UNI_X86_RAX, f->moves ? f->snaps : 0);
	}
	f->held = (flags & UNI_SNAP_HOLD) != 0;
	f->holds += f->held;
	f->in_snap_ns += uni_now_ns() - begin;
	return 0;
}

static int fake_release(struct uni_target *t)
{
	struct fake *f = (struct fake *)t;

	f->releases++;
	if (f->fail_release != 0)
		return f->fail_release;
	f->held = false;
	return 0;
}

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->m;
}

static int fake_cpu_most(struct uni_target *t, uint32_t vcpu, uint64_t *ret)
{
	struct fake *f = (struct fake *)t;

	*ret = fake_ns / 1000 * f->cpu_permille;
	return f->tells_cpu ? 0 : -UNI_ENOTSUP;
}

static bool fake_alive(struct uni_target *t)
{
	return !((struct fake *)t)->dead;
}

static const struct uni_target_ops fake_ops = {
	.scheme = "fake",
	.caps = fake_caps,
	.nr_vcpus = fake_nr_vcpus,
	.snap = fake_snap,
	.release = fake_release,
	.gmem = fake_gmem,
	.cpu_most = fake_cpu_most,
	.alive = fake_alive,
};

static int fake_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct fake *f = ctx;

	if ((f->caps & UNI_CAP_HOLD) && !f->held)
		f->bad_reads++;
	memcpy(buf, (const uint8_t *)f->word + offset, len);
	return 0;
}

static const struct uni_gmem_ops fake_gmem_ops = { .read = fake_read };

/* One word is one frame; 0 is the end. */
static int fake_step(void *ctx, struct uni_as *as, struct uni_regs *regs, struct uni_step *st)
{
	uint64_t word;

	st->stop = UNI_STOP_FAULT;
	if (uni_as_read_u64(as, uni_gva_of(regs->sp), &word) != 0)
		return 1;
	st->stop = UNI_STOP_ROOT;
	if (word == 0)
		return 1;
	regs->pc = word;
	regs->sp += 8;
	return 0;
}

static const struct uni_unwinder_ops fake_unwinder = { .name = "fake", .step = fake_step };

/* Everything of a test. */
struct bench {
	struct fake f;
	struct uni_unwinder u;
	struct uni_sampler_cfg cfg;
	struct uni_record_stats stats;
	enum uni_sampler_end end;
	struct uni_err err;
	atomic_bool stop;
	/* seen by the callbacks */
	uint64_t nr, wrong, last_ns, progresses;
	uint64_t stop_after, die_after; /* samples */
};

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct bench *b = ctx;
	bool right = s->nr > 0 && s->pc[0] == 0x1000 + s->vcpu && s->weight == 1;

	for (unsigned i = 1; i < s->nr; i++)
		right = right && s->pc[i] == 0x2000 + i;
	right = right && s->stop == UNI_STOP_ROOT && s->nr == DEPTH + 1;
	b->nr++;
	if (!right || b->f.held || s->t_ns < b->last_ns)
		b->wrong++;
	b->last_ns = s->t_ns;
	if (b->nr == b->stop_after)
		atomic_store(&b->stop, true);
	if (b->nr == b->die_after)
		b->f.dead = true;
}

static void on_progress(void *ctx, const struct uni_record_stats *st, uint64_t elapsed_ns)
{
	((struct bench *)ctx)->progresses++;
}

static int setup(void **state)
{
	const struct uni_gmem_region region = { .start = MEM_GVA,
		.size = sizeof(((struct fake *)0)->word) };
	struct bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return 1;
	*state = b;
	b->f.t.ops = &fake_ops;
	b->f.t.arch = &uni_arch_x86_64;
	b->f.caps = UNI_CAP_HOLD;
	b->f.nr_vcpus = 1;
	for (uint64_t i = 0; i < DEPTH; i++)
		b->f.word[i] = 0x2001 + i;
	b->u.arch = &uni_arch_x86_64;
	b->u.stepper[0].ops = &fake_unwinder;
	b->cfg = (struct uni_sampler_cfg){ .frequency = 500,
		.duration_ns = 300 * MS,
		.max_duty = 0.1,
		.pause_ns = UINT64_MAX, /* a busy host is no broken chain */
		.jitter = true,
		.unwinder = &b->u,
		.stop = &b->stop,
		.on_sample = on_sample,
		.on_progress = on_progress,
		.ctx = b };
	return uni_gmem_create(&fake_gmem_ops, &b->f, UNI_GMEM_VIRTUAL, &region, 1, &b->f.m, NULL);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	uni_gmem_destroy(b->f.m);
	free(b);
	return 0;
}

static int run(struct bench *b)
{
	int rc = uni_sampler_run(&b->f.t, &b->cfg, &b->stats, &b->end, &b->err);

	if (rc == 0) {
		assert_int_equal(b->stats.samples, b->nr);
		assert_false(b->f.held);
	}
	assert_int_equal(b->f.bad_reads, 0); /* memory is read while it holds still */
	assert_int_equal(b->wrong, 0);
	return rc;
}

static uint64_t wall(const struct bench *b)
{
	return b->stats.end_ns - b->stats.begin_ns;
}

/* If a hold stops them all anyway, they share one. */
static void whole_stops_are_shared(void **state)
{
	struct bench *b = *state;

	b->f.nr_vcpus = 3;
	b->f.caps |= UNI_CAP_WHOLE_STOP;
	assert_int_equal(run(b), 0);
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
	assert_int_equal(run(b), 0);
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
	assert_true(b->stats.own_cpu_ns > 0);
}

/* Runs with that CPU time and counts the samples that are said to be of a vCPU that waited. */
static uint64_t nr_stolen(struct bench *b, bool moves, uint64_t cpu_permille)
{
	b->f.tells_cpu = true;
	b->f.moves = moves;
	b->f.cpu_permille = cpu_permille;
	b->cfg.duration_ns = 0;
	b->stop_after = 20;
	assert_int_equal(run(b), 0);
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

static void a_halted_vcpu_is_not_stolen(void **state)
{
	struct bench *b = *state;

	b->f.state[0] = UNI_VCPU_HALTED;
	assert_int_equal(nr_stolen(b, false, 0), 0);
}

static void vcpus_without_registers(void **state)
{
	struct bench *b = *state;

	b->f.nr_vcpus = 3;
	b->f.state[1] = UNI_VCPU_OFFLINE;
	b->f.state[2] = UNI_VCPU_UNKNOWN;
	assert_int_equal(run(b), 0);
	assert_int_equal(b->nr, b->stats.ticks);
	assert_int_equal(b->stats.failed, b->stats.ticks);
}

/* The cap holds for the pauses as the target itself saw them, whatever was asked for. */
static void check_duty(struct bench *b)
{
	uint64_t most;

	assert_int_equal(run(b), 0);
	/* One pause may be unpaid at the end, and a period is slack. */
	most = (wall(b) + (uint64_t)(1e9 / b->cfg.frequency)) / 10 + b->stats.pause.max_ns;
	assert_true(b->stats.samples > 0);
	assert_true(b->stats.throttled > 0 || fake_late_ns != 0); /* late enough pays by itself */
	assert_true(b->stats.skipped >= b->stats.throttled);
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

static void no_burst_after_a_delay(void **state)
{
	struct bench *b = *state;

	b->cfg.max_duty = 1.0;
	b->f.slow_once_ns = 100 * MS;
	assert_int_equal(run(b), 0);
	assert_true(b->stats.skipped >= 45);
	assert_int_equal(b->stats.throttled, 0);
}

static void failing_now_and_then(void **state)
{
	struct bench *b = *state;

	b->f.fail = -UNI_EAGAIN;
	b->cfg.frequency = 1000;
	assert_int_equal(run(b), 0); /* nothing to be had is no error */
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
	assert_int_equal(run(b), -UNI_EIO);
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
	assert_int_equal(run(b), 0);
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
	assert_int_equal(run(b), 0);
	assert_int_equal(b->end, UNI_END_GONE);
	assert_int_equal(b->nr, 1);
}

static void stops_when_asked(void **state)
{
	struct bench *b = *state;

	b->cfg.duration_ns = 0;
	b->stop_after = 3;
	assert_int_equal(run(b), 0);
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
	assert_int_equal(run(b), 0);
	assert_int_equal(b->end, UNI_END_STOPPED);
	assert_int_equal(b->nr, 1);
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
	assert_int_equal(run(b), 0);
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
	assert_int_equal(run(b), 0);
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
	assert_int_equal(run(b), 0);
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
	assert_int_equal(run(b), -UNI_EINVAL);
	b->cfg.frequency = 1e9;
	assert_int_equal(run(b), -UNI_EINVAL);
	b->cfg.frequency = 99.0;
	b->cfg.max_duty = 0.0;
	assert_int_equal(run(b), -UNI_EINVAL);
	b->cfg.max_duty = 0.1;
	b->cfg.watch = &w;
	b->cfg.nr_watch = 1;
	assert_int_equal(run(b), -UNI_EINVAL);
	assert_int_equal(b->f.snaps, 0);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(samples_every_vcpu),
		T(whole_stops_are_shared),
		T(vcpus_without_registers),
		T(a_vcpu_that_waits_is_stolen),
		T(a_vcpu_that_moved_is_not_stolen),
		T(a_loop_that_changes_nothing_is_not_stolen),
		T(a_halted_vcpu_is_not_stolen),
		T(slow_target_keeps_the_duty_cap),
		T(duty_cap_at_100_khz),
		T(no_burst_after_a_delay),
		T(failing_now_and_then),
		T(failing_for_good_gives_up),
		T(gone_in_a_snap),
		T(gone_between_samples),
		T(stops_when_asked),
		T(stops_before_a_far_deadline),
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
	for (uint64_t seed = 1; seed <= ROUNDS && failed == 0; seed++) {
		fake_time_begin(seed, seed * LATE_MS * MS / ROUNDS);
		failed = cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
