/* SPDX-License-Identifier: BSD-2-Clause */
/* The handler of preempt.c, which goes back on the stack of another thread. */
	.text
	.globl preempt_tick
	.type preempt_tick, @function
preempt_tick:
	.irp reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	push %\reg
	.endr
	cld
	mov %rsp, %rdi
	call preempt_next
	mov %rax, %rsp
	.irp reg, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
	pop %\reg
	.endr
	iretq
	.size preempt_tick, . - preempt_tick

	.section .note.GNU-stack, "", @progbits
