/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up in order, per-vCPU data, time, power. */
#include "lab.h"
#include "cpu.h"

#define MAIN_STACK_PAGES 64
#define PIT_HZ		 1193182ULL
#define PIT_COUNTER	 0x40
#define PIT_COMMAND	 0x43

static struct lab_cpu cpus[LAB_MAX_CPUS];
static uint64_t main_stack_top;

uint64_t lab_tsc(void)
{
	uint32_t lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}

unsigned lab_cpu_id(void)
{
	uint64_t id;

	__asm__("movq %%gs:0, %0" : "=r"(id));
	return (unsigned)id;
}

void lab_relax(void)
{
	__asm__ volatile("pause");
}

static uint16_t pit_read(void)
{
	uint8_t lo;

	lab_outb(PIT_COMMAND, 0x00); /* latch counter 0 */
	lo = lab_inb(PIT_COUNTER);
	return (uint16_t)(lo | lab_inb(PIT_COUNTER) << 8);
}

/* Counter 0 counts down from 65536 every 54.9 ms; look at it for 20 ms. */
void lab_tsc_calibrate(void)
{
	const uint16_t want = PIT_HZ / 50;
	uint16_t first, ticks = 0;
	uint64_t start, end;

	lab_outb(PIT_COMMAND, 0x34); /* counter 0, low then high byte, rate generator */
	lab_outb(PIT_COUNTER, 0);
	lab_outb(PIT_COUNTER, 0);
	first = pit_read();
	start = end = lab_tsc();
	for (unsigned turn = 0; ticks < want; turn++) {
		ticks = (uint16_t)(first - pit_read());
		end = lab_tsc();
		if (turn > 1000 && !ticks)
			return; /* no PIT: tsc_hz stays 0 */
	}
	lab_truth.tsc_hz = (end - start) * PIT_HZ / ticks;
}

void lab_cpu_init(unsigned cpu)
{
	cpus[cpu].id = cpu;
	lab_wrmsr(MSR_GS_BASE, (uint64_t)&cpus[cpu]);
	lab_trap_init_cpu(cpu);
}

/* Where the app runs: stack=4k (default, reversed pages), 2m or 1g (in that linear map). */
static uint64_t main_stack(void)
{
	uint64_t pa;

	if (!lab_arg_is("stack", "2m") && !lab_arg_is("stack", "1g"))
		return lab_stack_alloc(MAIN_STACK_PAGES);
	pa = lab_page_alloc(MAIN_STACK_PAGES) + MAIN_STACK_PAGES * LAB_PAGE_SIZE;
	return pa + (lab_arg_is("stack", "2m") ? LAB_LINEAR : LAB_HUGE);
}

void lab_main_stack(uint64_t *low_ret, uint64_t *high_ret)
{
	*low_ret = main_stack_top - MAIN_STACK_PAGES * LAB_PAGE_SIZE;
	*high_ret = main_stack_top;
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
	lab_page_alloc_init(&info);
	lab_paging_init(&info);
	lab_tsc_calibrate();
	lab_printf("\nlab: RAM up to %lx, largest leaf %s\n", info.ram_end,
		lab_has_huge() ? "1 GiB" : "2 MiB (no 1 GiB pages in CPUID)");
	main_stack_top = main_stack();
	return main_stack_top;
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
