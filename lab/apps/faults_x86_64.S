/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of faults.c whose instructions are known one by one, and the handlers. */
.macro function name
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
.endm
/* `cfa` bytes from the stack pointer to where the interrupted code had it, or behind that. */
.macro handler name, cfa
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa rsp, \cfa
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
.endm
.macro push_it reg
	push %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
.endm
.macro pop_it reg
	pop %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
.endm
.macro end name
	.cfi_endproc
	.size \name, . - \name
.endm

	.text
function faults_left
	incq faults_began(%rip)
	nop
	xor %edx, %edx
	div %rsi
	ret
end faults_left

function faults_fixed
	incq faults_began(%rip)
	nop
	xor %edx, %edx
	div %rsi
	nop
.Lfixed:
	nop
	ret
end faults_fixed

function faults_skipped
	incq faults_began(%rip)
	nop
	xor %edx, %edx
	div %rsi
	nop
	ret
end faults_skipped

function faults_undefined
	incq faults_began(%rip)
	ud2
	ret
end faults_undefined

/* Calls faults_left, which may come back by the handler. */
function faults_guard
	push_it rbp
	push_it rbx
	mov %rsp, saved(%rip)
	call faults_left
.Lguard:
	pop_it rbx
	pop_it rbp
	ret
end faults_guard

/* The first push faults. */
function faults_on_stack
	push_it rbp
	mov %rsp, %rbp
	.cfi_def_cfa_register rbp
	mov %rdi, %rsp
	call faults_leaf
	mov %rbp, %rsp
	.cfi_def_cfa_register rsp
	pop_it rbp
	ret
end faults_on_stack

function faults_leaf
	ret
end faults_leaf

/* The first write faults. */
function faults_repeated
	mov %rsi, %rcx
	rep stosb
	ret
end faults_repeated

function faults_place
	call 1f
1:	.cfi_adjust_cfa_offset 8
	pop %rax
	.cfi_adjust_cfa_offset -8
	ret
end faults_place

/* Handlers. They go on in faults_guard, or faults_way bytes behind the instruction. */
handler faults_divide, 40
	push_it rax
	mov faults_way(%rip), %rax
	test %rax, %rax
	jz 1f
	.cfi_remember_state
	add %rax, 8(%rsp)
	pop_it rax
	iretq
1:	.cfi_restore_state
	mov saved(%rip), %rsp
	.cfi_def_cfa rsp, 24	/* as in faults_guard */
	.cfi_offset rip, -8
	.cfi_offset rbp, -16
	.cfi_offset rbx, -24
	.cfi_restore rsp
	lea .Lguard(%rip), %rax
	jmp *%rax
end faults_divide

handler faults_page, 48
	push_it rax
	push_it rcx
	push_it rdx
	push_it rsi
	push_it rdi
	push_it r8
	push_it r9
	push_it r10
	push_it r11
	cld
	call faults_map
	pop_it r11
	pop_it r10
	pop_it r9
	pop_it r8
	pop_it rdi
	pop_it rsi
	pop_it rdx
	pop_it rcx
	pop_it rax
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	iretq
end faults_page

	.local saved
	.comm saved, 8, 8
	.section .note.GNU-stack, "", @progbits
