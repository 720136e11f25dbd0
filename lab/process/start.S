/* SPDX-License-Identifier: BSD-2-Clause */
/* The first instruction of the process; the kernel left argc and argv on the stack. */
	.text
	.globl	lab_entry
	.type	lab_entry, @function
lab_entry:
	.cfi_startproc
	.cfi_undefined rip		/* the outermost frame */
	xorl	%ebp, %ebp
	movq	%rsp, %rdi
	andq	$-16, %rsp
	call	lab_setup
	call	kmain
	ud2
	.cfi_endproc
	.size	lab_entry, . - lab_entry

	.section .note.GNU-stack, "", @progbits
