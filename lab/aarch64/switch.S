/* SPDX-License-Identifier: BSD-2-Clause */
/* lab_switch(from, to): lab_thread.h tells what it leaves on the stack. */
	.text
	.globl	lab_switch
	.type	lab_switch, @function
lab_switch:
	.cfi_startproc
	stp	x29, x30, [sp, #-96]!
	.cfi_adjust_cfa_offset 96
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	.cfi_rel_offset x19, 16
	.cfi_rel_offset x20, 24
	stp	x21, x22, [sp, #32]
	.cfi_rel_offset x21, 32
	.cfi_rel_offset x22, 40
	stp	x23, x24, [sp, #48]
	.cfi_rel_offset x23, 48
	.cfi_rel_offset x24, 56
	stp	x25, x26, [sp, #64]
	.cfi_rel_offset x25, 64
	.cfi_rel_offset x26, 72
	stp	x27, x28, [sp, #80]
	.cfi_rel_offset x27, 80
	.cfi_rel_offset x28, 88
	mov	x9, sp
	str	x9, [x0, #8]
	ldr	x9, [x1, #8]
	mov	x29, x9			/* so that the frame record is there before the stack is */
	mov	sp, x9			/* the rows stay true: it is the same frame of another stack */
	.globl	lab_switch_resume
lab_switch_resume:			/* where a thread that is on no CPU goes on */
	ldp	x19, x20, [sp, #16]
	.cfi_restore x19
	.cfi_restore x20
	ldp	x21, x22, [sp, #32]
	.cfi_restore x21
	.cfi_restore x22
	ldp	x23, x24, [sp, #48]
	.cfi_restore x23
	.cfi_restore x24
	ldp	x25, x26, [sp, #64]
	.cfi_restore x25
	.cfi_restore x26
	ldp	x27, x28, [sp, #80]
	.cfi_restore x27
	.cfi_restore x28
	ldp	x29, x30, [sp], #96
	.cfi_adjust_cfa_offset -96
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size	lab_switch, . - lab_switch

	.globl	lab_thread_entry
	.type	lab_thread_entry, @function
lab_thread_entry:
	.cfi_startproc
	.cfi_undefined x30		/* the outermost frame */
	mov	x29, xzr
	mov	x0, x20
	blr	x19
	bl	lab_thread_exit
	brk	#1
	.cfi_endproc
	.size	lab_thread_entry, . - lab_thread_entry

	.section .note.GNU-stack, "", %progbits
