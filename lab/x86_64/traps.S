/* SPDX-License-Identifier: BSD-2-Clause */
/* Exception and interrupt entries. */
#include "irq.inc"
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

	.globl	lab_trap_common
	.type	lab_trap_common, @function
lab_trap_common:
	movq	%rsp, %rdi
	xorl	%ebp, %ebp
	andq	$-16, %rsp
	call	lab_trap
	ud2
	.size	lab_trap_common, . - lab_trap_common

	.macro	irq_entry name, handler
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
	irq_body \handler
	iretq
	.cfi_endproc
	.size	\name, . - \name
	.endm

	irq_entry lab_irq_timer, lab_timer_tick
	irq_entry lab_irq_spurious, lab_spurious
	irq_entry lab_irq_port, lab_port_irq
	irq_entry lab_irq_step, lab_step_done
	irq_entry lab_irq_tick, lab_tick_other

	.section .note.GNU-stack, "", @progbits
