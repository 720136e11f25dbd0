/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program that apps/loads.c runs: a position-independent ELF file of its own. It has segments
 * of headers, code and data, and a table that must be relocated.
 */
#include "lab.h"
#include "lab_program.h"

#define UNIT 30000

lab_program_fn program_start;

LAB_FUNC static void program_burn(uint64_t n)
{
	lab_burn(n);
}

LAB_FUNC static void program_inner(const struct lab_services *services)
{
	program_burn(60 * UNIT / 100);
	services->work(40 * UNIT / 100);
}

LAB_FUNC static void program_outer(const struct lab_services *services)
{
	program_inner(services);
	__asm__ volatile("");
}

/* Called through memory: it works only if the relocation was applied. */
static lab_program_fn *const volatile steps[] = { program_outer };

LAB_FUNC void program_start(const struct lab_services *services)
{
	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		steps[i](services);
}
