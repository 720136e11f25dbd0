/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks that are switched as OCaml 5's runtime does it (fibers_asm.S). All C functions run on the
 * stack that the app began on. The "managed" functions, m_*, are in assembler and run on fibers,
 * which lie elsewhere. They call C through a link on the C stack (call_c), or keep their stack
 * pointer in rbx meanwhile. A fiber starts others, whose frames go on in their starter. C calls
 * back.
 *
 * Known answer, by function: c_linked 25, c_direct 20, c_deep 15, c_fiber 15, c_inner 15, c_called
 * 10. c_deep is 12 frames of m_deep down; c_inner and c_called are two fibers down, and below
 * c_called lies a callback. Calls are short, so no stack stays as it is for long.
 */
#include "lab.h"
#include "fibers.h"

#define UNIT 100 /* turns of 4 instructions: 1 % of a round */

const char lab_app_name[] = "fibers";

LAB_FN(c_linked);
LAB_FN(c_direct);
LAB_FN(c_deep);
LAB_FN(c_fiber);
LAB_FN(c_inner);
LAB_FN(c_called);

struct fiber {
	uint64_t sp, top;
};

/* The assembler's. */
extern uint64_t fiber_now, c_stack;
extern struct fiber fibers[FIBER_NR];
extern uint8_t fiber_stacks[FIBER_NR * FIBER_BYTES];
void start_managed(void (*fn)(void));
void m_main(void), m_called(void);
void c_linked(void), c_direct(void), c_deep(void), c_fiber(void), c_inner(void), c_called(void);
void c_calls_back(void), c_frees(void);

#define WORK(fn, percent)                 \
	LAB_FUNC void fn(void)            \
	{                                 \
		LAB_ENTER(fn);            \
		lab_burn((percent)*UNIT); \
		LAB_LEAVE(fn);            \
	}

WORK(c_linked, 25)
WORK(c_direct, 20)
WORK(c_deep, 15)
WORK(c_fiber, 15)
WORK(c_inner, 15)
WORK(c_called, 10)

LAB_FUNC void c_calls_back(void)
{
	start_managed(m_called);
	__asm__ volatile("");
}

LAB_FUNC void c_frees(void)
{
	__asm__ volatile("");
}

static void make_fiber(unsigned i)
{
	struct fiber *f = &fibers[i];

	f->top = (uint64_t)fiber_stacks + (i + 1) * FIBER_BYTES - HANDLER_BYTES;
	f->sp = f->top;
	*(uint64_t *)(f->top + HANDLER_PARENT) = 0;
}

LAB_FUNC void app_main(void)
{
	uint64_t rounds = lab_rounds(100000);

	for (unsigned i = 0; i < FIBER_NR; i++)
		make_fiber(i);
	fiber_now = (uint64_t)&fibers[0];
	for (uint64_t i = 0; i < rounds && !lab_stop(); i++)
		start_managed(m_main);
}
