/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of every shape that compilers make: leaves without a frame, recursion, large and aligned
 * frames, frames of a size known at run time. Also many saved registers, early returns, tail calls,
 * calls by pointer, variable arguments and threads. All of it is interrupted 100 times a second.
 * For comparing unwinders; keeps no books. Built with each compiler at each level of optimisation.
 */
#include "lab.h"
#include "lab_thread.h"

#include <stdarg.h>

#define WORK 40 /* turns of 4 instructions in a leaf */

const char lab_app_name[] = "corpus";

static uint64_t sink;
static uint64_t cells[16];

LAB_FUNC static uint64_t leaf(uint64_t x)
{
	lab_burn(WORK);
	return x * 3 + 1;
}

/* Two ways out, one of them before a frame is needed. */
LAB_FUNC static uint64_t early_return(uint64_t x)
{
	uint64_t a, b;

	if (!(x & 3))
		return leaf(x);
	a = leaf(x);
	b = leaf(a ^ x);
	return leaf(a + b) ^ a;
}

LAB_FUNC static uint64_t recursion(unsigned depth, uint64_t x)
{
	if (!depth)
		return leaf(x);
	return recursion(depth - 1, x + depth) ^ depth;
}

LAB_FUNC static uint64_t large_frame(uint64_t x)
{
	uint64_t a[200];

	for (unsigned i = 0; i < 200; i += 10)
		a[i] = leaf(x + i);
	return a[x % 20 * 10] + a[190];
}

/* The size of the frame is known to a register only. */
LAB_FUNC static uint64_t sized_frame(uint64_t n)
{
	uint64_t *a = __builtin_alloca(n * sizeof(*a));

	for (uint64_t i = 0; i < n; i++)
		a[i] = leaf(i);
	return a[n - 1] + early_return(n);
}

/* The stack is aligned first, so the distance to the caller's is not known either. */
LAB_FUNC static uint64_t aligned_frame(uint64_t x)
{
	_Alignas(128) uint64_t a[16];

	for (unsigned i = 0; i < 16; i++)
		a[i] = x + i;
	sink += (uint64_t)(uintptr_t)a & 127;
	return leaf(a[x & 15]) + early_return(a[1]);
}

LAB_FUNC static uint64_t aligned_and_sized(uint64_t n)
{
	_Alignas(64) uint64_t a[8];
	uint64_t *b = __builtin_alloca(n * sizeof(*b));

	a[n & 7] = leaf(n);
	b[0] = n;
	b[n - 1] = recursion(3, a[n & 7]);
	sink += (uint64_t)(uintptr_t)a & 63;
	return b[0] + leaf(b[n - 1]);
}

LAB_FUNC static uint64_t many_registers(const uint64_t *p)
{
	uint64_t a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7];

	for (unsigned i = 0; i < 4; i++) {
		a += leaf(b ^ h);
		b += leaf(c ^ a);
		c += leaf(d ^ b);
		d += leaf(e ^ c);
		e += f;
		f += g;
		g += h;
		h += d;
	}
	return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

/* With arguments above the alignment and a frame of any size, GCC finds its caller by r10. */
LAB_FUNC static uint64_t aligned_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d,
	uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
	_Alignas(64) uint64_t cell[8] = { a, b, c, d, e, f, g, h };
	uint64_t *more = __builtin_alloca((h % 8 + 1) * sizeof(*more));

	more[h % 8] = leaf(h);
	sink += (uint64_t)(uintptr_t)cell & 63;
	return leaf(cell[h & 7]) + early_return(g) + more[h % 8];
}

/* So many arguments that some are pushed. */
LAB_FUNC static uint64_t many_arguments(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
	uint64_t f, uint64_t g, uint64_t h, uint64_t i)
{
	return leaf(a + b + c + d) + leaf(e + f + g + h + i);
}

LAB_FUNC static uint64_t variable_arguments(unsigned n, ...)
{
	uint64_t sum = 0;
	va_list ap;

	va_start(ap, n);
	while (n--)
		sum += leaf(va_arg(ap, uint64_t));
	va_end(ap);
	return sum;
}

LAB_FUNC static uint64_t tail_callee(uint64_t x)
{
	return leaf(x) + leaf(x + 1);
}

LAB_FUNC static uint64_t tail_caller(uint64_t x)
{
	sink += x;
	return tail_callee(x + 2);
}

LAB_FUNC static uint64_t by_pointer(uint64_t (*fn)(uint64_t), uint64_t x)
{
	return fn(x) + 1;
}

LAB_FUNC static uint64_t many_cases(uint64_t x)
{
	switch (x % 8) {
	case 0:
		return leaf(x);
	case 1:
		return leaf(x) + leaf(x + 1);
	case 2:
		return large_frame(x);
	case 3:
		return recursion(2, x);
	case 4:
		return sized_frame(x % 5 + 2);
	case 5:
		return early_return(x);
	default:
		return aligned_frame(x);
	}
}

LAB_FUNC static void one_round(uint64_t x)
{
	static uint64_t (*const fn[])(uint64_t) = { leaf, early_return, large_frame, sized_frame,
		aligned_frame, aligned_and_sized, tail_caller, many_cases };

	for (unsigned i = 0; i < 8; i++)
		sink += by_pointer(fn[(x + i) & 7], (x + i) % 30 + 1);
	sink += recursion(12, x);
	sink += many_registers(cells);
	sink += many_arguments(x, 1, 2, 3, 4, 5, 6, 7, x);
	sink += aligned_arguments(x, 1, 2, 3, 4, 5, 6, x);
	sink += variable_arguments(4, x, x + 1, x + 2, x + 3);
}

LAB_FUNC static void on_another_stack(void *arg)
{
	one_round(*(uint64_t *)arg);
}

LAB_FUNC static void worker_main(void *arg)
{
	for (uint64_t x = 0;; x++) {
		sink += many_cases(x) + recursion(5, x);
		lab_thread_yield();
	}
}

/* Interrupts have frames of their own, on top of whatever there was. */
LAB_FUNC static void tick(void)
{
	for (unsigned i = 0; i < 200; i++)
		sink += many_cases(lab_ticks() + i);
}

void app_main(void)
{
	uint64_t rounds = lab_rounds(20000);
	static uint64_t other; /* the top of a stack, 0 at first */

	if (!other) {
		other = lab_stack_alloc(8);
		lab_timer_start(100, tick);
		lab_thread_init();
		lab_thread_create("worker-1", worker_main, NULL);
		lab_thread_create("worker-2", worker_main, NULL);
	}
	lab_irq_enable();
	for (uint64_t x = 0; x < rounds && !lab_stop(); x++) {
		one_round(x);
		if (x % 4 == 0)
			lab_on_stack(on_another_stack, &x, other);
		lab_thread_yield();
		lab_heartbeat();
	}
	lab_irq_disable();
	lab_printf("corpus: %lx\n", sink);
}
