/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image that loads a program at run time and calls it: programs/program.c, given by -initrd. The
 * program burns by itself and by a service of the image, so stacks go from the image into the
 * program and back.
 *
 * With late=SECONDS the image works alone for so long before it loads the program.
 *
 * Known answer: program_burn (in the program) 60 %, service_burn (in the image) 40 %.
 */
#include "lab.h"
#include "lab_program.h"

const char lab_app_name[] = "loads";

LAB_FUNC static void service_burn(uint64_t n)
{
	lab_burn(n);
}

LAB_FUNC static void service_work(uint64_t n)
{
	service_burn(n);
	lab_heartbeat();
}

LAB_FUNC static void call_program(lab_program_fn *entry)
{
	static const struct lab_services services = { .work = service_work };

	entry(&services);
	lab_heartbeat();
}

LAB_FUNC static void work_alone(uint64_t secs)
{
	uint64_t end = lab_tsc() + secs * lab_truth.tsc_hz;

	while (lab_tsc() < end)
		service_work(30000);
}

LAB_FUNC void app_main(void)
{
	static uint64_t entry;
	uint64_t rounds = lab_rounds(100000);

	if (!entry) {
		work_alone(lab_arg("late", 0));
		entry = lab_program_load();
	}
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		call_program((lab_program_fn *)entry);
}
