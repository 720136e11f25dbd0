/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversations with a stub that behaves as QEMU's, with others, and with liars. */
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
#include "backend/gdb/stub.h"

/* Nobody waits for ever; a busy host lets all wait for seconds. */
#define WITHIN_NS (20 * UNI_NSEC_PER_SEC)
#define PATIENCE  20000 /* of 1 ms */

/* One conversation; freed by end(). */
struct talk {
	struct uni_gdb_stub *s;
	struct uni_regs regs[UNI_VCPU_MAX];
	struct uni_err err;
	int rc;
};

static void begin(struct fake_stub *f, struct talk *t, bool phys)
{
	memset(t, 0, sizeof(*t));
	t->s = calloc(1, sizeof(*t->s));
	assert_non_null(t->s);
	fake_start(f);
	assert_int_equal(fcntl(f->peer, F_SETFL, O_NONBLOCK), 0);
	/* Without an image it is the stub that says what it is. */
	t->rc = uni_gdb_stub_open(
		t->s, f->peer, f->aarch64 ? NULL : &uni_arch_x86_64, phys, t->regs, &t->err);
}

static void end(struct fake_stub *f, struct talk *t)
{
	uni_gdb_stub_leave(t->s);
	fake_join(f);
	assert_false(f->crashed);
	free(t->s);
}

/* The stub's side is a thread: what we sent last may still be on its way. */
static bool soon(_Atomic bool *flag, bool want)
{
	for (int i = 0; i < PATIENCE && *flag != want; i++)
		(void)usleep(1000);
	return *flag == want;
}

static void a_whole_life(void **state)
{
	struct fake_stub f = { 0 };
	struct talk t;
	uint8_t b[5000];

	begin(&f, &t, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.s->qemu && t.s->sysregs);
	assert_int_equal(t.s->nr_threads, 2);
	assert_true(soon(&f.running, true));
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
	assert_false(f.running);
	assert_true(t.regs[0].pc == 0x401000 && t.regs[1].pc == 0x802000);
	assert_int_equal(t.regs[0].state, UNI_VCPU_RUNNING);
	assert_int_equal(t.regs[1].state, UNI_VCPU_HALTED);
	assert_int_equal(uni_gdb_stub_read(t.s, 0xff0, b, sizeof(b)), 0);
	assert_true(f.phys);
	for (size_t i = 0; i < sizeof(b); i++)
		assert_int_equal(b[i], (0xff0 + i) & 255);
	assert_int_equal(uni_gdb_stub_read(t.s, FAKE_RAM - 8, b, 16), -UNI_EFAULT);
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(2), t.regs), 0);
	assert_true(t.regs[0].pc == 0x802000);
	assert_false(f.running);
	assert_int_equal(uni_gdb_stub_resume(t.s), 0);
	assert_true(soon(&f.running, true));
	/* A read of a running guest stops it for that time alone. */
	assert_int_equal(uni_gdb_stub_read(t.s, 0x10, b, 1), 0);
	assert_int_equal(b[0], 0x10);
	assert_true(soon(&f.running, true));
	end(&f, &t);
	assert_true(f.running && !f.phys);
}

/* Registers that g does not have are asked for by the numbers of the stub's own description. */
static void registers_by_name(void **state)
{
	struct fake_stub f = { .aarch64 = true };
	struct talk t;

	begin(&f, &t, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.s->sysregs && t.s->want_phys);
	assert_ptr_equal(t.s->arch, &uni_arch_aarch64);
	assert_int_equal(t.s->nr_named, 4);
	assert_int_equal(t.regs[0].sys_valid, 0x1f);
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
	for (int i = 0; i < 2; i++) {
		const struct uni_regs *r = &t.regs[i];
		uint64_t v;

		assert_true(r->pc == 0x401000u * (1 + (unsigned)i));
		assert_true(r->sp == 0x1000u * (1 + (unsigned)i) + 31);
		assert_true(uni_regs_get(r, UNI_A64_LR, &v) && v == r->sp - 1);
		assert_true(uni_regs_get_sys(r, UNI_A64_SCTLR, &v) && v == 92);
		assert_true(uni_regs_get_sys(r, UNI_A64_TTBR0, &v) && v == 171);
		assert_true(uni_regs_get_sys(r, UNI_A64_TTBR1, &v) && v == 175);
		assert_true(uni_regs_get_sys(r, UNI_A64_TCR, &v) && v == 174);
		assert_true(uni_regs_get_sys(r, UNI_A64_PSTATE, &v) && v == 0x3c5);
	}
	assert_int_equal(t.regs[0].state, UNI_VCPU_RUNNING);
	assert_int_equal(t.regs[1].state, UNI_VCPU_HALTED);
	end(&f, &t);
	assert_true(f.running);
}

/* Without one of them page tables cannot be walked: the stub has to translate. */
static void register_that_is_missing(void **state)
{
	struct fake_stub f = { .aarch64 = true, .no_tcr = true };
	struct talk t;

	begin(&f, &t, true);
	assert_int_equal(t.rc, 0);
	assert_false(t.s->sysregs || t.s->want_phys);
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
	assert_true(t.regs[0].pc == 0x401000);
	end(&f, &t);
}

/* A thousand samples stay in step. */
static void many_samples(void **state)
{
	struct fake_stub f = { 0 };
	struct talk t;

	begin(&f, &t, false);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
		assert_true(t.regs[0].pc == 0x401000 && t.regs[1].pc == 0x802000);
		assert_int_equal(uni_gdb_stub_resume(t.s), 0);
		if (i % 3 == 0)
			assert_int_equal(uni_gdb_stub_idle(t.s), 0);
	}
	end(&f, &t);
	assert_true(f.running);
}

/* QEMU after a gdb was there: it goes on naming processes, and refuses a D without one. */
static void a_stub_that_names_processes(void **state)
{
	struct fake_stub f = { .processes = true };
	struct talk t;

	begin(&f, &t, false);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.s->nr_threads, 2);
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
	assert_true(t.regs[0].pc == 0x401000 && t.regs[1].pc == 0x802000);
	assert_int_equal(uni_gdb_stub_resume(t.s), 0);
	end(&f, &t);
	assert_true(f.running);
}

/* The profiler has left, and dies before it can tell: the guardian leaves once more. */
static void left_twice(void **state)
{
	struct fake_stub f = { 0 };
	struct uni_gdb_stub *s = calloc(1, sizeof(*s));
	struct talk t;

	assert_non_null(s);
	begin(&f, &t, false);
	assert_int_equal(t.rc, 0);
	uni_gdb_link_init(&s->link, dup(t.s->link.fd));
	s->qemu = s->link.implicit_ack = true;
	s->state = UNI_GDB_HELD;
	uni_gdb_stub_leave(t.s);
	uni_gdb_stub_leave(s);
	fake_join(&f);
	assert_true(f.running && !f.crashed);
	free(s);
	free(t.s);
}

/* The work of the guardian: it knows the line and that this is QEMU, nothing else. */
static void left_by_the_guardian(void **state)
{
	for (int kind = 0; kind < 4; kind++) {
		struct fake_stub f = { .processes = kind >= 2, .no_detach = kind == 1 };
		struct uni_gdb_stub *s;
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(t.rc, 0);
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
		s = calloc(1, sizeof(*s));
		assert_non_null(s);
		uni_gdb_link_init(&s->link, t.s->link.fd);
		s->qemu = s->link.implicit_ack = kind != 3; /* 3: killed during the handshake */
		s->state = UNI_GDB_HELD;
		uni_gdb_stub_leave(s);
		t.s->state = UNI_GDB_LOST;
		fake_join(&f);
		assert_true(f.running);
		free(s);
		free(t.s);
	}
}

static void paused_by_another(void **state)
{
	struct fake_stub f = { .starts_paused = true };
	struct talk t;

	begin(&f, &t, false);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.s->state, UNI_GDB_PAUSED);
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
	assert_int_equal(uni_gdb_stub_resume(t.s), 0);
	assert_int_equal(t.s->state, UNI_GDB_PAUSED);
	end(&f, &t);
	assert_false(f.running);
}

/* Between our stop and our continue another one resumed it: then `$` of `$c` would stop it. */
static void resumed_by_another(void **state)
{
	struct fake_stub f = { 0 };
	struct talk t;

	begin(&f, &t, false);
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
	f.running = true;
	assert_int_equal(uni_gdb_stub_resume(t.s), 0);
	assert_true(soon(&f.running, false));
	for (int i = 0; i < PATIENCE && !f.running; i++) {
		(void)usleep(1000);
		assert_int_equal(uni_gdb_stub_idle(t.s), 0);
	}
	assert_true(soon(&f.running, true));
	end(&f, &t);
	assert_true(f.running);
}

static void a_plain_stub(void **state)
{
	struct fake_stub f = { .generic = true, .no_detach = true };
	struct talk t;
	uint8_t b[3000];

	begin(&f, &t, true);
	assert_int_equal(t.rc, 0);
	assert_false(t.s->qemu || t.s->sysregs || t.s->phys);
	assert_int_equal(t.s->nr_threads, 2);
	assert_true(soon(&f.running, true));
	for (int i = 0; i < 20; i++) {
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
		assert_true(t.regs[0].pc == 0x401000 && t.regs[1].pc == 0x802000);
		assert_int_equal(t.regs[0].sys_valid, 0);
		assert_int_equal(uni_gdb_stub_read(t.s, 0x20, b, sizeof(b)), 0);
		assert_int_equal(b[2999], (0x20 + 2999) & 255);
		assert_int_equal(uni_gdb_stub_resume(t.s), 0);
		assert_true(soon(&f.running, true));
	}
	end(&f, &t);
	assert_true(f.running);
}

/* Lies during the handshake: a clear error, and the guest runs. */
static void liars_at_the_door(void **state)
{
	static const struct {
		const char *prefix, *lie;
		int truths, code;
	} lies[] = {
		{ "qSupported", "$PacketSize=1000#00", 0, UNI_EPROTO },
		{ "qSupported", "$a*#8b", 0, UNI_EPROTO },
		{ "qfThreadInfo", "$mzz#61", 0, UNI_EPROTO },
		{ "qfThreadInfo", "$E01#a6", 0, UNI_EPROTO },
		{ "qsThreadInfo", "$m01#ce", 0, UNI_EPROTO }, /* without end */
		{ "qXfer", "$l<architecture>mips</architecture>#4e", 0, UNI_EMISMATCH },
		{ "g", "$00#60", 0, UNI_EMISMATCH },
		{ "g", "$E01#a6", 0, UNI_EMISMATCH },
		{ "g", "$xxxx#e0", 0, UNI_EMISMATCH },
		{ "qRcmd", "$Ozz#43$O2#81$OK#9a", 0, 0 }, /* no text: the threads stay unknown */
		{ "qRcmd", "$E01#a6", 0, 0 },
		{ "qC", "$QC01#f5", 0, 0 },
	};

	for (size_t i = 0; i < uni_array_len(lies); i++) {
		struct fake_stub f = {
			.prefix = lies[i].prefix, .lie = lies[i].lie, .truths = lies[i].truths
		};
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(t.rc, -lies[i].code);
		assert_int_equal(t.err.code, lies[i].code);
		end(&f, &t);
		assert_true(f.running);
	}
}

/* QEMU's monitor tells which of its threads runs which vCPU; other stubs have none. */
static void threads_of_the_host(void **state)
{
	for (int kind = 0; kind < 3; kind++) {
		struct fake_stub f = { .processes = kind == 1, .monitor = kind != 2 };
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.s->host_tid[0], kind != 2 ? 4711 : 0);
		assert_int_equal(t.s->host_tid[1], kind != 2 ? 4712 : 0);
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
		assert_true(t.regs[0].pc == 0x401000 && t.regs[1].pc == 0x802000);
		end(&f, &t);
		assert_true(f.running);
	}
}

/* Its monitor says who runs the guest; another accelerator, or a stub without one, stays unknown.
 */
static void who_runs_the_guest(void **state)
{
	static const char *const accel[] = { "kvm", "tcg", "", "" };

	for (int kind = 0; kind < 4; kind++) {
		struct fake_stub f = { .monitor = kind != 3, .kvm = kind == 0, .tcg = kind == 1 };
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(t.rc, 0);
		assert_string_equal(t.s->accel, accel[kind]);
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
		end(&f, &t);
	}
}

static void hangs_up(void **state)
{
	static const char *const at[] = { "qSupported", "qqemu", "qfThreadInfo", "g", "qXfer" };

	for (size_t i = 0; i < uni_array_len(at); i++) {
		struct fake_stub f = { .prefix = at[i] };
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(t.rc, -UNI_EGONE);
		end(&f, &t);
	}
}

static void never_answers(void **state)
{
	struct fake_stub f = { .prefix = "q", .lie = "" };
	uint64_t begin_ns = uni_now_ns();
	struct talk t;

	begin(&f, &t, false);
	assert_int_equal(t.rc, -UNI_EBUSY);
	assert_true(uni_now_ns() - begin_ns < WITHIN_NS);
	end(&f, &t);
	assert_true(f.running); /* the detach that was left for it */
}

/* Lies in the middle of sampling: this sample is lost, the next one is good, the guest runs. */
static void liars_in_between(void **state)
{
	static const char *const lies[] = { "$E01#a6", "$00#60", "$00#00", "$a*#8b", "-", "$OK#9a",
		"$xxxx#e0" };

	for (size_t i = 0; i < uni_array_len(lies); i++) {
		struct fake_stub f = { .prefix = "g", .lie = lies[i], .truths = 1 };
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(t.rc, 0);
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), -UNI_EAGAIN);
		assert_true(soon(&f.running, true));
		f.prefix = NULL;
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
		assert_true(t.regs[0].pc == 0x401000);
		end(&f, &t);
		assert_true(f.running);
	}
}

static void lies_about_memory(void **state)
{
	static const struct {
		const char *lie;
		int code;
	} lies[] = {
		{ "$E14#aa", UNI_EFAULT },
		{ "$#00", UNI_EFAULT },
		{ "$00#60", UNI_EFAULT },		/* too short */
		{ "$0*~0*~0*~#88", UNI_EFAULT },	/* too long */
		{ "$zzzzzzzzzzzzzzzz#a0", UNI_EFAULT }, /* no digits */
		{ "$00000000#00", UNI_EAGAIN },		/* wrong checksum */
		{ "$W00#b7", UNI_EGONE },
		{ NULL, UNI_EGONE },
	};
	uint8_t b[8];

	for (size_t i = 0; i < uni_array_len(lies); i++) {
		struct fake_stub f = { .prefix = "m", .lie = lies[i].lie };
		struct talk t;

		begin(&f, &t, false);
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
		assert_int_equal(uni_gdb_stub_read(t.s, 0x1000, b, sizeof(b)), -lies[i].code);
		end(&f, &t);
		if (lies[i].code != UNI_EGONE)
			assert_true(f.running);
	}
}

static void silence_in_between(void **state)
{
	struct fake_stub f = { .prefix = "g", .lie = "", .truths = 1 };
	uint64_t begin_ns;
	struct talk t;

	begin(&f, &t, false);
	begin_ns = uni_now_ns();
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), -UNI_EAGAIN);
	assert_true(uni_now_ns() - begin_ns < WITHIN_NS);
	assert_true(soon(&f.running, true));
	end(&f, &t);
	assert_true(f.running);
}

/* The VMM is stopped for a while: nobody is kept waiting, and later all goes on. */
static void a_vmm_that_sleeps(void **state)
{
	for (int held = 0; held < 2; held++) {
		struct fake_stub f = { 0 };
		uint64_t begin_ns, least_ns = UINT64_MAX;
		struct talk t;
		int rc = -UNI_EAGAIN;

		begin(&f, &t, false);
		if (held != 0)
			assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), 0);
		f.frozen = true;
		begin_ns = uni_now_ns();
		assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), -UNI_EAGAIN);
		assert_true(uni_now_ns() - begin_ns < WITHIN_NS);
		assert_true(t.s->silent);
		for (int i = 0; i < 10; i++) {
			begin_ns = uni_now_ns();
			assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), -UNI_EAGAIN);
			assert_int_equal(uni_gdb_stub_idle(t.s), -UNI_EAGAIN);
			least_ns = uni_min(least_ns, uni_now_ns() - begin_ns);
		}
		assert_true(least_ns < 100 * UNI_NSEC_PER_MSEC);
		f.frozen = false;
		for (int i = 0; i < PATIENCE && rc == -UNI_EAGAIN; i++) {
			(void)usleep(1000);
			rc = uni_gdb_stub_idle(t.s);
		}
		assert_int_equal(rc, 0);
		assert_true(soon(&f.running, true));
		for (int i = 0; i < 5; i++) {
			assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(3), t.regs), 0);
			assert_int_equal(t.regs[1].pc, 0x802000);
			assert_int_equal(uni_gdb_stub_resume(t.s), 0);
		}
		end(&f, &t);
		assert_true(f.running);
	}
}

/* The guardian's part: whoever asked is gone, and the guest runs once its VMM listens again. */
static void a_vmm_that_sleeps_when_we_leave(void **state)
{
	struct fake_stub f = { 0 };
	struct talk t;

	begin(&f, &t, false);
	f.frozen = true;
	assert_int_equal(uni_gdb_stub_snap(t.s, VCPUS(1), t.regs), -UNI_EAGAIN);
	f.frozen = false;
	uni_gdb_stub_await(t.s);
	end(&f, &t);
	assert_true(f.running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_life),
		cmocka_unit_test(registers_by_name),
		cmocka_unit_test(register_that_is_missing),
		cmocka_unit_test(many_samples),
		cmocka_unit_test(a_stub_that_names_processes),
		cmocka_unit_test(left_twice),
		cmocka_unit_test(left_by_the_guardian),
		cmocka_unit_test(paused_by_another),
		cmocka_unit_test(resumed_by_another),
		cmocka_unit_test(a_plain_stub),
		cmocka_unit_test(liars_at_the_door),
		cmocka_unit_test(threads_of_the_host),
		cmocka_unit_test(who_runs_the_guest),
		cmocka_unit_test(hangs_up),
		cmocka_unit_test(never_answers),
		cmocka_unit_test(liars_in_between),
		cmocka_unit_test(lies_about_memory),
		cmocka_unit_test(silence_in_between),
		cmocka_unit_test(a_vmm_that_sleeps),
		cmocka_unit_test(a_vmm_that_sleeps_when_we_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
