/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up in order, per-vCPU data, time, power. */
#include "lab.h"
#include "cpu.h"

#define PIT_HZ	    1193182ULL
#define PIT_COUNTER 0x40
#define PIT_COMMAND 0x43

struct lab_cpu lab_cpus[LAB_MAX_CPUS] = { LAB_CPU_FIRST };

_Static_assert(offsetof(struct lab_cpu, trace) == LAB_TRACE_GS, "meson.build says so, too");

struct uni_trace_cpu *lab_trace_cpu(unsigned cpu)
{
	return (struct uni_trace_cpu *)lab_cpus[cpu].trace;
}

/* The counter, and the time when it was latched: the best of some tries, as the host may be
 * elsewhere between two instructions. */
static uint16_t pit_read(uint64_t *tsc_ret)
{
	uint64_t best = ~0ULL;
	uint16_t counter = 0;

	for (unsigned i = 0; i < 8; i++) {
		uint64_t before = lab_tsc(), took;
		uint8_t lo;
		uint16_t now;

		lab_outb(PIT_COMMAND, 0x00); /* latch counter 0 */
		took = lab_tsc() - before;
		lo = lab_inb(PIT_COUNTER);
		now = (uint16_t)(lo | lab_inb(PIT_COUNTER) << 8);
		if (took >= best)
			continue;
		best = took;
		counter = now;
		*tsc_ret = before + took / 2;
	}
	return counter;
}

/* Counter 0 counts down from 65536 every 54.9 ms; look at it for 20 ms. */
void lab_tsc_calibrate(void)
{
	const uint16_t want = PIT_HZ / 50;
	uint16_t first, ticks = 0;
	uint64_t start = 0, end = 0;

	lab_outb(PIT_COMMAND, 0x34); /* counter 0, low then high byte, rate generator */
	lab_outb(PIT_COUNTER, 0);
	lab_outb(PIT_COUNTER, 0);
	first = pit_read(&start);
	for (unsigned turn = 0; ticks < want; turn++) {
		ticks = (uint16_t)(first - pit_read(&end));
		if (turn > 1000 && !ticks)
			return; /* no PIT: tsc_hz stays 0 */
	}
	lab_truth.tsc_hz = (end - start) * PIT_HZ / ticks;
}

void lab_cpu_init(unsigned cpu)
{
	lab_cpus[cpu].id = cpu;
	lab_wrmsr(MSR_GS_BASE, (uint64_t)&lab_cpus[cpu]);
	lab_trap_init_cpu(cpu);
}

/* On the boot stack and the boot tables. */
uint64_t lab_setup(void)
{
	struct lab_boot_info info;

	lab_cpu_init(0);
	lab_uart_init();
	lab_trap_init();
	lab_truth_init();
	lab_pvh_read(&info);
	lab_program_init(&info);
	lab_page_alloc_behind_image(&info);
	lab_paging_init(&info);
	lab_tsc_calibrate();
	lab_printf("\nlab: RAM up to %lx, largest leaf %s\n", info.ram_end,
		lab_has_huge() ? "1 GiB" : "2 MiB (no 1 GiB pages in CPUID)");
	return lab_main_stack_init();
}

_Noreturn void lab_exit(unsigned code)
{
	static const struct lab_idt {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) no_idt;

	lab_outl(0xf4, code);	  /* isa-debug-exit */
	lab_outw(0x604, 0x2000);  /* ACPI power-off as SeaBIOS sets it up */
	lab_outw(0xb004, 0x2000); /* the same of older ones */
	/* Triple fault: a reset, or the end with -no-reboot. */
	__asm__ volatile("lidt %0\n\tint3" : : "m"(no_idt));
	for (;;)
		lab_relax();
}
