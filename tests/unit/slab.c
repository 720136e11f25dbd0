/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is fetched while a vCPU is held, and chains that are followed afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "arch/cfi.h"
#include "base/checked.h"
#include "base/clock.h"
#include "mem/as.h"
#include "sampling/sampler.h"
#include "sampling/slab.h"
#include "../support/fake_time.h"

#define BASE  0x100000ull
#define SIZE  (1u << 20)
#define STACK (BASE + 0x40000)
#define PC    (BASE + 0x10)

/* A guest of one array that says when it was looked at. */
struct fake {
	struct uni_target t;
	struct uni_gmem *m;
	uint8_t ram[SIZE];
	unsigned reads, many, pieces; /* requests of each kind, and pieces of the latter */
	bool held;
	unsigned while_running;
	unsigned most; /* pieces that one request may have; 0: no such requests */
	unsigned snaps;
};

static int fake_read(
	void *ctx, const struct uni_gmem_region *r, uint64_t offset, void *buf, size_t len)
{
	struct fake *f = ctx;

	f->reads++;
	f->while_running += !f->held;
	memcpy(buf, f->ram + offset, len);
	return 0;
}

static int fake_read_many(void *ctx, const struct uni_gmem_piece *piece, size_t nr)
{
	struct fake *f = ctx;

	f->many++;
	f->pieces += (unsigned)nr;
	f->while_running += !f->held;
	nr = uni_min(nr, (size_t)f->most);
	for (size_t i = 0; i < nr; i++)
		memcpy(piece[i].buf, f->ram + piece[i].offset, piece[i].len);
	return (int)nr;
}

static unsigned fake_caps(struct uni_target *t)
{
	return UNI_CAP_HOLD;
}

static struct uni_gmem *fake_gmem(struct uni_target *t)
{
	return ((struct fake *)t)->m;
}

static int fake_nr_vcpus(struct uni_target *t)
{
	return 1;
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags);
static int fake_release(struct uni_target *t);

static const struct uni_target_ops target_ops = { .caps = fake_caps,
	.nr_vcpus = fake_nr_vcpus,
	.snap = fake_snap,
	.release = fake_release,
	.gmem = fake_gmem };

static void open_fake(struct fake *f, unsigned most)
{
	static const struct uni_gmem_region region = { .start = BASE, .size = SIZE };
	static const struct uni_gmem_ops with = { .read = fake_read, .read_many = fake_read_many };
	static const struct uni_gmem_ops without = { .read = fake_read };

	memset(f, 0, sizeof(*f));
	f->t.ops = &target_ops;
	f->most = most;
	f->held = true;
	assert_int_equal(uni_gmem_create(most != 0 ? &with : &without, f, UNI_GMEM_VIRTUAL, &region,
				 1, &f->m, NULL),
		0);
}

static void put64(struct fake *f, uint64_t at, uint64_t v)
{
	memcpy(f->ram + (at - BASE), &v, sizeof(v)); /* tests run on little-endian hosts */
}

static uint8_t read_byte(struct uni_as *as, uint64_t at)
{
	uint8_t b = 0;

	assert_int_equal(uni_as_read(as, uni_gva_of(at), &b, 1), 0);
	return b;
}

static void prefetched(void **state)
{
	static struct fake f;
	struct uni_as *as;
	uint8_t b;

	open_fake(&f, 32);
	assert_int_equal(uni_as_create(f.m, &uni_as_budget_once, &as, NULL), 0);
	f.ram[0] = f.ram[0x5000] = f.ram[0x9000] = 1;
	uni_as_begin(as, NULL);
	uni_as_prefetch(as); /* knows nothing yet */
	assert_int_equal(read_byte(as, BASE) + read_byte(as, BASE + 0x5000), 2);
	assert_int_equal(f.reads, 2);
	assert_int_equal(f.pieces, 0);
	/* The next sample has both in one request, as they are now. */
	f.ram[0] = f.ram[0x5000] = 2;
	uni_as_begin(as, NULL);
	uni_as_prefetch(as);
	assert_int_equal(f.many, 1);
	assert_int_equal(f.pieces, 2);
	assert_int_equal(uni_as_stats(as)->bytes, 2 * 4096);
	uni_as_seal(as);
	f.ram[0] = 3;
	assert_int_equal(read_byte(as, BASE) + read_byte(as, BASE + 0x5000), 4);
	assert_false(uni_as_missed(as));
	assert_int_equal(uni_as_read(as, uni_gva_of(BASE + 0x9000), &b, 1), -UNI_EFAULT);
	assert_true(uni_as_missed(as));
	assert_int_equal(f.reads, 2);
	/* A new sample may ask again. Pages that nobody needed for long are forgotten. */
	for (unsigned i = 0; i < 70; i++) {
		uni_as_begin(as, NULL);
		assert_false(uni_as_missed(as));
		assert_int_equal(read_byte(as, BASE + 0x9000), 1);
	}
	f.pieces = 0;
	uni_as_begin(as, NULL);
	uni_as_prefetch(as);
	assert_int_equal(f.pieces, 1);
	uni_as_destroy(as);
	uni_gmem_destroy(f.m);
}

/* A request that is answered in part, or would cost more than the sample's budget. */
static void prefetched_in_part(void **state)
{
	static const struct uni_as_budget small = { .bytes = 4 * 4096, .table_loads = 16 };
	static struct fake f;
	struct uni_as *as;

	open_fake(&f, 2);
	assert_int_equal(uni_as_create(f.m, &small, &as, NULL), 0);
	for (unsigned i = 0; i < 10; i++) {
		f.ram[0x1000 * i] = (uint8_t)i;
		uni_as_begin(as, NULL);
		assert_int_equal(read_byte(as, BASE + 0x1000 * i), i);
	}
	f.reads = 0;
	uni_as_begin(as, NULL);
	uni_as_prefetch(as);
	assert_int_equal(f.pieces, 4);
	assert_int_equal(uni_as_stats(as)->bytes, 2 * 4096);
	for (unsigned i = 8; i < 10; i++)
		assert_int_equal(read_byte(as, BASE + 0x1000 * i), i);
	assert_in_range(f.reads, 0, 2);
	uni_as_destroy(as);
	uni_gmem_destroy(f.m);
}

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

struct fixture {
	struct fake f;
	struct uni_unwind_hints hints;
	struct uni_unwinder u;
	struct uni_slab *slab;
	struct uni_regs regs;
	struct uni_chain chain;
	unsigned nr, short_chains, deep; /* samples */
	unsigned every;			 /* one of so many is deep */
	unsigned cut;			 /* chains that end before their root */
	unsigned right;			 /* samples whose leaf TCG's skid does not bend */
};

static void open_fixture(struct fixture *x, unsigned most)
{
	memset(x, 0, sizeof(*x));
	open_fake(&x->f, most);
	x->hints =
		(struct uni_unwind_hints){ .text_start = BASE, .text_size = 0x1000, .cfi = &table };
	uni_unwinder_init(&x->u, &uni_arch_x86_64, &x->hints);
	assert_int_equal(uni_slab_create(&x->f.t, &x->u, 2, NULL, false, &x->slab, NULL), 0);
	x->regs = (struct uni_regs){ .pc = PC, .pc_valid = true, .sp_valid = true };
}

static void close_fixture(struct fixture *x)
{
	uni_slab_destroy(x->slab);
	uni_gmem_destroy(x->f.m);
}

/* nr frames, each so many bytes above the other, from sp on. */
static void frames(struct fixture *x, uint64_t sp, unsigned nr, uint64_t bytes)
{
	for (unsigned i = 0; i < nr; i++) {
		put64(&x->f, sp + i * bytes, i + 1 < nr ? sp + (i + 1) * bytes : 0);
		put64(&x->f, sp + i * bytes + 8, i + 1 < nr ? PC + i : 0);
	}
	x->regs.sp = sp;
	uni_regs_set(&x->regs, UNI_X86_RBP, sp);
}

static void run_on(struct fixture *x)
{
	x->f.held = false;
	memset(x->f.ram + 0x1000, 0xee, SIZE - 0x1000);
}

/* Held, copied, let go; then the guest writes over its stack, and only now we look at it. */
static bool sample(struct fixture *x, unsigned vcpu)
{
	bool ok;

	x->f.held = true;
	uni_slab_take(x->slab, vcpu, &x->regs, &x->chain);
	run_on(x);
	ok = uni_slab_unwind(x->slab, vcpu, &x->regs, &x->chain);
	assert_int_equal(x->f.while_running, 0);
	return ok;
}

static void chains_of_the_past(void **state)
{
	static struct fixture x;

	open_fixture(&x, 32);
	for (unsigned i = 0; i < 50; i++) {
		frames(&x, STACK + i * 64, 20, 48);
		x.f.reads = x.f.many = 0;
		assert_true(sample(&x, i & 1));
		assert_int_equal(x.chain.nr, 20);
		assert_int_equal(x.chain.stop, UNI_STOP_ROOT);
	}
	/* Once it is known where the stack lies one request is all. */
	assert_int_equal(x.f.many, 1);
	assert_int_equal(x.f.reads, 0);
	close_fixture(&x);
}

static void slabs_that_are_too_small(void **state)
{
	static struct fixture x;

	open_fixture(&x, 32);
	for (unsigned i = 0; i < 400; i++) { /* little is needed, so little is taken */
		frames(&x, STACK, 3, 32);
		assert_true(sample(&x, 0));
	}
	frames(&x, STACK + 0x10000, 300, 128);
	assert_false(sample(&x, 0));
	assert_in_range(x.chain.nr, 1, 299);
	assert_int_equal(x.chain.stop, UNI_STOP_FAULT);
	/* The next ones are followed while it is held, whatever they need. */
	for (unsigned i = 0; i < 200; i++) {
		frames(&x, STACK + 0x10000 + 0x400 * i, i % 50 == 0 ? 300 : 3,
			i % 100 == 0 ? 512 : 128);
		assert_true(sample(&x, 0));
		assert_int_equal(x.chain.nr, i % 50 == 0 ? 300 : 3);
		assert_int_equal(x.chain.stop, UNI_STOP_ROOT);
	}
	/* When enough of them have fitted, they are followed later again. */
	for (unsigned i = 0; i < 100; i++) {
		frames(&x, STACK, 3, 32);
		assert_true(sample(&x, 0));
	}
	frames(&x, STACK + 0x10000, 300, 512);
	assert_false(sample(&x, 0));
	close_fixture(&x);
}

#define DEEP 300u

static unsigned depth(const struct fixture *x)
{
	return x->nr % x->every == x->every - 1 ? DEEP : 3;
}

static int fake_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags)
{
	struct fixture *x = (struct fixture *)t;

	x->f.snaps++;
	x->f.held = true;
	frames(x, STACK, depth(x), 128);
	*ret = x->regs;
	return 0;
}

static int fake_release(struct uni_target *t)
{
	run_on((struct fixture *)t);
	return 0;
}

static void on_sample(void *ctx, const struct uni_sample *s)
{
	struct fixture *x = ctx;

	x->short_chains += s->nr != depth(x) || s->stop != UNI_STOP_ROOT;
	x->deep += depth(x) == DEEP && s->nr > 3;
	x->cut += s->stop != UNI_STOP_ROOT;
	x->right += (s->flags[0] & UNI_FRAME_MOVED) != 0 && s->pc[0] == PC - 1;
	x->nr++;
}

static void run_sampler(struct fixture *x, unsigned every, const struct uni_skid *skid)
{
	const struct uni_sampler_cfg cfg = { .frequency = 500,
		.duration_ns = 2 * UNI_NSEC_PER_SEC,
		.max_duty = 0.1,
		.pause_ns = UINT64_MAX,
		.unwinder = &x->u,
		.on_sample = on_sample,
		.ctx = x };
	struct uni_record_stats stats;
	enum uni_sampler_end end;

	open_fixture(x, 32);
	x->f.t.arch = &uni_arch_x86_64;
	x->every = every;
	x->u.skid = skid;
	x->u.skid_code = &(const struct uni_skid_code){ PC, 1 };
	x->u.nr_skid_code = 1;
	assert_int_equal(uni_sampler_run(&x->f.t, &cfg, &stats, &end, NULL), 0);
	assert_true(x->nr > 800);
	assert_int_equal(x->f.while_running, 0);
	uni_record_stats_deinit(&stats);
}

/* Each sample is of its own moment, however deep its stack is: the vCPU is held once for it. */
static void each_moment_counts(void **state)
{
	static struct fixture x;

	run_sampler(&x, 24, NULL);
	assert_int_equal(x.f.snaps, x.nr);
	assert_int_equal(x.deep, x.nr / 24);
	assert_in_range(x.short_chains, 0, 1);
	close_fixture(&x);
	run_sampler(&x, 400, NULL);
	assert_int_equal(x.f.snaps, x.nr);
	assert_int_equal(x.deep, x.nr / 400);
	assert_in_range(x.short_chains, 1, 2);
	close_fixture(&x);
}

/* Stops at the first byte of a function that is called count for its caller, also where a chain is
 * cut short. */
static void the_leaf_of_a_short_chain(void **state)
{
	static struct fixture x;
	struct uni_skid_call call = { .ret = PC, .callee = PC, .flags = UNI_SKID_ENTERS };
	struct uni_skid_entry entry = { .svma = PC };
	const struct uni_skid skid = { .call = &call, .nr = 1, .entry = &entry, .nr_entries = 1 };

	run_sampler(&x, 400, &skid);
	assert_in_range(x.cut, 1, 2);
	assert_int_equal(x.right, x.nr);
	close_fixture(&x);
}

static void without_registers(void **state)
{
	static struct fixture x;

	open_fixture(&x, 32);
	x.regs.sp_valid = false;
	(void)sample(&x, 0);
	assert_int_equal(x.chain.nr, 1);
	close_fixture(&x);
}

static void of_no_use(void **state)
{
	static struct fixture x;
	struct uni_slab *s;

	open_fixture(&x, 0); /* one piece after the other takes as long as unwinding does */
	assert_null(x.slab);
	close_fixture(&x);
	open_fixture(&x, 32);
	assert_int_equal(uni_unwinder_use(&x.u, "fp", NULL), 0);
	assert_int_equal(uni_slab_create(&x.f.t, &x.u, 1, NULL, false, &s, NULL), 0);
	assert_null(s);
	assert_int_equal(uni_unwinder_use(&x.u, "cfi,fp", NULL), 0);
	x.hints.cfi = NULL;
	assert_int_equal(uni_slab_create(&x.f.t, &x.u, 1, NULL, false, &s, NULL), 0);
	assert_null(s);
	close_fixture(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefetched),
		cmocka_unit_test(prefetched_in_part),
		cmocka_unit_test(chains_of_the_past),
		cmocka_unit_test(slabs_that_are_too_small),
		cmocka_unit_test(each_moment_counts),
		cmocka_unit_test(the_leaf_of_a_short_chain),
		cmocka_unit_test(without_registers),
		cmocka_unit_test(of_no_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
