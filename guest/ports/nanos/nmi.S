/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a non-maskable interrupt into uniscope_tick(). The stack is this CPU's own; above it lies the
 * address of its struct cpuinfo. %gs may be the kernel's or a program's: it is the kernel's
 * meanwhile, and then what it was. No vector register is touched.
 */
#define GS_BASE 0xc0000101
#define SAVED	72 /* bytes of registers, below what the CPU pushed */
#define PUSHED	40 /* rip, cs, flags, rsp, ss */

	.text
	.globl	uniscope_nmi
	.type	uniscope_nmi, @function
uniscope_nmi:
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	leaq	SAVED(%rsp), %rdi
	movq	%rbp, %rsi
	pushq	%rbp
	movq	%rsp, %rbp
	movl	$GS_BASE, %ecx
	rdmsr
	pushq	%rdx
	pushq	%rax
	movq	PUSHED(%rdi), %rax
	movq	%rax, %rdx
	shrq	$32, %rdx
	wrmsr
	movq	PUSHED(%rdi), %rdx
	andq	$-16, %rsp
	cld
	call	uniscope_tick
	leaq	-16(%rbp), %rsp
	popq	%rax
	popq	%rdx
	movl	$GS_BASE, %ecx
	wrmsr
	popq	%rbp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	iretq
	.size	uniscope_nmi, . - uniscope_nmi

	.section .note.GNU-stack, "", @progbits
