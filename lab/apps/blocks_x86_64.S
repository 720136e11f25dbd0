/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of blocks.c that jump to where a call returns. */
.macro function name
	.globl \name
	.type \name, @function
\name:
.endm
.macro end name
	.size \name, . - \name
.endm
.macro divides
	.rept 60
	movl $1000, %eax
	xorl %edx, %edx
	divl %ecx
	.endr
.endm

	.text
function interprets
	mov $16, %esi
	mov $3, %ecx
	mov $1f, %r8
	call blocks_empty
1:	dec %esi
	js 2f
	divides
	jmp *%r8
2:	ret
end interprets

function parts
	mov $16, %esi
	mov $3, %ecx
	call blocks_empty
1:	dec %esi
	jns parts.cold
	ret
end parts

function parts.cold
	divides
	jmp 1b
end parts.cold

function blocks_empty
	ret
end blocks_empty

/* As gcc's __x86_indirect_thunk_rax. */
function thunk
	call 2f
1:	pause
	jmp 1b
2:	mov %rax, (%rsp)
	ret
end thunk

/* As gcc's __x86_return_thunk. */
function return_thunk
	call 2f
1:	pause
	lfence
	jmp 1b
2:	lea 8(%rsp), %rsp
	ret
end return_thunk

function reached
	mov $3, %ecx
	divides
	jmp return_thunk
end reached

function direct
	mov $3, %ecx
	divides
	jmp return_thunk
end direct

function through
	mov %rdi, %rax
	call thunk
	nop
	ret
end through

	.section .note.GNU-stack, "", @progbits
