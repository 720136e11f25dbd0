/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of faults.c whose instructions are known one by one, and the handlers. */
.macro function name
	.globl \name
	.type \name, @function
\name:
.endm
.macro end name
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
	push %rbp
	push %rbx
	mov %rsp, saved(%rip)
	call faults_left
.Lguard:
	pop %rbx
	pop %rbp
	ret
end faults_guard

/* The first push faults. */
function faults_on_stack
	push %rbp
	mov %rsp, %rbp
	mov %rdi, %rsp
	call faults_leaf
	mov %rbp, %rsp
	pop %rbp
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
1:	pop %rax
	ret
end faults_place

/* Handlers. They go on in faults_guard, or faults_way bytes behind the instruction. */
function faults_divide
	push %rax
	mov faults_way(%rip), %rax
	test %rax, %rax
	jz 1f
	add %rax, 8(%rsp)
	pop %rax
	iretq
1:	mov saved(%rip), %rsp
	lea .Lguard(%rip), %rax
	jmp *%rax
end faults_divide

function faults_page
	push %rax
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %r8
	push %r9
	push %r10
	push %r11
	cld
	call faults_map
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rax
	add $8, %rsp
	iretq
end faults_page

	.local saved
	.comm saved, 8, 8
	.section .note.GNU-stack, "", @progbits
