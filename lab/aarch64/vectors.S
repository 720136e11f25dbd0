/* SPDX-License-Identifier: BSD-2-Clause */
/* The exception vectors: interrupts are handled, everything else is fatal. */
	.text
	.balign	2048
	.globl	lab_vectors
	.type	lab_vectors, @function
lab_vectors:
	.irp	v, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	.balign	128
	.if	\v == 5			/* IRQ at EL1 with its own stack pointer */
	b	lab_irq_timer
	.else
	b	lab_trap_entry
	.endif
	.endr
	.balign	128
	.size	lab_vectors, . - lab_vectors

	.type	lab_trap_entry, @function
lab_trap_entry:
	ldr	x9, =lab_trap_stack + 4096	/* ours may be what is broken */
	mov	sp, x9
	mov	x29, xzr
	bl	lab_trap
	brk	#1
	.size	lab_trap_entry, . - lab_trap_entry
	.ltorg

/*
 * Interrupts use the stack they meet. At its end they leave a frame record as a call's: the
 * interrupted x29 and pc, so that a frame-pointer walk goes straight on. Unwinding by CFI needs the
 * other registers as well: the interrupted function may have its return address in x30.
 *
 *   sp + 0   x0 ... x18     + 160 x30     + 176 x29
 *      + 152 (unused)       + 168 spsr    + 184 pc
 */
	.globl	lab_irq_timer
	.type	lab_irq_timer, @function
lab_irq_timer:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_return_column 32		/* pc, not x30 */
	.cfi_def_cfa sp, 0
	sub	sp, sp, #192
	.cfi_def_cfa_offset 192
	stp	x0, x1, [sp, #0]
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	stp	x16, x17, [sp, #128]
	str	x18, [sp, #144]
	mrs	x10, elr_el1
	mrs	x11, spsr_el1
	stp	x30, x11, [sp, #160]
	stp	x29, x10, [sp, #176]
	.cfi_offset x30, -32
	.cfi_offset x29, -16
	.cfi_offset 32, -8
	add	x29, sp, #176
	bl	lab_timer_tick
	ldp	x29, x10, [sp, #176]
	ldp	x30, x11, [sp, #160]
	msr	elr_el1, x10
	msr	spsr_el1, x11
	ldp	x0, x1, [sp, #0]
	ldp	x2, x3, [sp, #16]
	ldp	x4, x5, [sp, #32]
	ldp	x6, x7, [sp, #48]
	ldp	x8, x9, [sp, #64]
	ldp	x10, x11, [sp, #80]
	ldp	x12, x13, [sp, #96]
	ldp	x14, x15, [sp, #112]
	ldp	x16, x17, [sp, #128]
	ldr	x18, [sp, #144]
	add	sp, sp, #192
	.cfi_def_cfa_offset 0
	.cfi_restore x30
	.cfi_restore x29
	.cfi_undefined 32		/* in elr_el1 */
	eret
	.cfi_endproc
	.size	lab_irq_timer, . - lab_irq_timer

	.bss
	.balign	16
	.type	lab_trap_stack, @object
lab_trap_stack:
	.skip	4096
	.size	lab_trap_stack, 4096

	.section .note.GNU-stack, "", %progbits
