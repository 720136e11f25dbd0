/* SPDX-License-Identifier: BSD-2-Clause */
/* Triggers, called from a site as a host patches it. A host that chooses anew before any of their
 * instructions has the last word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "guesttrace.h"

#define TRAP_FLAG 0x100

/* A function of two sites: its entry, and its return. */
static struct {
	uint8_t *code;
	uint8_t hooked[5], plain[5];
} site;

static void site_make(void)
{
	site.code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	assert_ptr_not_equal(site.code, MAP_FAILED);
	memcpy(site.plain, (const uint8_t[]){ 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5);
}

static void jump_make(uint8_t *at, uint8_t op, void (*to)(void))
{
	int32_t rel = (int32_t)((intptr_t)to - (intptr_t)(at + 5));

	*at = op;
	memcpy(at + 1, &rel, sizeof(rel));
}

static void site_hook(void (*hook)(void))
{
	jump_make(site.code, 0xe8, hook);
	memcpy(site.hooked, site.code, 5);
	jump_make(site.code + 5, 0xe9, uni_trace_exit);
}

static void site_call(void)
{
	((void (*)(void))(uintptr_t)site.code)();
}

static struct seen whole(void)
{
	struct uni_ring_stats stats;
	struct seen seen = read_all(&stats);

	assert_int_equal(stats.lapped + stats.torn + cpu.lost, 0);
	assert_int_equal(seen.backwards, 0);
	return seen;
}

/* Records that say of the site's function that nothing is recorded behind them. */
static int count_stops(void *arg, unsigned nr, const struct uni_trace_sub *s, size_t content)
{
	struct uni_trace_cursor c = uni_trace_records(info, s, content);
	struct uni_trace_record rec;
	unsigned *stops = arg;

	while (uni_trace_next(&c, &rec)) {
		if (rec.kind == UNI_TRACE_KIND_EXT && rec.cls == UNI_TRACE_CLASS_CALL &&
			rec.nr == 1 && rec.words[0] >> 32 == UNI_TRACE_STOPS)
			*stops += (uint32_t)rec.words[0] == (uint32_t)(uintptr_t)site.code;
	}
	return 0;
}

static unsigned stops_told(void)
{
	struct uni_ring *r = open_ring();
	unsigned stops = 0;

	assert_int_equal(uni_ring_drain(r, 0, count_stops, &stops), 0);
	uni_ring_close(r);
	return stops;
}

static void trigger_call(void (*hook)(void))
{
	site_hook(hook);
	site_call();
}

static void triggers(void **state)
{
	struct ring_memory m = trace_start(64, UNI_TRACE_STOP, uni_trace_exit);
	struct uni_ring_stats stats;
	struct seen seen;

	uni_trace_enable(0);
	work_fib(5);
	trigger_call(uni_trace_entry_start);
	work_fib(1);
	seen = whole();
	assert_int_equal(seen.entries, 2);
	assert_int_equal(seen.exits, 2);

	trigger_call(uni_trace_entry_stop); /* its entry is the last that is recorded */
	work_fib(5);
	seen = whole();
	assert_int_equal(seen.entries, 2);
	assert_int_equal(stops_told(), 1);
	assert_int_equal(seen.exits, 2);
	assert_int_equal(uni_trace_head.control.enable, 0);

	uni_trace_enable(1);
	trigger_call(uni_trace_entry_freeze);
	assert_int_not_equal(cpu.frozen, 0);
	work_fib(1);
	assert_int_equal(cpu.lost, 0);
	(void)read_all(&stats);
	assert_int_equal(stats.after_freeze, 3); /* its exit, and that call */
	uni_trace_thaw();
	assert_int_equal(cpu.lost, 3); /* now they are missing in the middle */
	(void)read_all(&stats);
	assert_int_equal(stats.after_freeze, 0);
	cpu.lost = 0;
	assert_int_equal(whole().entries, 3);
	trace_end(&m);
}

/* --- a host's new choice before each instruction ------------------------------------------------
 */

static volatile unsigned nr_traps, host_comes;
static uint32_t host_enables;

/* As a host's start writes it, with all CPUs held: the trigger is not chosen any more. */
static void host_start(void)
{
	memcpy(site.code, site.plain, 5);
	uni_trace_head.control.enable = host_enables;
	uni_trace_head.control.enable_asked = host_enables;
	uni_trace_head.control.sets++;
	uni_trace_head.control.session++;
	uni_trace_head.control.gaps++;
	uni_trace_head.frozen = 0;
	*(volatile uint32_t *)&cpu.hi = ~0u;
}

static void on_trap(int sig, siginfo_t *si, void *uc)
{
	ucontext_t *u = uc;

	(void)sig;
	(void)si;
	/* Not before the site's own instruction: then nothing was called. */
	if ((uint64_t)u->uc_mcontext.gregs[REG_RIP] == (uint64_t)site.code ||
		nr_traps++ != host_comes)
		return;
	host_start();
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void site_step(void)
{
	nr_traps = 0;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(TRAP_FLAG) : "memory", "cc");
	site_call();
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~TRAP_FLAG) : "memory", "cc");
}

static void host_comes_at_each(void (*hook)(void), uint32_t enabled, uint32_t enables)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	struct uni_ring_stats stats;
	uint64_t entries;

	host_enables = enables;
	sigaction(SIGTRAP, &sa, NULL);
	for (host_comes = 0;; host_comes++) {
		struct ring_memory m = trace_start(16, UNI_TRACE_STOP, uni_trace_exit);

		work_fib(1);
		uni_trace_head.control.enable = enabled;
		uni_trace_head.control.enable_asked = enabled;
		site_hook(hook);
		site_step();
		if (nr_traps <= host_comes) { /* it was over before */
			trace_end(&m);
			break;
		}
		assert_int_equal(uni_trace_head.frozen, 0);
		assert_int_equal(uni_trace_head.control.enable, enables);
		(void)read_all(&stats);
		entries = read_all(&stats).entries;
		work_fib(1);
		assert_true(!enables || cpu.frozen == 0);
		assert_int_equal(read_all(&stats).entries - entries, enables);
		trace_end(&m);
	}
	/* Its record and the word alone are more than that. */
	assert_true(host_comes > 20);
}

static void old_trigger_against_new_choice(void **state)
{
	for (uint32_t enables = 0; enables < 2; enables++) {
		host_comes_at_each(uni_trace_entry_start, 0, enables);
		host_comes_at_each(uni_trace_entry_stop, 1, enables);
		host_comes_at_each(uni_trace_entry_freeze, 1, enables);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(triggers),
		cmocka_unit_test(old_trigger_against_new_choice),
	};

	site_make();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
