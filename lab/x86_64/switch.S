/* SPDX-License-Identifier: BSD-2-Clause */
/* lab_switch(from, to): lab_thread.h tells what it leaves on the stack. */
	.text
	.globl	lab_switch
	.type	lab_switch, @function
lab_switch:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	movq	%rsp, 8(%rdi)
	movq	8(%rsi), %rsp		/* the rows stay true: it is the same frame of another stack */
	.globl	lab_switch_resume
lab_switch_resume:			/* where a thread that is on no CPU goes on */
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size	lab_switch, . - lab_switch

	.globl	lab_thread_entry
	.type	lab_thread_entry, @function
lab_thread_entry:
	.cfi_startproc
	.cfi_undefined rip		/* the outermost frame */
	xorl	%ebp, %ebp
	movq	%r13, %rdi
	call	*%r12
	call	lab_thread_exit
	ud2
	.cfi_endproc
	.size	lab_thread_entry, . - lab_thread_entry

	.section .note.GNU-stack, "", @progbits
