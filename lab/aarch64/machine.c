/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up in order, the console (PL011), time, power (PSCI by HVC), faults. */
#include "lab.h"
#include "cpu.h"

#define MAIN_STACK_PAGES 64
#define PSCI_SYSTEM_OFF	 0x84000008
#define PSCI_CPU_ON	 0xc4000003
#define UART_DR		 (LAB_UART_PA + 0x00)
#define UART_FR		 (LAB_UART_PA + 0x18)
#define FR_RX_EMPTY	 0x10
#define FR_TX_FULL	 0x20

extern char lab_vectors[], lab_text_start[], lab_ap_start[];

static uint64_t main_stack_top;

uint64_t lab_tsc(void)
{
	uint64_t v;

	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(v));
	return v;
}

unsigned lab_cpu_id(void)
{
	uint64_t id;

	__asm__("mrs %0, tpidr_el1" : "=r"(id));
	return (unsigned)id;
}

void lab_relax(void)
{
	__asm__ volatile("yield");
}

/* Uses no more than what QEMU sets up itself. */
void lab_uart_init(void)
{
	lab_mmio_write(LAB_UART_PA + 0x30, 0x301); /* CR: on, both ways */
}

LAB_FUNC static void uart_outb(char c)
{
	lab_mmio_write(UART_DR, (uint8_t)c);
}

LAB_FUNC static void uart_wait(void)
{
	while (lab_mmio_read(UART_FR) & FR_TX_FULL)
		lab_relax();
}

/* Each access leaves the VM, so ask only once a FIFO's worth whether there is room. */
LAB_FUNC void lab_putc(char c)
{
	static unsigned room;

	if (!room) {
		uart_wait();
		room = 16;
	}
	room--;
	uart_outb(c);
}

bool lab_serial_pending(void)
{
	return !(lab_mmio_read(UART_FR) & FR_RX_EMPTY);
}

uint64_t lab_psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	register uint64_t x0 __asm__("x0") = function;
	register uint64_t x1 __asm__("x1") = a;
	register uint64_t x2 __asm__("x2") = b;
	register uint64_t x3 __asm__("x3") = c;

	__asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
	return x0;
}

/* virt numbers its vCPUs from 0, in the field Aff0. */
bool lab_vcpu_start(unsigned cpu, uint64_t stack_top, unsigned attempt)
{
	(void)stack_top; /* lab_ap_setup() tells it */
	return attempt || !lab_psci(PSCI_CPU_ON, cpu, (uint64_t)lab_ap_start - LAB_IMAGE_OFFSET, 0);
}

void lab_vcpu_park(void)
{
	for (;;)
		__asm__ volatile("wfi");
}

void lab_cpu_init(unsigned cpu)
{
	lab_write_sysreg(tpidr_el1, cpu);
	lab_write_sysreg(vbar_el1, (uint64_t)lab_vectors);
}

void lab_main_stack(uint64_t *low_ret, uint64_t *high_ret)
{
	*low_ret = main_stack_top - MAIN_STACK_PAGES * LAB_PAGE_SIZE;
	*high_ret = main_stack_top;
}

/* The top of the app's stack: stack=4k (default, reversed pages), 2m or 1g (in that linear map). */
static uint64_t main_stack(void)
{
	uint64_t pa;

	if (!lab_arg_is("stack", "2m") && !lab_arg_is("stack", "1g"))
		return lab_stack_alloc(MAIN_STACK_PAGES);
	pa = lab_page_alloc(MAIN_STACK_PAGES) + MAIN_STACK_PAGES * LAB_PAGE_SIZE;
	return pa + (lab_arg_is("stack", "2m") ? LAB_LINEAR : LAB_HUGE);
}

/* On the boot stack and the boot tables. */
uint64_t lab_setup(void)
{
	uint64_t ram_end;

	lab_cpu_init(0);
	lab_uart_init();
	lab_truth_init();
	lab_dtb_read(&ram_end);
	lab_page_alloc_init(ram_end);
	lab_paging_init(ram_end);
	lab_truth.tsc_hz = lab_read_sysreg(cntfrq_el0);
	lab_printf("\nlab: RAM up to %lx\n", ram_end);
	main_stack_top = main_stack();
	return main_stack_top;
}

void lab_trap(void)
{
	lab_printf("\nlab: TRAP esr %lx elr %lx far %lx\n", lab_read_sysreg(esr_el1),
		lab_read_sysreg(elr_el1), lab_read_sysreg(far_el1));
	lab_exit(LAB_EXIT_TRAP);
}

/* QEMU's exit status is 0 whatever the code: the console tells. */
_Noreturn void lab_exit(unsigned code)
{
	(void)code;
	for (;;)
		lab_psci(PSCI_SYSTEM_OFF, 0, 0, 0);
}

void lab_crash_if_asked(void)
{
	uint64_t low, high;

	if (lab_arg_is("crash", "undefined"))
		__asm__ volatile("udf #0");
	if (lab_arg_is("crash", "text"))
		*(volatile char *)lab_text_start = 0;
	if (lab_arg_is("crash", "guard")) {
		lab_main_stack(&low, &high);
		*(volatile uint64_t *)(low - 8) = 0;
	}
	if (lab_arg_is("crash", "identity"))
		(void)*(volatile uint64_t *)(uint64_t)LAB_IMAGE_PA;
	if (lab_arg_is("crash", NULL))
		lab_fail("crash= did not crash");
}
