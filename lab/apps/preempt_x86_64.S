/* SPDX-License-Identifier: BSD-2-Clause */
/* The handler of preempt.c, which goes back on the stack of another thread. */
	.text
	.globl preempt_tick
	.type preempt_tick, @function
preempt_tick:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa rsp, 40	/* rip, cs, rflags, rsp and ss, as the interrupt left them */
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
	.irp reg, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	push %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endr
	cld
	mov %rsp, %rdi
	call preempt_next
	mov %rax, %rsp
	.irp reg, r15, r14, r13, r12, r11, r10, r9, r8, rdi, rsi, rbp, rbx, rdx, rcx, rax
	pop %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endr
	iretq
	.cfi_endproc
	.size preempt_tick, . - preempt_tick

	.section .note.GNU-stack, "", @progbits
