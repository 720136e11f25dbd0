/* SPDX-License-Identifier: BSD-2-Clause */
/* Exception and interrupt entries. */
#include "layout.h"

/*
 * Exceptions are fatal here. They run on a stack of their own (IST 1), so that they can tell about
 * a broken one, and hand a struct lab_trap_frame to lab_trap().
 */
	.text
	.globl	lab_trap_entries
	.type	lab_trap_entries, @function
	.balign	16
lab_trap_entries:
	.irp	v, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	.balign	16
	.if	!(\v == 8 || (\v >= 10 && \v <= 14) || \v == 17 || \v == 21 || \v == 29 || \v == 30)
	pushq	$0			/* the CPU pushes no error code */
	.endif
	pushq	$\v
	jmp	lab_trap_common
	.endr
	.size	lab_trap_entries, . - lab_trap_entries

	.type	lab_trap_common, @function
lab_trap_common:
	movq	%rsp, %rdi
	xorl	%ebp, %ebp
	andq	$-16, %rsp
	call	lab_trap
	ud2
	.size	lab_trap_common, . - lab_trap_common

/*
 * Interrupts use the stack they meet. The frame is laid out as a call's: [rbp] is the interrupted
 * rbp and [rbp + 8] the interrupted rip, so a frame-pointer walk goes straight on. Unwinding by CFI
 * needs the other registers as well: a function that aligns its stack finds its caller by r10.
 */
	.macro	irq_entry name, handler
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa rsp, 40
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
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
	iretq
	.cfi_endproc
	.size	\name, . - \name
	.endm

	irq_entry lab_irq_timer, lab_timer_tick
	irq_entry lab_irq_spurious, lab_spurious

	.section .note.GNU-stack, "", @progbits
