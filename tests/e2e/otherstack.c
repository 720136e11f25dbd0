/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process whose C runs on a stack of its own, as OCaml 5's does: the caller's frame is found by
 * rbx. The C library copies there or, with an argument, tells the time. With "raise" it stays where
 * rows are wrong, as while OCaml raises an exception. An address of the stack is in place of the
 * return address.
 */
#include <stddef.h>
#include <string.h>
#include <time.h>

#define SIZE (1u << 20)

static char from[SIZE], to[SIZE];
static char stack[1u << 16] __attribute__((aligned(16)));

void run_on(void *top, void (*fn)(void));
void raises(void);

__attribute__((noinline)) static void copies(void)
{
	memcpy(to, from, SIZE);
	__asm__ volatile("" ::"r"(to) : "memory");
}

__asm__(".text\n"
	".globl run_on\n"
	".type run_on, @function\n"
	"run_on:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset rbx, -16\n"
	"	mov %rsp, %rbx\n"
	"	.cfi_def_cfa_register rbx\n"
	"	mov %rdi, %rsp\n"
	"	call *%rsi\n"
	"	mov %rbx, %rsp\n"
	"	.cfi_def_cfa_register rsp\n"
	"	pop %rbx\n"
	"	.cfi_def_cfa_offset 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size run_on, . - run_on\n"
	".globl raises\n"
	".type raises, @function\n"
	"raises:\n"
	"	.cfi_startproc\n"
	"	push %rsp\n"
	"0:	pause\n"
	"	jmp 0b\n"
	"	.cfi_endproc\n"
	"	.size raises, . - raises\n");

__attribute__((noinline)) static void tells(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "raise") == 0)
		raises();
	for (;;)
		run_on(stack + sizeof(stack), argc > 1 ? tells : copies);
}
