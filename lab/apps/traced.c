/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts its own calls: each function traced_* adds one to lab_traced.calls[vCPU][it] before
 * anything else. A test compares records + lost events of a tracer with it. All vCPUs do the same
 * work. irq=HZ: timer interrupts come in anywhere on the first one, and make such calls too.
 * step=N: after each of the first N instructions of every vCPU's work, as well. hold=1: when all is
 * done, stays to be looked at.
 */
#include "lab.h"
#include "lab_traced.h"

const char lab_app_name[] = "traced";

struct lab_traced lab_traced;

enum { LEAF, FIB, SUM, CALLBACK, ODD, VISIT, TICK, TICK_LEAF, NONE, ROUND, NR };

static const char *const names[NR] = { "traced_leaf", "traced_fib", "traced_sum", "traced_callback",
	"traced_odd", "traced_visit", "traced_tick", "traced_tick_leaf", "traced_none",
	"traced_round" };

#define COUNT(fn) \
	__asm__ volatile("incq %0" : "+m"(lab_traced.calls[lab_cpu_id()][fn]) : : "memory", "cc")

LAB_FUNC static uint64_t traced_leaf(uint64_t n)
{
	COUNT(LEAF);
	return n + 1;
}

LAB_FUNC static uint64_t traced_fib(uint64_t n)
{
	COUNT(FIB);
	return n < 2 ? n : traced_fib(n - 1) + traced_fib(n - 2);
}

/* Six arguments and a value, each known: round, 1, 2, 3, 4, 5 and 15 + round. */
LAB_FUNC static uint64_t traced_sum(
	uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	COUNT(SUM);
	return a + b + c + d + e + f;
}

LAB_FUNC static uint64_t traced_callback(uint64_t n)
{
	COUNT(CALLBACK);
	return traced_leaf(n) ^ n;
}

/* Not aligned, where the compiler can be made to do that: it needs the slower hook. */
#ifdef __clang__
LAB_FUNC __attribute__((minsize)) static uint64_t traced_odd(uint64_t n)
#else
LAB_FUNC __attribute__((cold)) static uint64_t traced_odd(uint64_t n)
#endif
{
	COUNT(ODD);
	return traced_leaf(n) * 3;
}

LAB_FUNC static uint64_t traced_visit(uint64_t (*fn)(uint64_t), unsigned nr)
{
	uint64_t sum = 0;

	COUNT(VISIT);
	for (unsigned i = 0; i < nr; i++)
		sum += fn(i);
	return sum;
}

LAB_FUNC static uint64_t traced_tick_leaf(uint64_t n)
{
	COUNT(TICK_LEAF);
	return n;
}

LAB_FUNC static void traced_tick(void)
{
	COUNT(TICK);
	traced_tick_leaf(traced_tick_leaf(lab_ticks()));
}

LAB_FUNC static void traced_none(void)
{
	COUNT(NONE);
	__asm__ volatile("");
}

LAB_FUNC static void traced_round(uint64_t n)
{
	COUNT(ROUND);
	traced_visit(traced_callback, 4);
	traced_visit(traced_odd, 2);
	traced_fib(7);
	lab_traced.sum = traced_sum(n, 1, 2, 3, 4, 5);
	traced_none();
}

/* For architectures without such interrupts. */
__attribute__((weak)) void lab_step_each(uint64_t nr, void (*hook)(void))
{
	lab_fail("step= is not for this machine");
}

LAB_FUNC static void rounds(void)
{
	uint64_t nr = lab_rounds(2000);
	bool first = lab_cpu_id() == 0;
	uint64_t steps = lab_arg("step", 0);

	if (steps)
		lab_step_each(steps, traced_tick);

	for (uint64_t i = 0; i < nr && !lab_stop(); i++) {
		traced_round(i);
		if (first)
			lab_traced.rounds++;
		lab_heartbeat();
	}
}

static void on_vcpu(unsigned cpu)
{
	rounds();
}

static void begin(void)
{
	for (unsigned i = 0; i < NR; i++)
		memcpy(lab_traced.name[i], names[i], lab_strlen(names[i]) + 1);
	lab_traced.total_size = sizeof(lab_traced);
	lab_traced.nr_fns = NR;
	lab_traced.state = LAB_TRACED_RUNNING;
	LAB_BARRIER();
	lab_traced.magic = LAB_TRACED_MAGIC;
	lab_traced.nr_cpus = lab_smp_start(on_vcpu);
	if (lab_arg("irq", 0)) {
		lab_timer_start((unsigned)lab_arg("irq", 0), traced_tick);
		lab_irq_enable();
	}
}

LAB_FUNC void app_main(void)
{
	if (!lab_traced.magic)
		begin();
	rounds();
}

void app_finish(void)
{
	lab_smp_wait();
	lab_irq_disable();
	lab_traced.state = LAB_TRACED_DONE;
	lab_printf("traced: %lu rounds on %u vCPUs\n", lab_traced.rounds, lab_traced.nr_cpus);
	lab_hold();
}
