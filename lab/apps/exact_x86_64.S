/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of exact.c whose instructions are known one by one. */
.macro function name
	.globl \name
	.type \name, @function
\name:
.endm
.macro end name
	.size \name, . - \name
.endm

	.text
function exact_touch
	mov (%rdi), %rax
	ret
end exact_touch

function exact_device
1:	mov (%rdi), %eax
	dec %rsi
	jnz 1b
	ret
end exact_device

function exact_devices
	xor %edx, %edx
1:	mov (%rdi), %eax
	inc %rdx
	cmp %rdx, %rsi
	jne 1b
	ret
end exact_devices

function exact_tail_a
	dec %rdi
	jz 1f
	jmp exact_tail_b
1:	ret
end exact_tail_a

function exact_tail_b
	dec %rdi
	jz 1f
	jmp exact_tail_a
1:	ret
end exact_tail_b

function exact_catch
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	sub $8, %rsp
	mov %rsp, saved(%rip)
	mov %rdi, %rax
	mov %rsi, %rdi
	call *%rax
	xor %eax, %eax
.Lcaught:
	add $8, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
end exact_catch

function exact_throw
	mov saved(%rip), %rsp
	mov $1, %eax
	lea .Lcaught(%rip), %rcx
	jmp *%rcx
end exact_throw

function exact_bounce
	push %rbx
	cmp $4, %rdi
	jne 1f
	mov %rsp, bounced(%rip)
1:	test %rdi, %rdi
	jz 2f
	dec %rdi
	call exact_bounce
	jmp 3f
2:	mov bounced(%rip), %rsp
	call exact_note
3:	pop %rbx
	ret
end exact_bounce

function exact_note
	ret
end exact_note

/* As a processor calls it: the error code lies on the stack. */
function exact_page_fault
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
	call exact_map
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
end exact_page_fault

/* The nop is overwritten with a call of exact_hook. The loop's first block begins behind it. */
function exact_patched
	.byte 0x0f, 0x1f, 0x44, 0, 0
1:	test %rdi, %rdi
	je 2f
	mov (%rsp), %rax
	dec %rdi
	jmp 1b
2:	ret
end exact_patched

function exact_hook
	ret
end exact_hook

/* Sends itself interrupts, which sti lets in behind the next instruction: before the callee's first one. */
function exact_late
	movl %esi, (%rdi)
	sti
	call exact_called
	cli
	movl %esi, (%rdi)
	sti
	call *callee(%rip)
	cli
	fxsave area(%rip)
	call exact_called
	ret
end exact_late

function exact_called
	ret
end exact_called

function exact_interrupt
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
	call exact_served
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rax
	iretq
end exact_interrupt

	.p2align 12
	.skip 4096 - 12
function exact_split /* the second lea lies in two pages */
	mov %rdi, %rax
1:	dec %rax
	lea 1(%rcx), %ecx
	lea 0x100(%rcx), %rcx
	test %rax, %rax
	jne 1b
	ret
end exact_split

	.data
	.balign 8
callee:
	.quad exact_called

	.local saved
	.comm saved, 8, 8
	.local area
	.comm area, 512, 16
	.local bounced
	.comm bounced, 8, 8
	.section .note.GNU-stack, "", @progbits
