/* SPDX-License-Identifier: BSD-2-Clause */
/* A made-up target in made-up time, for the test of the sampler. */
#ifndef UNI_TESTS_SAMPLER_FAKE_H
#define UNI_TESTS_SAMPLER_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
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
	uint64_t flags;	       /* RFLAGS of all vCPUs; 0: not known */
	/* Percent of the time that its thread is on a CPU, and waits for one; 0: not told. */
	uint64_t on_percent, ready_percent;
	uint64_t awake_every; /* one snap of so many finds it awake, and others halted; 0: state */

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
		if (f->awake_every != 0)
			ret[v].state =
				f->snaps % f->awake_every == 0 ? UNI_VCPU_RUNNING : UNI_VCPU_HALTED;
		ret[v].pc_valid = ret[v].sp_valid = f->state[v] < UNI_VCPU_OFFLINE;
		ret[v].pc = 0x1000 + v;
		ret[v].sp = MEM_GVA;
		uni_regs_set(&ret[v], UNI_X86_RAX, f->moves ? f->snaps : 0);
		if (f->flags != 0)
			uni_regs_set_sys(&ret[v], UNI_X86_RFLAGS, f->flags);
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

static int fake_host_times(
	struct uni_target *t, uint32_t vcpu, uint64_t *on_ret, uint64_t *ready_ret)
{
	struct fake *f = (struct fake *)t;

	*on_ret = fake_ns / 100 * f->on_percent;
	*ready_ret = fake_ns / 100 * f->ready_percent;
	return f->on_percent != 0 ? 0 : -UNI_ENOTSUP;
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
	.host_times = fake_host_times,
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
	uint64_t pause_ns, pause_max_ns; /* of the samples: the sum, and the longest */
	bool hides_cpu;			 /* the target does not tell how long its vCPUs had a CPU */
	uint64_t stop_after, die_after;	 /* samples */
	uint64_t stop_at_progress;	 /* its number */
	uint64_t gap_ns;		 /* at least, between two samples of a vCPU */
};

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct bench *b = ctx;
	bool right = s->nr > 0 && s->pc[0] == 0x1000 + s->vcpu && s->weight >= 1;

	for (unsigned i = 1; i < s->nr; i++)
		right = right && s->pc[i] == 0x2000 + i;
	right = right && s->stop == UNI_STOP_ROOT && s->nr == DEPTH + 1;
	b->nr++;
	b->pause_ns += s->pause_ns;
	b->pause_max_ns = uni_max(b->pause_max_ns, s->pause_ns);
	if (!right || b->f.held || s->t_ns < b->last_ns + (b->nr > 1 ? b->gap_ns : 0))
		b->wrong++;
	b->last_ns = s->t_ns;
	if (b->nr == b->stop_after)
		atomic_store(&b->stop, true);
	if (b->nr == b->die_after)
		b->f.dead = true;
}

static void on_progress(void *ctx, const struct uni_record_stats *st, uint64_t elapsed_ns)
{
	struct bench *b = ctx;

	b->progresses++;
	if (b->progresses == b->stop_at_progress)
		atomic_store(&b->stop, true);
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

static inline int bench_run(struct bench *b)
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

static inline uint64_t wall(const struct bench *b)
{
	return b->stats.end_ns - b->stats.begin_ns;
}

#endif
