/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of debug data, which find a line by the word behind its @. Nobody runs this. */
static inline __attribute__((always_inline)) void innermost(void)
{
	__asm__ volatile(".globl spot_inlined\nspot_inlined: nop"); /* @innermost */
}

static inline __attribute__((always_inline)) void middle(void)
{
	innermost(); /* @middle */
}

__attribute__((noinline)) void outer(void)
{
	middle();						/* @outer */
	__asm__ volatile(".globl spot_after\nspot_after: nop"); /* @after */
}

__attribute__((noinline)) void plain(void)
{
	__asm__ volatile(".globl spot_plain\nspot_plain: nop"); /* @plain */
}

/* For the tests of parameters: what goes where by x86_64's rules. */
enum colour { RED, GREEN };
struct pair {
	long a, b;
};
struct large {
	long a[4];
};
typedef const unsigned short small;

__attribute__((noinline)) long takes(
	int a, const char *b, double x, small c, _Bool d, enum colour e, unsigned long f)
{
	__asm__ volatile("" : : "r"(a), "r"(b), "r"((int)x), "r"(c), "r"(d), "r"(e), "r"(f));
	return a;
}

__attribute__((noinline)) struct large gives(struct large in, int a, struct pair p, int lost)
{
	__asm__ volatile("" : : "r"(a), "r"(p.a), "r"(lost));
	return in;
}

__attribute__((noinline)) void _start(void)
{
	outer();
	plain();
	takes(1, 0, 1, 1, 1, GREEN, 1);
	gives((struct large){ { 1 } }, 1, (struct pair){ 1, 1 }, 1);
	__asm__ volatile("");
}
