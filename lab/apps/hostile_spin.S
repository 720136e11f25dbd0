/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hostile_spin(turns, rbp, rsp): spins with the given rbp and, unless it is 0, the given rsp, which
 * are never used. Interrupts are off all the time. Its CFI rows tell the truth all the time.
 */
	.text
	.globl	hostile_spin
	.type	hostile_spin, @function
hostile_spin:
	.cfi_startproc
	movq	%rbp, %r8
	.cfi_register rbp, r8
	movq	%rsp, %r9
	.cfi_def_cfa_register r9
	movq	%rsi, %rbp
	testq	%rdx, %rdx
	cmovnzq	%rdx, %rsp
1:	leaq	3(%rsi), %rsi
	xorq	%rdi, %rsi
	decq	%rdi
	jnz	1b
	movq	%r9, %rsp
	.cfi_def_cfa_register rsp
	movq	%r8, %rbp
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size	hostile_spin, . - hostile_spin

	.section .note.GNU-stack, "", @progbits
