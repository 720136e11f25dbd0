/* SPDX-License-Identifier: BSD-2-Clause */
/* Breakpoints through a stub that behaves as QEMU's: each call once, and the guest always runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "../support/vcpus.h"
#include "../support/fake_stub.h"
#include "base/checked.h"
#include "base/clock.h"
#include "backend/gdb/gdb.h"

#define WITHIN_NS (20 * UNI_NSEC_PER_SEC)
#define PATIENCE  20000 /* of 1 ms */
#define ADDR	  0x402000ull

static const uint64_t one[UNI_BREAKS_MAX] = { ADDR };

struct talk {
	struct uni_gdb_target *t;
	int guardian; /* its end of the pair */
	struct uni_regs regs0;
	struct uni_err err;
	unsigned calls[2];
};

/* Until the fake has handled what was sent last. */
static bool soon(_Atomic bool *flag, bool want)
{
	for (int i = 0; i < PATIENCE && *flag != want; i++)
		(void)usleep(1000);
	return *flag == want;
}

static void begin(struct fake_stub *f, struct talk *k)
{
	struct uni_gdb_target *t = calloc(1, sizeof(*t));
	int pair[2];

	memset(k, 0, sizeof(*k));
	assert_non_null(t);
	k->t = t;
	t->guardian.shared = calloc(1, sizeof(*t->guardian.shared));
	t->regs = calloc(2, sizeof(*t->regs));
	assert_true(t->guardian.shared != NULL && t->regs != NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	t->guardian.sock = pair[0];
	k->guardian = pair[1];
	fake_start(f);
	assert_int_equal(fcntl(f->peer, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(
		uni_gdb_stub_open(&t->stub, f->peer, &uni_arch_x86_64, false, &k->regs0, &k->err),
		0);
	t->stub.breaks = &t->guardian.shared->breaks;
	assert_true(soon(&f->running, true));
	memset(f->log, 0, sizeof(f->log));
}

static void end(struct fake_stub *f, struct talk *k)
{
	uni_gdb_stub_leave(&k->t->stub);
	fake_join(f);
	assert_false(f->crashed);
	assert_true(f->running && f->at[0] == 0);
	(void)close(k->t->guardian.sock);
	(void)close(k->guardian);
	free(k->t->guardian.shared);
	free(k->t->regs);
	free(k->t);
}

static void count_call(void *ctx, unsigned which, uint32_t vcpu, const struct uni_regs *regs)
{
	struct talk *k = ctx;

	assert_int_equal(which, 0);
	assert_int_equal(regs->pc, ADDR);
	k->calls[vcpu]++;
}

static int wait_for(struct talk *k)
{
	struct uni_break_stop stop = { 0 };

	return uni_gdb_break_ops.wait(&k->t->base, uni_now_ns() + WITHIN_NS, count_call, k, &stop);
}

static void each_call_once(void **state)
{
	for (int both = 0; both < 2; both++) {
		struct fake_stub f = { .hits = 3, .both = both != 0 };
		struct talk k;

		begin(&f, &k);
		assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
		assert_true(uni_gdb_guardian_has_lease(&k.t->guardian));
		for (int i = 0; i < 3; i++)
			assert_int_equal(wait_for(&k), 1);
		assert_int_equal(k.calls[0], 3);
		assert_int_equal(k.calls[1], both != 0 ? 3 : 0);
		assert_true(soon(&f.running, true));
		assert_string_equal(f.log, both != 0 ? "ZczssZczssZczssZc" : "ZczsZczsZczsZc");
		assert_int_equal(uni_gdb_break_ops.clear(&k.t->base, 0), 0);
		assert_false(uni_gdb_guardian_has_lease(&k.t->guardian));
		assert_true(soon(&f.running, true));
		assert_int_equal(f.at[0], 0);
		end(&f, &k);
	}
}

/* The stop of a step may be that of another vCPU, which was on its way. */
static void steps_until_it_moved(void **state)
{
	struct fake_stub f = { .hits = 1, .stale = 2 };
	struct talk k;

	begin(&f, &k);
	assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
	assert_int_equal(wait_for(&k), 1);
	assert_true(soon(&f.running, true));
	assert_string_equal(f.log, "ZczsssZc");
	assert_int_equal(k.calls[0], 1);
	end(&f, &k);
}

/* The handler returns to the breakpoint: that is the same call. */
static void an_interrupt_during_the_step(void **state)
{
	struct fake_stub f = { .hits = 2, .interrupts = 1 };
	struct talk k;

	begin(&f, &k);
	assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_for(&k), 1);
	assert_int_equal(k.calls[0], 2);
	assert_true(soon(&f.running, true));
	end(&f, &k);
}

/* A function of one instruction: it leaves the stack that its caller had. */
static void a_return_is_stepped_over(void **state)
{
	struct fake_stub f = { .hits = 3, .returns = true };
	struct talk k;

	begin(&f, &k);
	assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_for(&k), 1);
	assert_int_equal(k.calls[0], 3);
	assert_true(soon(&f.running, true));
	end(&f, &k);
}

/* The profiler died when the guest stood at a breakpoint, or just before: all it knew is shared. */
static void the_guardian_removes_them(void **state)
{
	for (int hits = 0; hits < 2; hits++) {
		struct fake_stub f = { .hits = hits };
		struct uni_gdb_stub *s = calloc(1, sizeof(*s));
		struct talk k;

		assert_non_null(s);
		begin(&f, &k);
		assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
		uni_gdb_link_init(&s->link, dup(k.t->stub.link.fd));
		s->qemu = s->link.implicit_ack = true;
		s->state = UNI_GDB_HELD;
		s->breaks = &k.t->guardian.shared->breaks;
		uni_gdb_stub_leave(s);
		assert_false(uni_gdb_breaks_any(s->breaks));
		assert_true(soon(&f.running, true));
		assert_string_equal(f.log, "Zczc");
		/* Then it says so, and counts nothing. */
		assert_int_equal(wait_for(&k), -UNI_EAGAIN);
		end(&f, &k);
		free(s);
	}
}

/* A hit that is on its way when the breakpoint is removed leaves no guest stopped. */
static void a_hit_at_the_end(void **state)
{
	struct fake_stub f = { .hits = 1 };
	struct talk k;

	begin(&f, &k);
	assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
	assert_int_equal(uni_gdb_break_ops.clear(&k.t->base, 0), 0);
	assert_true(soon(&f.running, true));
	assert_int_equal(k.calls[0], 0);
	end(&f, &k);
}

/* A guest that somebody else has paused is not resumed; it stops at breakpoints after that. */
static void paused_meanwhile(void **state)
{
	struct fake_stub f = { 0 };
	struct uni_break_stop stop;
	struct talk k;

	begin(&f, &k);
	assert_int_equal(uni_gdb_break_ops.set(&k.t->base, one, &k.err), 0);
	assert_true(soon(&f.running, true));
	fake_stop(&f);
	while (k.t->stub.state != UNI_GDB_PAUSED)
		assert_int_equal(uni_gdb_break_ops.wait(&k.t->base,
					 uni_now_ns() + UNI_NSEC_PER_MSEC, count_call, &k, &stop),
			0);
	assert_false(f.running);
	f.pc[1] = ADDR;
	fake_trap(&f, 1);
	assert_int_equal(wait_for(&k), 1);
	assert_int_equal(k.calls[0], 1);
	assert_true(soon(&f.running, true));
	end(&f, &k);
}

static void no_room(void **state)
{
	static const uint64_t five = 0x500000;
	struct fake_stub f = { .at = { 0, 1, 2, 3 } };
	const uint64_t two[UNI_BREAKS_MAX] = { ADDR, five };
	struct talk k;

	begin(&f, &k);
	assert_int_equal(uni_gdb_break_ops.set(&k.t->base, two, &k.err), -UNI_ENOTSUP);
	assert_non_null(strstr(k.err.msg, "no (more) hardware breakpoints"));
	assert_true(soon(&f.running, true));
	assert_false(uni_gdb_breaks_any(k.t->stub.breaks));
	end(&f, &k);
}

/* A step over pushf would leave its flag in the guest. */
extern const struct uni_target_ops uni_target_gdb;

/* Until a VMM that slept has answered, it may stop the guest for a sample that is long over. */
static void settled_once_it_has_answered(void **state)
{
	struct fake_stub f = { 0 };
	struct talk k;

	begin(&f, &k);
	k.t->base.ops = &uni_target_gdb;
	assert_true(uni_target_settled(&k.t->base, 0));
	f.frozen = true;
	assert_int_equal(uni_gdb_stub_snap(&k.t->stub, VCPUS(1), k.t->regs), -UNI_EAGAIN);
	assert_false(uni_target_settled(&k.t->base, 0));
	f.frozen = false;
	assert_true(uni_target_settled(&k.t->base, WITHIN_NS));
	assert_true(soon(&f.running, true));
	end(&f, &k);
}

static void code_that_stores_flags(void **state)
{
	bool (*x86)(const uint8_t *, size_t) = uni_arch_x86_64.stores_flags;

	assert_null(uni_arch_aarch64.stores_flags);
	assert_true(x86((const uint8_t *)"\x9c\x58\xfa", 3));
	assert_true(x86((const uint8_t *)"\x66\x9c", 2));
	assert_true(x86((const uint8_t *)"\x48\x9c", 2));
	assert_false(x86((const uint8_t *)"\xf3\x0f\x1e\xfa\x9c", 5));
	assert_false(x86((const uint8_t *)"\x55\x9c", 2));
	assert_false(x86((const uint8_t *)"\x48", 1));
	assert_false(x86(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_once),
		cmocka_unit_test(steps_until_it_moved),
		cmocka_unit_test(an_interrupt_during_the_step),
		cmocka_unit_test(a_return_is_stepped_over),
		cmocka_unit_test(the_guardian_removes_them),
		cmocka_unit_test(a_hit_at_the_end),
		cmocka_unit_test(paused_meanwhile),
		cmocka_unit_test(no_room),
		cmocka_unit_test(settled_once_it_has_answered),
		cmocka_unit_test(code_that_stores_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
