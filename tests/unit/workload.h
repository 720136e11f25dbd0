/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of every shape that a compiler makes, to be single-stepped: see singlestep.c. They
 * call nothing outside of their section, so that a walk never leaves it.
 */
#ifndef UNI_TESTS_WORKLOAD_H
#define UNI_TESTS_WORKLOAD_H

#include <stdint.h>

#ifdef __clang__
#define W __attribute__((noinline, section("workload"), used, no_sanitize("address", "undefined")))
#else
#define W                                                                                     \
	__attribute__((noipa, section("workload"), used, no_sanitize("address", "undefined"), \
		no_stack_protector))
#endif

typedef uint64_t (*w_fn)(uint64_t);

static volatile uint64_t w_sink;

/* Needs no stack: GCC leaves rbp alone. */
W static uint64_t w_leaf(uint64_t x)
{
	for (int i = 0; i < 3; i++)
		x = x * 31 + 7;
	return x ^ x >> 5;
}

W static uint64_t w_array(uint64_t x)
{
	volatile uint64_t a[20];

	for (unsigned i = 0; i < 20; i++)
		a[i] = x + i;
	return a[x % 20] + a[3];
}

W static uint64_t w_recurse(uint64_t x)
{
	if (x == 0)
		return w_leaf(1);
	return w_recurse(x - 1) + w_leaf(x);
}

/* The frame is set up only on the way that needs it (shrink-wrapping). */
W static uint64_t w_shrink(uint64_t x)
{
	uint64_t a, b;

	if ((x & 1) != 0)
		return x;
	a = w_leaf(x);
	b = w_array(a);
	return w_leaf(a + b) + a * b;
}

W static uint64_t w_shrink_recurse(uint64_t x)
{
	if (x < 2)
		return x * 3;
	return w_shrink_recurse(x - 1) ^ w_shrink_recurse(x - 2) ^ w_leaf(x);
}

W static uint64_t w_tail(uint64_t x)
{
	w_sink = w_leaf(x);
	return w_array(x + 1);
}

/* A tail call to a function without a frame, from one without a frame. */
W static uint64_t w_tail_leaf(uint64_t x)
{
	return w_leaf(x * 3);
}

W static uint64_t w_saves(uint64_t a)
{
	uint64_t b = w_leaf(a), c = w_leaf(b), d = w_leaf(c), e = w_leaf(d), f = w_leaf(e);

	w_sink = a + b;
	return w_leaf(a + b + c) * w_leaf(d + e + f) + a * b * c * d * e * f;
}

W static uint64_t w_aligned(uint64_t x)
{
	volatile uint64_t a[8] __attribute__((aligned(64)));

	for (unsigned i = 0; i < 8; i++)
		a[i] = x * i;
	return w_leaf(a[2]) + a[5];
}

W static uint64_t w_switch(uint64_t x)
{
	switch (x % 7) {
	case 0:
		return w_leaf(x);
	case 1:
		return x * 5;
	case 2:
		return w_array(x);
	case 3:
		return w_tail(x);
	case 4:
		return x / 3;
	case 5:
		w_sink = x;
		return 9;
	default:
		return w_shrink(x);
	}
}

W static uint64_t w_float(uint64_t x)
{
	double d = (double)(x % 1000) + 0.5;

	for (int i = 0; i < 4; i++)
		d = d * 1.25 + 1.0;
	return (uint64_t)d;
}

W static uint64_t w_big(uint64_t x)
{
	volatile uint8_t a[6000];

	a[x % 6000] = 1;
	a[17] = (uint8_t)w_leaf(x);
	return a[17] + w_array(x);
}

W static uint64_t w_many(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f,
	uint64_t g, uint64_t h)
{
	return w_leaf(a + b + c + d) + e + f + g + h;
}

W static uint64_t w_pointer(uint64_t x)
{
	static const w_fn fn[] = { w_leaf, w_array, w_shrink, w_tail, w_tail_leaf, w_saves,
		w_aligned, w_switch, w_float, w_big };
	const w_fn volatile *f = fn;
	uint64_t sum = 0;

	for (unsigned i = 0; i < sizeof(fn) / sizeof(fn[0]); i++)
		sum += f[i](x + i);
	return sum;
}

/* Hand-written code: no frame, moves rsp, calls in the middle of it. */
uint64_t w_asm(uint64_t x);
uint64_t w_asm_end(void);
__asm__(".pushsection workload,\"ax\",@progbits\n"
	".globl w_asm\n.type w_asm,@function\n"
	"w_asm:\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	mov %rdi, %rbx\n"
	"	sub $24, %rsp\n"
	"	mov %rbx, (%rsp)\n"
	"	lea 5(%rbx), %rax\n"
	"	mov (%rsp), %r12\n"
	"	add %r12, %rax\n"
	"	add $24, %rsp\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	ret\n"
	".size w_asm, .-w_asm\n"
	".globl w_asm_end\n.type w_asm_end,@function\n"
	"w_asm_end:\n"
	"	ret\n"
	".size w_asm_end, .-w_asm_end\n"
	".popsection\n");

W static void w_entry(void)
{
	uint64_t sum = w_recurse(12);

	for (uint64_t i = 0; i < 9; i++)
		sum += w_switch(i) + w_shrink(i) + w_shrink_recurse(i % 5);
	sum += w_pointer(3) + w_tail_leaf(1) + w_aligned(2) + w_float(4) + w_saves(9) + w_big(5);
	sum += w_many(1, 2, 3, 4, 5, 6, 7, sum) + w_asm(sum);
	w_sink = sum;
	__asm__ volatile("int3");
}

static void (*const w_functions[])(void) = {
#define F(f) (void (*)(void))(uintptr_t)(f)
	F(w_leaf),
	F(w_array),
	F(w_recurse),
	F(w_shrink),
	F(w_shrink_recurse),
	F(w_tail),
	F(w_tail_leaf),
	F(w_saves),
	F(w_aligned),
	F(w_switch),
	F(w_float),
	F(w_big),
	F(w_many),
	F(w_pointer),
	F(w_asm),
	F(w_asm_end),
	F(w_entry),
#undef F
};

#endif
