/* SPDX-License-Identifier: BSD-2-Clause */
/* What patched sites call.
 *
 * Entry: `call` in place of the 5-byte nop at a function's start (-mfentry, or
 * -fpatchable-function-entry=5). Every argument register is live, rax (number of vector arguments)
 * and r10 (static chain) too: only r11 is free. The return address is function + 5, or + 9 behind an
 * ENDBR: of an aligned function its low nibble is the record's id.
 *
 * Exit: `jmp` in place of `ret` (-mfunction-return=thunk-extern). rax, rdx and vector registers may
 * hold the value; the code was built with -fno-ipa-ra, so other caller-saved registers are free. The
 * stack pointer of an aligned stack ends in 8 here, which is the record's id.
 *
 * Nothing on the guest's stack is changed, so that samplers, unwinders, longjmp and shadow stacks
 * work as before, and a real `ret` returns. */
#include "uniscope/trace_abi.h"

#ifdef UNI_TRACE_GS
#define CPU(field) %gs : UNI_TRACE_GS + field
#else
#define CPU(field) (uni_trace_cpu0 + field)(%rip)
#endif

#define OPEN UNI_TRACE_SUB_OPEN
#define SUB_MASK_LOW 0xffff

	.text

/* Reserves one word: its address in rcx, the time's low half in \time (32 bits). Uses rax, rdx. The
 * time is read after wptr: if wptr is still the same at the swap, no record has a later one. */
.macro reserve time, full, stale
1:	mov	CPU(UNI_TRACE_CPU_WPTR), %rcx
	rdtsc
	cmp	%edx, CPU(UNI_TRACE_CPU_HI)
	jne	\stale
	mov	%eax, \time
	lea	8(%rcx), %rdx
	test	$SUB_MASK_LOW, %edx
	jz	\full
	mov	%rcx, %rax
	cmpxchg	%rdx, CPU(UNI_TRACE_CPU_WPTR)
	jne	1b
.endm

/* The record at rcx is there. Uses rcx. */
.macro written closed
	and	$~SUB_MASK_LOW, %rcx
	addl	$8, OPEN(%rcx)
	jz	\closed
.endm

.macro function name
	.globl	\name
	.type	\name, @function
	.balign	16
\name:
.endm

/* --- entry ------------------------------------------------------------------------------------ */

function uni_trace_entry
	push	%rax
	push	%rdx
	push	%rcx
	reserve	%r11d, 8f, 8f
	mov	24(%rsp), %edx
	shl	$32, %rdx
	or	%rdx, %r11
	mov	%r11, (%rcx)
	written	9f
2:	pop	%rcx
	pop	%rdx
	pop	%rax
	ret
8:	mov	24(%rsp), %r11d
	call	uni_trace_entry_slowly
	jmp	2b
9:	call	uni_trace_close_rcx
	jmp	2b
	.size	uni_trace_entry, . - uni_trace_entry

/* A function that is not aligned, whose address would not leave room for an id. */
function uni_trace_entry_any
	push	%rax
	push	%rdx
	push	%rcx
	mov	24(%rsp), %r11
	sub	$5, %r11
	call	uni_trace_entry_any_slowly
	pop	%rcx
	pop	%rdx
	pop	%rax
	ret
	.size	uni_trace_entry_any, . - uni_trace_entry_any

/* --- exit ------------------------------------------------------------------------------------- */

function uni_trace_exit
	mov	%rax, %rsi
	mov	%rdx, %rdi
uni_trace_exit_in_full:
	reserve	%r8d, 8f, 8f
	mov	%rsp, %r9
	shl	$32, %r9
	or	%r9, %r8
	mov	%r8, (%rcx)
	written	9f
2:	mov	%rsi, %rax
	mov	%rdi, %rdx
	ret
8:	mov	%rsp, %r11
	call	uni_trace_exit_slowly
	jmp	2b
9:	call	uni_trace_close_rcx
	jmp	2b
	.size	uni_trace_exit, . - uni_trace_exit

/* The newest record, if it is the entry of the call that ends, becomes that of a call without end
 * time: no clock is read. Its bytes are taken back first, so that its sub-buffer can't be closed, and
 * copied by the host, before it is changed. */
function uni_trace_exit_lite
	mov	%rax, %rsi
	mov	%rdx, %rdi
	mov	CPU(UNI_TRACE_CPU_WPTR), %rcx
	lea	8(%rcx), %eax
	test	$SUB_MASK_LOW, %eax
	jz	uni_trace_exit_in_full
	testb	$1, -4(%rcx)
	jz	uni_trace_exit_in_full
	mov	%rcx, %r8
	and	$~SUB_MASK_LOW, %r8
	subl	$8, OPEN(%r8)
	cmp	%rcx, CPU(UNI_TRACE_CPU_WPTR)
	jne	7f
	xorb	$UNI_TRACE_LEAF_FLIP, -4(%rcx)
	addl	$8, OPEN(%r8)
	jz	9f
2:	mov	%rsi, %rax
	mov	%rdi, %rdx
	ret
7:	addl	$8, OPEN(%r8)
	jnz	uni_trace_exit_in_full
	mov	%r8, %rcx
	call	uni_trace_close_rcx
	jmp	uni_trace_exit_in_full
9:	mov	%r8, %rcx
	call	uni_trace_close_rcx
	jmp	2b
	.size	uni_trace_exit_lite, . - uni_trace_exit_lite

/* As exit, but a call that made no recorded one and was shorter than min_time vanishes. */
function uni_trace_exit_min
	mov	%rax, %rsi
	mov	%rdx, %rdi
	mov	CPU(UNI_TRACE_CPU_WPTR), %rcx
	lea	8(%rcx), %eax
	test	$SUB_MASK_LOW, %eax
	jz	uni_trace_exit_in_full
	testb	$1, -4(%rcx)
	jz	uni_trace_exit_in_full
	rdtsc
	cmp	%edx, CPU(UNI_TRACE_CPU_HI)
	jne	uni_trace_exit_in_full
	sub	-8(%rcx), %eax
	cmp	CPU(UNI_TRACE_CPU_MIN_TIME), %eax
	jae	uni_trace_exit_in_full
	lea	-8(%rcx), %rdx
	mov	%rcx, %r8
	and	$~SUB_MASK_LOW, %r8
	subl	$8, OPEN(%r8)
	mov	%rcx, %rax
	cmpxchg	%rdx, CPU(UNI_TRACE_CPU_WPTR)
	jne	7f
	mov	%rsi, %rax
	mov	%rdi, %rdx
	ret
7:	addl	$8, OPEN(%r8)
	jnz	uni_trace_exit_in_full
	mov	%r8, %rcx
	call	uni_trace_close_rcx
	jmp	uni_trace_exit_in_full
	.size	uni_trace_exit_min, . - uni_trace_exit_min

/* What an exit is that nobody patched. */
	.weak	__x86_return_thunk
	.type	__x86_return_thunk, @function
	.balign	16
__x86_return_thunk:
	ret
	int3
	.size	__x86_return_thunk, . - __x86_return_thunk

/* --- the slow ways: into C -------------------------------------------------------------------- */

/* C may use every caller-saved register; vector registers it was built not to touch. */
.macro into_c name, to
	.type	\name, @function
\name:
	push	%rbp
	mov	%rsp, %rbp
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	and	$-16, %rsp
	\to
	lea	-72(%rbp), %rsp
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	pop	%rbp
	ret
	.size	\name, . - \name
.endm

.macro one_word
	mov	%r11d, %edi
	call	uni_trace_slow_word
.endm
.macro any_entry
	mov	%r11, %rdi
	call	uni_trace_slow_entry_any
.endm
.macro close_it
	mov	%rcx, %rdi
	call	uni_trace_close
.endm

into_c uni_trace_entry_slowly, one_word
into_c uni_trace_exit_slowly, one_word
into_c uni_trace_entry_any_slowly, any_entry
into_c uni_trace_close_rcx, close_it

	.section .note.GNU-stack, "", @progbits
