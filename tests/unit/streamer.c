/* SPDX-License-Identifier: BSD-2-Clause */
/* Guests that are sampled by the kernel, played by targets that make what they are told to; in fake
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "../support/fake_time.h"
#include "base/checked.h"
#include "base/clock.h"
#include "sampling/sampler.h"

#define MEM_GVA 0x10000u
#define MS	UNI_NSEC_PER_MSEC
#define MAX	3

struct fake {
	struct uni_target t;
	struct uni_gmem *m;
	unsigned caps;
	uint64_t word[4]; /* guest memory at MEM_GVA */
	int fail_start, fail_read;
	uint64_t gone_after; /* reads; 0: never */
	uint64_t per_read;   /* samples that each read hands over */
	uint64_t at_stop;    /* and that stop leaves behind */
	uint64_t begin_ns;   /* when it says that it began */
	uint32_t turn_samples;
	uint32_t plugged; /* vCPU that the samples are of, besides 0 and 1 */
	bool dead;	  /* not alive any more, and no word of it */
	pthread_rwlock_t *gate;

	struct uni_stream_cfg started;
	const struct uni_unwind_hints *hints;
	bool running, held;
	uint64_t reads, stops, snaps, made;
	uint64_t read_ns, least_ns, most_ns; /* the last one, and the times between two */
	uint64_t gate_open;		     /* while the guest is held */
};

static unsigned fake_caps(struct uni_target *t)
{
	return ((struct fake *)t)->caps;
}

static int fake_nr_vcpus(struct uni_target *t)
{
	return 2;
}

/* Could the gate be closed now? */
static bool can_close(pthread_rwlock_t *gate)
{
	return pthread_rwlock_trywrlock(gate) == 0 && pthread_rwlock_unlock(gate) == 0;
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fake *f = (struct fake *)t;

	f->snaps++;
	f->gate_open += f->gate != NULL && can_close(f->gate);
	f->held = (flags & UNI_SNAP_HOLD) != 0;
	for (unsigned v = 0; v < 2; v++) {
		if (!uni_vcpuset_has(set, v))
			continue;
		ret[v].pc_valid = ret[v].sp_valid = true;
		ret[v].pc = 0x1000;
		ret[v].sp = MEM_GVA;
	}
	return 0;
}

static int fake_release(struct uni_target *t)
{
	struct fake *f = (struct fake *)t;

	f->gate_open += f->gate != NULL && f->held && can_close(f->gate);
	f->held = false;
	return 0;
}

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->m;
}

static bool fake_alive(struct uni_target *t)
{
	return !((struct fake *)t)->dead;
}

static int fake_start(struct uni_target *t, const struct uni_stream_cfg *cfg,
	const struct uni_unwind_hints *hints, struct uni_err *err)
{
	struct fake *f = (struct fake *)t;

	if (f->fail_start != 0)
		return uni_err_set(err, (enum uni_errcode) - f->fail_start, "no such map");
	f->started = *cfg;
	f->hints = hints;
	f->running = true;
	return 0;
}

/* Sample n: states in turn, every fifth cut short, every eleventh without a chain. */
static void make(struct fake *f, const struct uni_stream_sink *sink)
{
	static const uint64_t pc[] = { 0x1000, 0x2000 };
	static const uint8_t flags[] = { 0, UNI_FRAME_GUESS };
	uint64_t n = f->made++;
	const struct uni_stream_sample s = { .t_ns = uni_now_ns(),
		.weight = 1 + n % 2,
		.vcpu = n % 2 != 0 && f->plugged != 0 ? f->plugged : n % 2,
		.stop = n % 5 == 0 ? UNI_STOP_FAULT : UNI_STOP_ROOT,
		.state = n % (UNI_VCPU_STOLEN + 1),
		.nr = n % 11 == 0 ? 0 : 2,
		.pc = pc,
		.flags = flags };

	sink->sample(sink->ctx, &s);
}

static int fake_stream_read(struct uni_target *t, const struct uni_stream_sink *sink)
{
	struct fake *f = (struct fake *)t;
	uint64_t nr = f->running ? f->per_read : f->at_stop;

	if (f->reads++ != 0 && f->running) {
		f->least_ns = uni_min(f->least_ns, fake_ns - f->read_ns);
		f->most_ns = uni_max(f->most_ns, fake_ns - f->read_ns);
	}
	f->read_ns = fake_ns;
	f->at_stop = f->running ? f->at_stop : 0;
	if (f->fail_read != 0)
		return f->fail_read;
	while (nr-- != 0)
		make(f, sink);
	return f->gone_after != 0 && f->reads >= f->gone_after ? -UNI_EGONE : 0;
}

static void fake_stats(struct uni_target *t, struct uni_stream_stats *ret)
{
	*ret = (struct uni_stream_stats){ .begin_ns = ((struct fake *)t)->begin_ns,
		.turn_samples = ((struct fake *)t)->turn_samples,
		.lost = 11,
		.failed = 5,
		.host_ns = 700,
		.host_runs = 7,
		.serve_ns = 9 };
}

static int fake_times(struct uni_target *t, uint32_t vcpu, struct uni_vcpu_times *ret)
{
	/* Two of the four vCPUs were plugged in, and one never ran. */
	if (vcpu > 3 || vcpu == 2)
		return -UNI_ENOENT;
	*ret = (struct uni_vcpu_times){ .guest_ns = 100 + vcpu, .exits = 3 };
	return 0;
}

static int fake_stop(struct uni_target *t)
{
	struct fake *f = (struct fake *)t;

	f->running = false;
	f->stops++;
	return 0;
}

static const struct uni_target_ops fake_ops = {
	.scheme = "fake",
	.caps = fake_caps,
	.nr_vcpus = fake_nr_vcpus,
	.snap = fake_snap,
	.release = fake_release,
	.gmem = fake_gmem,
	.alive = fake_alive,
	.stream_method = "fake",
	.stream_start = fake_start,
	.stream_read = fake_stream_read,
	.stream_stats = fake_stats,
	.stream_times = fake_times,
	.stream_stop = fake_stop,
};

static int fake_mem_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct fake *f = ctx;

	f->word[1]++; /* a counter: how often memory was looked at */
	memcpy(buf, (const uint8_t *)f->word + offset, len);
	return 0;
}

static const struct uni_gmem_ops fake_gmem_ops = { .read = fake_mem_read };

/* The events that the callbacks of one guest saw. */
struct seen {
	struct bench *b;
	uint64_t nr, weight, wrong, progresses, stop_after;
	uint64_t of_state[UNI_VCPU_STATE_NR];
	pthread_t thread;
};

struct bench {
	struct fake f[MAX];
	struct seen seen[MAX];
	struct uni_sampler_job job[MAX];
	struct uni_unwinder u;
	struct uni_unwind_hints hints;
	atomic_bool stop;
};

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct seen *seen = ctx;
	ptrdiff_t guest = seen - seen->b->seen;

	if ((ptrdiff_t)s->guest != guest || (s->vcpu > 1 && s->vcpu != seen->b->f[guest].plugged) ||
		s->t_ns == 0 || seen->b->f[guest].held)
		seen->wrong++;
	if (s->nr != 0 && s->pc[0] != 0x1000)
		seen->wrong++;
	seen->nr++;
	seen->weight += s->weight;
	seen->of_state[s->state]++;
	seen->thread = pthread_self();
	if (seen->nr == seen->stop_after)
		atomic_store(&seen->b->stop, true);
}

static void on_progress(void *ctx, const struct uni_record_stats *st, uint64_t elapsed_ns)
{
	((struct seen *)ctx)->progresses += st->host_ns == 700;
}

static int setup(void **state)
{
	const struct uni_gmem_region region = { .start = MEM_GVA, .size = 32 };
	struct bench *b = calloc(1, sizeof(*b));
	int rc = b == NULL;

	*state = b;
	for (uint32_t i = 0; rc == 0 && i < MAX; i++) {
		b->seen[i].b = b;
		b->f[i] = (struct fake){ .t = { .ops = &fake_ops, .arch = &uni_arch_x86_64 },
			.caps = UNI_CAP_HOLD | UNI_CAP_STREAM,
			.per_read = 70 };
		b->job[i].t = &b->f[i].t;
		b->job[i].cfg = (struct uni_sampler_cfg){ .guest = i,
			.frequency = 500,
			.duration_ns = 500 * MS,
			.max_duty = 0.1,
			.unwinder = &b->u,
			.stop = &b->stop,
			.on_sample = on_sample,
			.on_progress = on_progress,
			.ctx = &b->seen[i] };
		rc = uni_gmem_create(
			&fake_gmem_ops, &b->f[i], UNI_GMEM_VIRTUAL, &region, 1, &b->f[i].m, NULL);
	}
	if (rc == 0)
		uni_unwinder_init(&b->u, &uni_arch_x86_64, &b->hints);
	return rc;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	for (uint32_t i = 0; i < MAX; i++)
		uni_gmem_destroy(b->f[i].m);
	for (uint32_t i = 0; i < MAX; i++)
		uni_record_stats_deinit(&b->job[i].stats);
	free(b);
	return 0;
}

static void run_one(struct bench *b)
{
	uni_sampler_run_all(b->job, 1);
	assert_int_equal(b->seen[0].wrong, 0);
	assert_int_equal(b->job[0].stats.samples, b->seen[0].nr);
	assert_int_equal(b->job[0].stats.weight, b->seen[0].weight);
}

static void samples_become_ours(void **state)
{
	struct bench *b = *state;
	const struct uni_record_stats *st = &b->job[0].stats;
	uint64_t without, sum = 0;

	b->f[0].at_stop = 70;
	b->job[0].cfg.duration_ns = 1000 * MS;
	run_one(b);
	assert_int_equal(b->job[0].rc, 0);
	assert_int_equal(b->job[0].end, UNI_END_DURATION);
	assert_string_equal(uni_sampler_method(&b->f[0].t), "fake");
	assert_true(b->f[0].started.ordered);
	assert_true(b->f[0].started.frequency == 500);
	assert_int_equal(b->f[0].started.exits_every, 0);
	assert_ptr_equal(b->f[0].hints, &b->hints);
	/* Few reads, and no sample of theirs or of the end is missing. */
	assert_in_range(b->f[0].reads, 2, 6);
	assert_int_equal(b->f[0].stops, 1);
	assert_int_equal(b->f[0].made, 70 * b->f[0].reads);
	/* Without a chain and in the guest, that is n = 0, 77, 154, ...: nothing to keep. */
	without = (b->f[0].made + 76) / 77;
	assert_int_equal(st->samples, b->f[0].made - without);
	assert_true(st->failed >= 5 + without);
	for (unsigned i = 0; i < UNI_VCPU_STATE_NR; i++)
		sum += st->state[i];
	assert_int_equal(sum, st->weight);
	assert_true(st->weight > st->samples);
	assert_true(b->seen[0].of_state[UNI_VCPU_STOLEN] > 0);
	assert_int_equal(st->truncated, st->stop[UNI_STOP_FAULT]);
	assert_int_equal(st->truncated + st->stop[UNI_STOP_ROOT], st->weight);
	assert_int_equal(st->lost, 11);
	assert_int_equal(st->host_ns, 700);
	assert_int_equal(st->host_runs, 7);
	assert_int_equal(st->serve_ns, 9);
	/* A tenth of the time, as the fake clock has it. */
	assert_in_range(st->own_cpu_ns, 95 * MS, 105 * MS);
	assert_int_equal(st->nr_times, 4);
	assert_int_equal(st->times[1].guest_ns, 101);
	assert_int_equal(st->times[2].guest_ns, 0);
	assert_int_equal(st->times[3].guest_ns, 103);
	assert_true(st->end_ns - st->begin_ns >= 1000 * MS);
	assert_true(b->seen[0].progresses >= 1);
	/* The guest was never stopped, nor even looked at. */
	assert_int_equal(b->f[0].snaps, 0);
	assert_int_equal(st->pause.nr, 0);
}

/* A target that took long to get ready says when it began; one that does not, when it was asked. */
static void begins_when_the_target_does(void **state)
{
	struct bench *b = *state;
	uint64_t before_ns = uni_now_ns();

	b->job[0].cfg.duration_ns = 50 * MS;
	run_one(b);
	assert_in_range(b->job[0].stats.begin_ns, before_ns, b->job[0].stats.end_ns - 50 * MS);
	b->f[0].begin_ns = uni_now_ns() - 40 * MS;
	b->seen[0].nr = b->seen[0].weight = 0;
	run_one(b);
	assert_int_equal(b->job[0].stats.begin_ns, b->f[0].begin_ns);
}

static void stops_when_asked(void **state)
{
	struct bench *b = *state;

	b->job[0].cfg.duration_ns = 0;
	b->seen[0].stop_after = 100;
	b->f[0].at_stop = 30;
	run_one(b);
	assert_int_equal(b->job[0].rc, 0);
	assert_int_equal(b->job[0].end, UNI_END_STOPPED);
	assert_int_equal(b->f[0].made, 170); /* what was left was read after the stop */
}

static void guests_end(void **state)
{
	struct bench *b = *state;

	b->job[0].cfg.duration_ns = b->job[1].cfg.duration_ns = 0;
	b->f[0].gone_after = 2;
	b->f[1].dead = true;
	uni_sampler_run_all(b->job, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(b->job[i].rc, 0);
		assert_int_equal(b->job[i].end, UNI_END_GONE);
		assert_int_equal(b->f[i].stops, 1);
	}
	assert_int_equal(b->f[0].made, 140);
	assert_int_equal(b->f[1].made, 70);
	assert_true(b->seen[0].nr > b->seen[1].nr);
}

static void counts_are_read_seldom(void **state)
{
	struct bench *b = *state;

	b->job[0].cfg.counts = true;
	run_one(b);
	assert_false(b->f[0].started.ordered);
	assert_int_equal(b->f[0].reads, 1); /* at the end */
}

#define READS	 12
#define SLACK_NS (20 * UNI_NSEC_PER_USEC)

/* Each read comes one period after the last one, but for what looking at the clock takes. */
static void reads_are_apart(struct bench *b, double frequency, uint64_t period)
{
	struct fake *f = &b->f[0];

	b->job[0].cfg.frequency = frequency;
	b->job[0].cfg.duration_ns = 0;
	f->gone_after = READS;
	f->least_ns = UINT64_MAX;
	run_one(b);
	assert_in_range(f->least_ns, period - SLACK_NS, period + SLACK_NS);
	assert_in_range(f->most_ns, period - SLACK_NS, period + SLACK_NS);
}

/* Two vCPUs: at 2000 Hz each 200 ms, at 100 kHz each 20 ms. */
static void usual_rates_are_read_seldom(void **state)
{
	reads_are_apart(*state, 2000, 200 * MS);
}

static void high_rates_are_read_often(void **state)
{
	reads_are_apart(*state, 100000, 20 * MS);
}

/* At 2000 Hz with 14 plugged in, each 62.5 ms: from the second time on. */
static void more_vcpus_are_read_more_often(void **state)
{
	struct bench *b = *state;

	b->f[0].plugged = 15;
	reads_are_apart(b, 2000, 62500 * UNI_NSEC_PER_USEC);
}

/* A stream whose ticks must get another period: at 99 Hz after 8 samples, each 81 ms. */
static void turning_streams_are_read_often(void **state)
{
	struct bench *b = *state;

	b->f[0].turn_samples = 8;
	reads_are_apart(b, 99, 8 * UNI_NSEC_PER_SEC / 99);
}

static void failing_for_good_gives_up(void **state)
{
	struct bench *b = *state;

	b->job[0].cfg.duration_ns = 0;
	b->f[0].fail_read = -UNI_EIO;
	run_one(b);
	assert_int_equal(b->job[0].rc, -UNI_EIO);
	assert_non_null(strstr(b->job[0].err.msg, "fake"));
	assert_int_equal(b->f[0].stops, 1);
}

static void watches_hold_the_guest(void **state)
{
	struct bench *b = *state;
	struct uni_watch w = { .name = "counter", .gva = MEM_GVA + 8, .size = 8 };
	uint64_t first, last;

	b->job[0].cfg.watch = &w;
	b->job[0].cfg.nr_watch = 1;
	run_one(b);
	assert_non_null(w.last);
	memcpy(&first, w.first, 8);
	memcpy(&last, w.last, 8);
	assert_true(last > first);
	assert_true(w.t_last_ns > w.t_first_ns + 400 * MS);
	assert_int_equal(b->f[0].snaps, 3); /* to get ready, at the beginning, at the end */
	assert_int_equal(b->job[0].stats.pause.nr, 3);
	assert_false(b->f[0].held);
	free(w.first);
	free(w.last);
}

/* Two that stream, one of which cannot start, and one that is paused: each for itself. */
static void guests_do_not_mind_each_other(void **state)
{
	struct bench *b = *state;

	b->f[0].caps = UNI_CAP_HOLD;
	b->f[1].fail_start = -UNI_EPERM;
	b->f[2].gone_after = 2;
	b->job[2].cfg.duration_ns = 0;
	uni_sampler_run_all(b->job, 3);
	assert_string_equal(uni_sampler_method(&b->f[0].t), "pause");
	assert_int_equal(b->job[0].rc, 0);
	assert_int_equal(b->job[0].end, UNI_END_DURATION);
	assert_true(b->job[0].stats.ticks > 5);
	assert_int_equal(b->job[0].stats.pause.nr, 2 * b->job[0].stats.ticks);
	assert_int_equal(b->job[1].rc, -UNI_EPERM);
	assert_non_null(strstr(b->job[1].err.msg, "no such map"));
	assert_int_equal(b->job[2].rc, 0);
	assert_int_equal(b->job[2].end, UNI_END_GONE);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(b->seen[i].wrong, 0);
		assert_int_equal(b->seen[i].nr, b->job[i].stats.samples);
	}
	assert_int_equal(b->seen[1].nr, 0);
	/* Streams are read by who called. */
	assert_true(pthread_equal(b->seen[2].thread, pthread_self()));
	assert_false(pthread_equal(b->seen[0].thread, pthread_self()));
}

/* The gate is open, so that it can be closed, only while no guest is held: then the process may be
 * stopped. */
static void the_gate_keeps_guests_running(void **state)
{
	struct bench *b = *state;
	pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
	struct uni_watch w = { .name = "counter", .gva = MEM_GVA + 8, .size = 8 };

	b->f[0].caps = UNI_CAP_HOLD; /* by pauses; then a stream with a watch */
	for (unsigned i = 0; i < 2; i++) {
		b->f[i].gate = b->job[i].cfg.gate = &gate;
		b->job[i].cfg.watch = i == 1 ? &w : NULL;
		b->job[i].cfg.nr_watch = i;
		uni_sampler_run_all(&b->job[i], 1);
		assert_int_equal(b->job[i].rc, 0);
		assert_int_equal(b->seen[i].wrong, 0);
		assert_int_equal(b->f[i].gate_open, 0);
		assert_true(b->f[i].snaps > 2 && b->seen[i].nr > 0);
		assert_true(can_close(&gate));
	}
	free(w.first);
	free(w.last);
	(void)pthread_rwlock_destroy(&gate);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(samples_become_ours),
		T(begins_when_the_target_does),
		T(stops_when_asked),
		T(guests_end),
		T(counts_are_read_seldom),
		T(usual_rates_are_read_seldom),
		T(high_rates_are_read_often),
		T(more_vcpus_are_read_more_often),
		T(turning_streams_are_read_often),
		T(failing_for_good_gives_up),
		T(watches_hold_the_guest),
		T(guests_do_not_mind_each_other),
		T(the_gate_keeps_guests_running),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
