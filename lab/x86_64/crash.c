/* SPDX-License-Identifier: BSD-2-Clause */
/* crash=KIND: trips over what should trip us, to see that the traps and page rights are real. */
#include "lab.h"
#include "cpu.h"

extern char lab_text_start[];

static void crash_undefined(void)
{
	__asm__ volatile("ud2");
}

static void crash_write_text(void)
{
	*(volatile char *)lab_text_start = 0;
}

static void crash_run_data(void)
{
	static uint8_t code[] = { 0xc3 };

	((void (*)(void))(uint64_t)code)();
}

static void crash_overflow(void)
{
	uint64_t low, high;

	lab_main_stack(&low, &high);
	*(volatile uint64_t *)(low - 8) = 0; /* in the guard page */
}

static void crash_identity(void)
{
	(void)*(volatile uint64_t *)(uint64_t)LAB_IMAGE_PA;
}

void lab_crash_if_asked(void)
{
	if (lab_arg_is("crash", "undefined"))
		crash_undefined();
	if (lab_arg_is("crash", "text"))
		crash_write_text();
	if (lab_arg_is("crash", "nx"))
		crash_run_data();
	if (lab_arg_is("crash", "guard"))
		crash_overflow();
	if (lab_arg_is("crash", "identity"))
		crash_identity();
	if (lab_arg_is("crash", NULL))
		lab_fail("crash= did not crash");
}
