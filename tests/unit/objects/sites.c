/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions to trace, of several shapes; built with the tracer's flags in several ways. */
#ifdef PLAIN
#define NOP ""
#else
#define NOP ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#endif

/* The assembler then resolves jumps to it, and leaves no relocations. */
#ifdef THUNK_INSIDE
__asm__(".globl __x86_return_thunk\n"
	".type __x86_return_thunk, @function\n"
	"__x86_return_thunk: ret; int3\n"
	".size __x86_return_thunk, . - __x86_return_thunk\n");
#endif

int __attribute__((noinline)) leaf(int n)
{
	return n + 1;
}

int __attribute__((noinline)) several_returns(const char *s, int n)
{
	if (n == 1)
		return leaf(s[1]) + 1;
	if (n == 2)
		return leaf(leaf(s[2])) + 2;
	if (n == 3)
		return leaf(s[3]) / n;
	for (int i = 0; i < n; i++) {
		if (s[i] == 7)
			return leaf(i);
	}
	return 0;
}

void __attribute__((cold, noinline)) rare(int n)
{
	__asm__ volatile("" ::"r"(n));
}

/* Has a part NAME.cold with a return of its own. */
void with_cold_part(int n);
__asm__(".type with_cold_part, @function\n"
	".balign 16\n"
	".globl with_cold_part\n"
	"with_cold_part:\n" NOP "test %edi, %edi\n"
	"js with_cold_part.cold\n"
	"jmp __x86_return_thunk\n"
	".size with_cold_part, . - with_cold_part\n"
	".section .text.unlikely,\"ax\",@progbits\n"
	".type with_cold_part.cold, @function\n"
	"with_cold_part.cold:\n"
	"call rare\n"
	"jmp __x86_return_thunk\n"
	".size with_cold_part.cold, . - with_cold_part.cold\n"
	".text\n");

_Noreturn void __attribute__((noinline)) never_returns(void)
{
	for (;;)
		leaf(1);
}

int __attribute__((noinline, no_instrument_function, patchable_function_entry(0))) not_traced(int n)
{
	return leaf(n) * 2;
}

/* Returns under a condition, as no compiler does: it cannot be traced with its exits. */
int returns_if(int n);
__asm__(".type returns_if, @function\n"
	".balign 16\n"
	".globl returns_if\n"
	"returns_if:\n" NOP "test %edi, %edi\n"
	"jz __x86_return_thunk\n"
	"jmp __x86_return_thunk\n"
	".size returns_if, . - returns_if\n"
#ifdef TABLE
	".section " TABLE ",\"" FLAGS "\",@progbits\n.quad with_cold_part\n.text\n"
	".section " TABLE ",\"" FLAGS "\",@progbits\n.quad returns_if\n.text\n"
#endif
);

void _start(void);
void _start(void)
{
	with_cold_part(1);
	several_returns("1234", not_traced(returns_if(3)));
	never_returns();
}
