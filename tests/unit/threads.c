/* SPDX-License-Identifier: BSD-2-Clause */
/* All threads of a guest: what is read while it is held, and what becomes samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/vcpus.h"
#include "arch/cfi.h"
#include "base/checked.h"
#include "base/clock.h"
#include "guest/model.h"
#include "sampling/sampler.h"
#include "sampling/threads.h"

#define BASE	0x100000ull
#define SIZE	(4u << 20)
#define PC	(BASE + 0x10)
#define RESUME	(BASE + 0x800)
#define HEADS	(BASE + 0x2000) /* lab_threads, lab_current */
#define OBJECTS (BASE + 0x10000)
#define STACKS	(BASE + 0x100000)
#define SAMPLES 60

/* A guest of one array, with threads as the lab's; it says when it was looked at. */
struct fake {
	struct uni_target t;
	struct uni_gmem *m;
	uint8_t *ram;
	bool held, many;
	bool free, dead; /* it is never held; nobody waits while it is */
	unsigned while_running;
	uint64_t holds;
	uint64_t slow_ns;	/* for what is read of the list */
	uint64_t slow_stack_ns; /* for stacks, but for the first `quick` reads */
	int quick;
	uint8_t state; /* of its vCPU */
};

struct bench {
	struct fake f;
	struct uni_unwind_hints hints;
	struct uni_unwinder u;
	struct uni_model model;
	struct uni_threads *threads;
	struct uni_regs regs;
	/* Seen by the callbacks. */
	struct uni_record_thread known[64];
	uint32_t nr_known;
	uint64_t of_state[UNI_VCPU_STATE_NR], of_thread[65], wrong, nr;
	atomic_bool stop;
};

static int fake_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct fake *f = ctx;

	const struct timespec slow = uni_ns_timespec(f->slow_ns);
	const struct timespec slow_stack = uni_ns_timespec(f->slow_stack_ns);

	f->while_running += !f->held && !f->free;
	if (f->slow_ns != 0 && offset >= OBJECTS - BASE && offset < STACKS - BASE)
		(void)nanosleep(&slow, NULL);
	if (f->slow_stack_ns != 0 && offset >= STACKS - BASE && f->quick-- <= 0)
		(void)nanosleep(&slow_stack, NULL);
	memcpy(buf, f->ram + offset, len);
	return 0;
}

static int fake_read_many(void *ctx, const struct uni_gmem_piece *piece, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		(void)fake_read(ctx, piece[i].r, piece[i].offset, piece[i].buf, piece[i].len);
	return (int)nr;
}

static unsigned fake_caps(struct uni_target *t)
{
	const struct fake *f = (const struct fake *)t;

	return (f->free ? 0u : UNI_CAP_HOLD) | (f->dead ? UNI_CAP_DEAD : 0u);
}

static int fake_nr_vcpus(struct uni_target *t)
{
	return 1;
}

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->m;
}

static bool fake_alive(struct uni_target *t)
{
	return true;
}

static void put64(struct fake *f, uint64_t at, uint64_t v)
{
	memcpy(f->ram + (at - BASE), &v, sizeof(v)); /* tests run on little-endian hosts */
}

static void put32(struct fake *f, uint64_t at, uint32_t v)
{
	memcpy(f->ram + (at - BASE), &v, sizeof(v));
}

static uint64_t object(unsigned i)
{
	return OBJECTS + i * 0x100ull;
}

/* nr frames from sp on, with a frame pointer each; the last one is the root. */
static void put_frames(struct fake *f, uint64_t sp, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		put64(f, sp + i * 48ull, i + 1 < nr ? sp + (i + 1) * 48ull : 0);
		put64(f, sp + i * 48ull + 8, i + 1 < nr ? PC + i : 0);
	}
}

/* Thread i has 3 + i % 20 frames. */
static unsigned depth(unsigned i)
{
	return 3 + i % 20;
}

static void put_thread(struct fake *f, unsigned i, unsigned nr, unsigned state)
{
	uint64_t sp = STACKS + i * 0x2000ull + 0x800;
	char name[32];

	(void)snprintf(name, sizeof(name), "t%u", i);
	put64(f, object(i), i + 1 < nr ? object(i + 1) : 0);
	put64(f, object(i) + 8, sp);
	put64(f, object(i) + 32, state == 3 ? 0x42 : 0);
	put32(f, object(i) + 56, i);
	put32(f, object(i) + 60, state);
	memcpy(f->ram + (object(i) + 64 - BASE), name, sizeof(name));
	put64(f, sp + 40, sp + 64); /* rbp, of what lab_switch left */
	put64(f, sp + 48, PC);
	put_frames(f, sp + 64, depth(i));
}

static void put_all(struct fake *f)
{
	static const uint8_t pops[] = { 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0x5d,
		0xc3 };

	memcpy(f->ram + (RESUME - BASE), pops, sizeof(pops));
	put64(f, HEADS, object(0));
	put64(f, HEADS + 8, object(0));
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fake *f = (struct fake *)t;
	uint64_t sp = STACKS + 0x1000;

	f->held = !f->free;
	f->holds++;
	put_frames(f, sp, 3);
	ret[0] = (struct uni_regs){
		.pc = PC, .sp = sp, .pc_valid = true, .sp_valid = true, .state = f->state
	};
	uni_regs_set(&ret[0], UNI_X86_RBP, sp);
	return 0;
}

static int fake_release(struct uni_target *t)
{
	((struct fake *)t)->held = false;
	return 0;
}

static const struct uni_target_ops target_ops = {
	.scheme = "fake",
	.caps = fake_caps,
	.nr_vcpus = fake_nr_vcpus,
	.snap = fake_snap,
	.release = fake_release,
	.gmem = fake_gmem,
	.alive = fake_alive,
};

/* All code has one rule: a frame pointer's. */
static const struct uni_cfi_rule rules[] = { { .cfa.how = UNI_CFI_NONE },
	{ .cfa = { .how = UNI_CFI_REG, .reg = UNI_X86_RBP, .arg = 16 },
		.ra = { .how = UNI_CFI_AT_CFA, .arg = -8 },
		.fp = { .how = UNI_CFI_AT_CFA, .arg = -16 } } };
static const struct uni_cfi_row rows[] = { { 0, 1 }, { 0x1000, 0 } };
static const uint32_t bucket[] = { 0, 1 };
static const struct uni_cfi_table table = { .base = BASE,
	.row = rows,
	.bucket = bucket,
	.rule = rules,
	.nr_rows = 2,
	.nr_buckets = 2,
	.nr_rules = 2,
	.size = 0x1000,
	.shift = 12 };

static const struct uni_guest_ops *lab_ops(void)
{
	for (size_t i = 0; uni_guest_models[i] != NULL; i++) {
		if (strcmp(uni_guest_models[i]->name, "lab") == 0)
			return uni_guest_models[i];
	}
	fail();
	return NULL;
}

static void open_memory(struct bench *b, bool many)
{
	static const struct uni_gmem_region region = { .start = BASE, .size = SIZE };
	static const struct uni_gmem_ops with = { .read = fake_read, .read_many = fake_read_many };
	static const struct uni_gmem_ops without = { .read = fake_read };

	b->f.ram = calloc(1, SIZE);
	assert_non_null(b->f.ram);
	assert_int_equal(uni_gmem_create(many ? &with : &without, &b->f, UNI_GMEM_VIRTUAL, &region,
				 1, &b->f.m, NULL),
		0);
}

static struct bench *open_bench(bool many)
{
	struct bench *b = calloc(1, sizeof(*b));
	struct uni_err err = { 0 };

	assert_non_null(b);
	b->f.t.ops = &target_ops;
	b->f.t.arch = &uni_arch_x86_64;
	open_memory(b, many);
	b->hints =
		(struct uni_unwind_hints){ .text_start = BASE, .text_size = 0x1000, .cfi = &table };
	uni_unwinder_init(&b->u, &uni_arch_x86_64, &b->hints);
	assert_int_equal(uni_unwinder_use(&b->u, "cfi", &err), 0);
	b->model = (struct uni_model){
		.ops = lab_ops(), .arch = &uni_arch_x86_64, .sym = { HEADS, HEADS + 8, RESUME }
	};
	/* Only read. */
	b->model.member = (struct uni_member *)(uintptr_t)b->model.ops->known;
	assert_int_equal(
		uni_threads_create(&b->f.t, &b->u, &b->model, UINT64_MAX, &b->threads, &err), 0);
	put_all(&b->f);
	return b;
}

static void close_bench(struct bench *b)
{
	uni_threads_destroy(b->threads);
	uni_gmem_destroy(b->f.m);
	free(b->f.ram);
	free(b);
}

/* Held, copied, let go; then the guest writes over its stacks, and only now we look at them. */
static bool look(struct bench *b)
{
	uint8_t *stacks = b->f.ram + (STACKS - BASE);
	uint8_t *copy = malloc(SIZE);
	bool again;

	assert_non_null(copy);
	uni_threads_prepare(b->threads);
	(void)fake_snap(&b->f.t, VCPUS(1), &b->regs, UNI_SNAP_HOLD);
	uni_threads_take(b->threads, &b->regs, 1);
	b->f.held = false;
	memcpy(copy, stacks, SIZE - (STACKS - BASE));
	memset(stacks, 0xee, SIZE - (STACKS - BASE));
	again = uni_threads_unwind(b->threads);
	memcpy(stacks, copy, SIZE - (STACKS - BASE));
	free(copy);
	assert_int_equal(b->f.while_running, 0);
	return again;
}

static void expect_chains(struct bench *b, unsigned nr)
{
	const struct uni_thread_list *list = uni_threads_list(b->threads);

	assert_int_equal(list->nr, nr);
	assert_null(uni_threads_chain(b->threads, 0)); /* it is on the vCPU */
	assert_int_equal(list->v[0].vcpu, 0);
	for (uint32_t i = 1; i < nr; i++) {
		const struct uni_chain *c = uni_threads_chain(b->threads, i);

		assert_non_null(c);
		assert_int_equal(c->nr, depth(i));
		assert_int_equal(c->stop, UNI_STOP_ROOT);
		assert_int_equal(c->pc[0], PC);
		assert_int_equal(c->pc[1], PC);
		assert_int_equal(c->pc[2], PC + 1);
	}
	assert_null(uni_threads_chain(b->threads, nr));
}

static void chains_after_the_pause(void **state)
{
	for (unsigned many = 0; many < 2; many++) {
		struct bench *b = open_bench(many);

		for (unsigned i = 0; i < 9; i++)
			put_thread(&b->f, i, 9, i == 0 ? 0 : 3);
		for (unsigned i = 0; i < 5; i++) {
			assert_false(look(b));
			expect_chains(b, 9);
		}
		assert_int_equal(uni_threads_list(b->threads)->v[3].wait_on, 0x42);
		close_bench(b);
	}
}

static void room_grows_between_looks(void **state)
{
	struct bench *b = open_bench(true);

	for (unsigned i = 0; i < 100; i++)
		put_thread(&b->f, i, 100, i == 0 ? 0 : 1);
	(void)look(b);
	assert_int_equal(uni_threads_list(b->threads)->cut, UNI_THREADS_MORE);
	expect_chains(b, 32);
	(void)look(b);
	assert_int_equal(uni_threads_list(b->threads)->cut, UNI_THREADS_WHOLE);
	expect_chains(b, 100);
	close_bench(b);
}

static void no_registers_no_threads(void **state)
{
	struct bench *b = open_bench(true);

	put_thread(&b->f, 0, 1, 3);
	assert_false(look(b));
	b->regs.pc_valid = false;
	b->f.held = true;
	uni_threads_take(b->threads, &b->regs, 1);
	assert_int_equal(uni_threads_list(b->threads)->nr, 0);
	assert_false(uni_threads_unwind(b->threads));
	close_bench(b);
}

static void numbers_of_threads(void **state)
{
	struct uni_thread_ids *ids = uni_thread_ids_create();
	struct uni_guest_thread t = { .object = 0x1000, .name = "a" };
	const struct uni_record_thread *is_new;

	assert_non_null(ids);
	assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), 1);
	assert_true(is_new != NULL && is_new->id == 1 && is_new->object == 0x1000);
	assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), 1);
	assert_null(is_new);
	/* Memory that is used again, by another one. */
	(void)snprintf(t.name, sizeof(t.name), "b");
	assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), 2);
	t.has_number = true;
	t.number = 7;
	assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), 3);
	assert_true(is_new != NULL && is_new->has_number && is_new->number == 7);
	for (uint32_t i = 4; i <= UNI_SESSION_THREADS_MAX; i++) {
		t.number = 1000 + i;
		assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), i);
	}
	t.number = 0;
	assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), 0);
	assert_null(is_new);
	t.number = 1009;
	assert_int_equal(uni_thread_ids_get(ids, &t, &is_new), 9);
	uni_thread_ids_destroy(ids);
}

static void on_thread(void *ctx, const struct uni_record_thread *t)
{
	struct bench *b = ctx;

	b->wrong += b->f.held || t->id != b->nr_known + 1 || b->nr_known == 64;
	b->known[b->nr_known++ % 64] = *t;
}

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct bench *b = ctx;

	b->nr++;
	b->wrong += b->f.held || s->thread > b->nr_known;
	/* A slow host may break the vCPU's chain. */
	b->wrong += s->stop != UNI_STOP_ROOT && b->f.slow_ns == 0;
	b->of_state[s->state]++;
	if (s->thread <= b->nr_known)
		b->of_thread[s->thread]++;
	if (b->nr == SAMPLES)
		atomic_store(&b->stop, true);
}

static void run_for(struct bench *b, bool all, uint64_t pause_ns, struct uni_record_stats *st)
{
	struct uni_sampler_cfg cfg = { .frequency = 200,
		.max_duty = 1,
		.pause_ns = pause_ns,
		.unwinder = &b->u,
		.model = &b->model,
		.threads = all,
		.stop = &b->stop,
		.on_thread = on_thread,
		.on_sample = on_sample,
		.ctx = b };
	enum uni_sampler_end end;
	struct uni_err err = { 0 };

	assert_int_equal(uni_sampler_run(&b->f.t, &cfg, st, &end, &err), 0);
	assert_int_equal(b->wrong, 0);
	assert_int_equal(b->f.while_running, 0);
	assert_int_equal(end, UNI_END_STOPPED);
	assert_true(st->ticks >= SAMPLES / 4);
	assert_int_equal(st->samples, b->nr);
}

static void sample_threads(struct bench *b, bool all, struct uni_record_stats *st)
{
	run_for(b, all, UINT64_MAX, st); /* a busy host is no broken chain */
	assert_int_equal(st->failed, 0);
	assert_int_equal(st->short_lists, 0);
}

/* By states: running, ready, sleeping, blocked, exited. */
static void put_five(struct bench *b)
{
	for (unsigned i = 0; i < 5; i++)
		put_thread(&b->f, i, 5, i);
}

static void every_thread_on_each_tick(void **state)
{
	struct bench *b = open_bench(true);
	struct uni_record_stats st;

	put_five(b);
	sample_threads(b, true, &st);
	assert_int_equal(b->nr, 4 * st.ticks);
	assert_int_equal(b->of_state[UNI_VCPU_RUNNING], st.ticks);
	assert_int_equal(b->of_state[UNI_OFF_CPU_READY], st.ticks);
	assert_int_equal(b->of_state[UNI_OFF_CPU_SLEEPING], st.ticks);
	assert_int_equal(b->of_state[UNI_OFF_CPU_BLOCKED], st.ticks);
	assert_int_equal(b->nr_known, 4);
	assert_int_equal(b->of_thread[0], 0);
	assert_string_equal(b->known[0].name, "t0");
	assert_string_equal(b->known[3].name, "t3");
	assert_true(b->known[3].has_number && b->known[3].number == 3);
	for (unsigned i = 1; i <= 4; i++)
		assert_int_equal(b->of_thread[i], st.ticks);
	close_bench(b);
}

/* A host that is slow cuts the list: it says so. One look that is asked for gets all of it. */
static void reading_takes_longer_than_a_pause(void **state)
{
	struct bench *b = open_bench(false);
	struct uni_record_stats st;
	struct uni_err err = { 0 };

	for (unsigned i = 0; i < 20; i++)
		put_thread(&b->f, i, 20, i == 0 ? 0 : 4);
	b->f.slow_ns = 3 * UNI_NSEC_PER_MSEC;
	(void)look(b);
	assert_false(uni_threads_are_short(b->threads));
	assert_int_equal(uni_threads_list(b->threads)->nr, 20);
	run_for(b, true, 2 * UNI_NSEC_PER_MSEC, &st);
	assert_int_equal(st.short_lists, st.ticks);
	/* Nobody waits for it. */
	for (unsigned i = 0; i < 2; i++) {
		b->f.free = i == 0;
		b->f.dead = i == 1;
		b->nr = b->nr_known = 0;
		atomic_store(&b->stop, false);
		run_for(b, true, 2 * UNI_NSEC_PER_MSEC, &st);
		assert_int_equal(st.short_lists, 0);
	}
	b->f.dead = false;
	uni_threads_destroy(b->threads);
	assert_int_equal(uni_threads_create(&b->f.t, &b->u, &b->model, 2 * UNI_NSEC_PER_MSEC,
				 &b->threads, &err),
		0);
	(void)look(b);
	assert_true(uni_threads_list(b->threads)->nr < 20);
	assert_int_equal(uni_threads_list(b->threads)->cut, UNI_THREADS_SPENT);
	assert_true(uni_threads_are_short(b->threads));
	close_bench(b);
}

/* One look has two seconds: over a slow stub, a guest's long list would hold it for minutes. */
static void one_look_has_an_end(void **state)
{
	for (unsigned stacks = 0; stacks < 2; stacks++) {
		struct bench *b = open_bench(false);
		struct uni_err err = { 0 };
		uint64_t begin_ns;

		for (unsigned i = 0; i < 20; i++)
			put_thread(&b->f, i, 20, i == 0 ? 0 : 3);
		uni_threads_destroy(b->threads);
		assert_int_equal(uni_threads_create(&b->f.t, &b->u, &b->model,
					 uni_threads_one_look_ns(&b->f.t), &b->threads, &err),
			0);
		b->f.quick = 20; /* the list: where each thread goes on */
		if (stacks)
			b->f.slow_stack_ns = UNI_THREADS_ONE_LOOK / 4;
		else
			b->f.slow_ns = UNI_THREADS_ONE_LOOK * 5 / 4;
		begin_ns = uni_now_ns();
		(void)look(b);
		assert_true(uni_now_ns() - begin_ns < 3 * UNI_THREADS_ONE_LOOK);
		assert_int_equal(uni_threads_list(b->threads)->cut, UNI_THREADS_SPENT);
		assert_true(stacks == (uni_threads_list(b->threads)->nr == 20));
		/* Nobody waits for these. */
		b->f.free = true;
		assert_true(uni_threads_one_look_ns(&b->f.t) == UNI_THREADS_NO_CLOCK);
		b->f.free = false;
		b->f.dead = true;
		assert_true(uni_threads_one_look_ns(&b->f.t) == UNI_THREADS_NO_CLOCK);
		close_bench(b);
	}
}

/* The scheduler found nothing to run, and halts on the stack of the thread that blocked last. */
static void blocked_on_an_idle_vcpu(void **state)
{
	struct bench *b = open_bench(true);
	struct uni_record_stats st;

	put_thread(&b->f, 0, 2, 3);
	put_thread(&b->f, 1, 2, 2);
	b->f.state = UNI_VCPU_HALTED;
	sample_threads(b, true, &st);
	assert_int_equal(b->nr, 3 * st.ticks);
	assert_int_equal(b->of_state[UNI_VCPU_HALTED], st.ticks);
	assert_int_equal(b->of_state[UNI_OFF_CPU_BLOCKED], st.ticks);
	assert_int_equal(b->of_thread[0], st.ticks); /* the vCPU runs none */
	assert_int_equal(b->of_thread[1], st.ticks);
	close_bench(b);
}

static void only_the_thread_that_runs(void **state)
{
	for (unsigned many = 0; many < 2; many++) {
		struct bench *b = open_bench(many);
		struct uni_record_stats st;

		put_five(b);
		put64(&b->f, HEADS + 8, object(1));
		sample_threads(b, false, &st);
		assert_int_equal(b->nr, st.ticks);
		assert_int_equal(b->nr_known, 1);
		assert_string_equal(b->known[0].name, "t1");
		assert_int_equal(b->of_thread[1], st.ticks);
		close_bench(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_after_the_pause),
		cmocka_unit_test(room_grows_between_looks),
		cmocka_unit_test(no_registers_no_threads),
		cmocka_unit_test(numbers_of_threads),
		cmocka_unit_test(every_thread_on_each_tick),
		cmocka_unit_test(reading_takes_longer_than_a_pause),
		cmocka_unit_test(one_look_has_an_end),
		cmocka_unit_test(blocked_on_an_idle_vcpu),
		cmocka_unit_test(only_the_thread_that_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
