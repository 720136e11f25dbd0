/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of exact.c whose instructions are known one by one. */
.macro function name
	.globl \name
	.type \name, %function
\name:
.endm
.macro end name
	.size \name, . - \name
.endm

	.text
	.balign 16
function exact_touch
	ldr	x1, [x0]
	ret
end exact_touch

function exact_device
1:	ldr	w2, [x0]
	subs	x1, x1, #1
	b.ne	1b
	ret
end exact_device

function exact_devices
	mov	x3, #0
1:	ldr	w2, [x0]
	add	x3, x3, #1
	cmp	x3, x1
	b.ne	1b
	ret
end exact_devices

function exact_tail_a
	subs	x0, x0, #1
	b.eq	1f
	b	exact_tail_b
1:	ret
end exact_tail_a

function exact_tail_b
	subs	x0, x0, #1
	b.eq	1f
	b	exact_tail_a
1:	ret
end exact_tail_b

function exact_catch
	stp	x29, x30, [sp, #-96]!
	stp	x19, x20, [sp, #16]
	stp	x21, x22, [sp, #32]
	stp	x23, x24, [sp, #48]
	stp	x25, x26, [sp, #64]
	stp	x27, x28, [sp, #80]
	mov	x9, sp
	ldr	x10, =saved
	str	x9, [x10]
	mov	x9, x0
	mov	x0, x1
	blr	x9
	mov	x0, #0
.Lcaught:
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldp	x27, x28, [sp, #80]
	ldp	x29, x30, [sp], #96
	ret
end exact_catch

function exact_throw
	ldr	x9, =saved
	ldr	x9, [x9]
	mov	sp, x9
	mov	x0, #1
	adr	x10, .Lcaught
	br	x10
end exact_throw

function exact_bounce
	stp	x29, x30, [sp, #-16]!
	cmp	x0, #4
	b.ne	1f
	ldr	x9, =bounced
	mov	x10, sp
	str	x10, [x9]
1:	cbz	x0, 2f
	sub	x0, x0, #1
	bl	exact_bounce
	b	3f
2:	ldr	x9, =bounced
	ldr	x9, [x9]
	mov	sp, x9
	bl	exact_note
3:	ldp	x29, x30, [sp], #16
	ret
end exact_bounce

function exact_note
	stp	x29, x30, [sp, #-16]!
	ldp	x29, x30, [sp], #16
	ret
end exact_note
	.ltorg

/* The processor keeps where to go on in a register, which a nested exception would overwrite. */
function exact_page_fault
	sub	sp, sp, #176
	stp	x0, x1, [sp, #0]
	stp	x2, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x8, x9, [sp, #64]
	stp	x10, x11, [sp, #80]
	stp	x12, x13, [sp, #96]
	stp	x14, x15, [sp, #112]
	stp	x16, x17, [sp, #128]
	stp	x18, x30, [sp, #144]
	bl	exact_map
	ldp	x18, x30, [sp, #144]
	ldp	x16, x17, [sp, #128]
	ldp	x14, x15, [sp, #112]
	ldp	x12, x13, [sp, #96]
	ldp	x10, x11, [sp, #80]
	ldp	x8, x9, [sp, #64]
	ldp	x6, x7, [sp, #48]
	ldp	x4, x5, [sp, #32]
	ldp	x2, x3, [sp, #16]
	ldp	x0, x1, [sp, #0]
	add	sp, sp, #176
	eret
end exact_page_fault

	.balign 2048
function exact_vectors
	.irp	v, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	.balign	128
	.if	\v == 4			/* an exception at EL1 with its own stack pointer */
	b	exact_page_fault
	.else
	b	.
	.endif
	.endr
	.balign	128
end exact_vectors

	.local saved
	.comm saved, 8, 8
	.local bounced
	.comm bounced, 8, 8
	.section .note.GNU-stack, "", %progbits
