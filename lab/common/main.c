/* SPDX-License-Identifier: BSD-2-Clause */
/* From a machine that is set up to the app, and from its end to power-off. */
#include "lab.h"

static uint64_t deadline_tsc; /* 0: none */

uint64_t lab_rounds(uint64_t dflt)
{
	uint64_t scaled = dflt * lab_arg("scale", 1000) / 1000;

	return lab_arg("rounds", scaled ? scaled : 1);
}

bool lab_stop(void)
{
	return deadline_tsc && lab_tsc() >= deadline_tsc;
}

static void wait_for_host(void)
{
	volatile uint32_t *attach = &lab_truth.attach;

	lab_truth.state = LAB_STATE_WAITING;
	lab_printf("lab: waiting\n");
	/* A port access leaves the VM: look at the serial port once in a while only. */
	for (unsigned turn = 1; !*attach; turn++) {
		lab_heartbeat();
		lab_relax();
		if (turn % 256 == 0 && lab_serial_pending())
			break;
	}
}

LAB_FUNC static void run_app(void)
{
	uint64_t msecs = lab_arg("msecs", 1000 * lab_arg("secs", 0));
	bool again = msecs || lab_arg("loop", 0);

	if (msecs && !lab_truth.tsc_hz)
		lab_fail("secs= and msecs= need a PIT to measure the TSC");
	if (msecs)
		deadline_tsc = lab_tsc() + msecs * (lab_truth.tsc_hz / 1000);
	do {
		app_main();
	} while (again && !lab_stop());
}

__attribute__((weak)) void app_finish(void)
{
}

__attribute__((weak)) void lab_inside_start(void)
{
}

LAB_FUNC void kmain(void)
{
	lab_printf("lab: app %s, tsc %lu kHz\n", lab_app_name, lab_truth.tsc_hz / 1000);
	lab_crash_if_asked();
	if (lab_arg("latering", 0))
		wait_for_host();
	lab_trace_init();
	if (lab_arg("wait", 0))
		wait_for_host();
	lab_truth.state = LAB_STATE_RUNNING;
	lab_truth_start(); /* who waits for the next line finds the books open */
	lab_inside_start();
	lab_printf("lab: running\n");
	run_app();
	app_finish();
	lab_truth_close();
	lab_truth.state = LAB_STATE_DONE;
	lab_truth_print();
	lab_printf("lab: done\n");
	lab_exit(LAB_EXIT_OK);
}

_Noreturn void lab_fail(const char *why)
{
	lab_printf("lab: FAILED: %s\n", why);
	lab_exit(LAB_EXIT_FAIL);
}
