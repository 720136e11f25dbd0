/* SPDX-License-Identifier: BSD-2-Clause */
/* For the assembler: what interrupt entries have in common. */
#ifndef LAB_X86_64_IRQ_H
#define LAB_X86_64_IRQ_H

/*
 * Interrupts use the stack they meet. The frame is laid out as a call's: [rbp] is the interrupted
 * rbp and [rbp + 8] the interrupted rip, so a frame-pointer walk goes straight on. Unwinding by CFI
 * needs the other registers as well: a function that aligns its stack finds its caller by r10.
 */
	.macro	irq_body handler
	.cfi_def_cfa rsp, 40
	pushq	%rbp
	.cfi_def_cfa_offset 48
	.cfi_offset rbp, -48
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	pushq	%rax
	.cfi_offset rax, -56
	pushq	%rcx
	.cfi_offset rcx, -64
	pushq	%rdx
	.cfi_offset rdx, -72
	pushq	%rsi
	.cfi_offset rsi, -80
	pushq	%rdi
	.cfi_offset rdi, -88
	pushq	%r8
	.cfi_offset r8, -96
	pushq	%r9
	.cfi_offset r9, -104
	pushq	%r10
	.cfi_offset r10, -112
	pushq	%r11
	.cfi_offset r11, -120
	subq	$8, %rsp
	call	\handler
	addq	$8, %rsp
	popq	%r11
	.cfi_restore r11
	popq	%r10
	.cfi_restore r10
	popq	%r9
	.cfi_restore r9
	popq	%r8
	.cfi_restore r8
	popq	%rdi
	.cfi_restore rdi
	popq	%rsi
	.cfi_restore rsi
	popq	%rdx
	.cfi_restore rdx
	popq	%rcx
	.cfi_restore rcx
	popq	%rax
	.cfi_restore rax
	popq	%rbp
	.cfi_def_cfa rsp, 40
	.cfi_restore rbp
	.endm

#endif
