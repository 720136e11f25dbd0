/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooks that patched sites call.
 *
 * Entry: `call` in place of the 5-byte nop at a function's start (-mfentry, or
 * -fpatchable-function-entry=5). Every argument register is live, rax (number of vector arguments)
 * and r10 (static chain) too: only r11 is free. The return address is function + 5, or + 9 behind
 * an ENDBR. If the function is aligned, its low nibble is the record's id.
 *
 * Exit: `jmp` in place of `ret` (-mfunction-return=thunk-extern). rax, rdx and vector registers may
 * hold the value; the code was built with -fno-ipa-ra, so other caller-saved registers are free.
 * The stack pointer of an aligned stack ends in 8 here, which is the record's id.
 *
 * Nothing on the guest's stack is changed, so that samplers, unwinders, longjmp and shadow stacks
 * work as before, and a real `ret` returns. */
#include "hooks.inc"

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

/* --- entry ------------------------------------------------------------------------------------ */

/* id: the record's id, if it is not the return address's low nibble */
.macro entry id
	if_off	3f
	push	%rax
	push	%rdx
	push	%rcx
	reserve	%r11d, 8f, 8f
	mov	24(%rsp), %edx
.ifnb \id
	and	$-16, %edx
	or	$\id, %edx
.endif
	shl	$32, %rdx
	or	%rdx, %r11
	mov	%r11, (%rcx)
	written	9f
2:	pop	%rcx
	pop	%rdx
	pop	%rax
3:	ret
8:	mov	24(%rsp), %r11
	call	uni_trace_entry_slowly
	jmp	2b
9:	call	uni_trace_close_rcx
	jmp	2b
.endm

function uni_trace_entry
	entry
end uni_trace_entry

/* No exit will come. The record says so, because rings outlive a change of mode. */
function uni_trace_entry_only
	entry	UNI_TRACE_ID_CALL
end uni_trace_entry_only

/* As entry_only, with the caller: two words, of any function. The second word is no event of its
 * own. An address beyond the text window has no room. */
function uni_trace_entry_caller
	if_off	3f
	push	%rax
	push	%rdx
	push	%rcx
1:	mov	CPU(UNI_TRACE_CPU_WPTR), %rcx
	rdtsc
	cmp	%edx, CPU(UNI_TRACE_CPU_HI)
	jne	8f
	mov	%eax, %r11d
	movzwl	%cx, %edx
	cmp	$SUB_MASK_LOW - 7 - 16, %edx
	ja	8f
	lea	16(%rcx), %rdx
	mov	%rcx, %rax
	cmpxchg	%rdx, CPU(UNI_TRACE_CPU_WPTR)
	jne	1b
	mov	$UNI_TRACE_CALL_FIRST, %eax
	shl	$32, %rax
	or	%rax, %r11
	mov	%r11, (%rcx)
	mov	24(%rsp), %r11d
	sub	$5, %r11d
	mov	28(%rsp), %eax
	cmp	36(%rsp), %eax
	jne	2f
	mov	32(%rsp), %eax
	dec	%eax
	and	$-2, %eax
	shl	$32, %rax
	or	%rax, %r11
2:	mov	%r11, 8(%rcx)
	and	$~SUB_MASK_LOW, %rcx
	mov	$1, %eax
	xadd	%rax, UNI_TRACE_SUB_EXTRA(%rcx)
	test	%rax, %rax
	js	7f
4:	addl	$16, OPEN(%rcx)
	jz	9f
5:	pop	%rcx
	pop	%rdx
	pop	%rax
3:	ret
7:	call	uni_trace_one_more
	jmp	4b
8:	pop	%rcx
	pop	%rdx
	pop	%rax
	mov	(%rsp), %r11
	call	uni_trace_caller_slowly
	ret
9:	call	uni_trace_close_rcx
	jmp	5b
end uni_trace_entry_caller

/* Also for a function that is not aligned, whose address leaves no room for an id. */
function uni_trace_entry_any
	if_off	3f
	cmpl	$UNI_TRACE_CALLERS, CONTROL(UNI_TRACE_MODE)
	je	uni_trace_entry_caller
	deeper	3f
	mov	(%rsp), %r11d
	and	$15, %r11d
	cmp	$UNI_TRACE_ID_ENTRY, %r11d
	je	4f
	cmp	$UNI_TRACE_ID_ENTRY_BRANCH, %r11d
	je	4f
	mov	(%rsp), %r11
	call	uni_trace_entry_slowly
3:	ret
4:	cmpl	$UNI_TRACE_FUNCTION, CONTROL(UNI_TRACE_MODE)
	je	uni_trace_entry_only
	jmp	uni_trace_entry
end uni_trace_entry_any

function uni_trace_entry_args
	if_off	3f
	deeper	3f
	mov	(%rsp), %r11
	call	uni_trace_args_slowly
3:	ret
end uni_trace_entry_args

/* Triggers. */
function uni_trace_entry_start
	mov	(%rsp), %r11
	call	uni_trace_start_slowly
	jmp	uni_trace_entry_any
end uni_trace_entry_start

function uni_trace_entry_stop
	if_off	3f
	mov	(%rsp), %r11
	call	uni_trace_stop_slowly
3:	ret
end uni_trace_entry_stop

function uni_trace_entry_freeze
	if_off	3f
	mov	(%rsp), %r11
	call	uni_trace_entry_slowly
	call	uni_trace_freeze_slowly
3:	ret
end uni_trace_entry_freeze

/* --- exit ------------------------------------------------------------------------------------- */

function uni_trace_exit
	if_off	uni_trace_no_exit
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
end uni_trace_exit

/* The newest record, if it is the entry of the call that ends, becomes that of a call without end
 * time: no clock is read. Its bytes are taken back first, so that its sub-buffer can't be closed, and
 * copied by the host, before it is changed. */
function uni_trace_exit_lite
	if_off	uni_trace_no_exit
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
end uni_trace_exit_lite

/* As exit, but removes the call's entry if the call was shorter than min_time and made no recorded
 * call. The newest record is then its entry: one word, or two for a function that is not
 * aligned. */
function uni_trace_exit_min
	if_off	uni_trace_no_exit
	mov	%rax, %rsi
	mov	%rdx, %rdi
	mov	CPU(UNI_TRACE_CPU_WPTR), %rcx
	lea	8(%rcx), %eax
	test	$SUB_MASK_LOW, %eax
	jz	uni_trace_exit_in_full
	mov	$8, %r9d
	testb	$1, -4(%rcx)
	jnz	1f
	cmpl	$UNI_TRACE_ODD_ENTRY, -4(%rcx)
	jne	uni_trace_exit_in_full
	cmpl	$UNI_TRACE_ODD_FIRST, -12(%rcx)
	jne	uni_trace_exit_in_full
	mov	$16, %r9d
1:	rdtsc
	cmp	%edx, CPU(UNI_TRACE_CPU_HI)
	jne	uni_trace_exit_in_full
	mov	%rcx, %rdx
	sub	%r9, %rdx
	sub	(%rdx), %eax
	cmp	CONTROL(UNI_TRACE_MIN_TIME), %eax
	jae	uni_trace_exit_in_full
	mov	%rcx, %r8
	and	$~SUB_MASK_LOW, %r8
	subl	%r9d, OPEN(%r8)
	mov	%rcx, %rax
	cmpxchg	%rdx, CPU(UNI_TRACE_CPU_WPTR)
	jne	7f
	cmp	$16, %r9d
	je	6f
4:	mov	%rsi, %rax
	mov	%rdi, %rdx
	ret
	/* An entry of two words counted one of them as extra: subtract it. */
6:	mov	$-1, %r11
	xadd	%r11, UNI_TRACE_SUB_EXTRA(%r8)
	test	%r11, %r11
	jns	4b
	call	uni_trace_one_less
	jmp	4b
7:	addl	%r9d, OPEN(%r8)
	jnz	uni_trace_exit_in_full
	mov	%r8, %rcx
	call	uni_trace_close_rcx
	jmp	uni_trace_exit_in_full
end uni_trace_exit_min

/* As the control says. To know which calls are short costs what lite saves. */
function uni_trace_exit_any
	if_off	uni_trace_no_exit
	higher	uni_trace_no_exit
	cmpl	$UNI_TRACE_LITE, CONTROL(UNI_TRACE_MODE)
	ja	uni_trace_no_exit
	cmpl	$0, CONTROL(UNI_TRACE_MIN_TIME)
	jne	uni_trace_exit_min
	cmpl	$UNI_TRACE_LITE, CONTROL(UNI_TRACE_MODE)
	je	uni_trace_exit_lite
	jmp	uni_trace_exit
end uni_trace_exit_any

function uni_trace_exit_value
	if_off	uni_trace_no_exit
	higher	uni_trace_no_exit
	mov	%rsp, %r11
	call	uni_trace_value_slowly
	ret
end uni_trace_exit_value

/* The return thunk of code that nobody patched. */
	.weak	__x86_return_thunk
	.type	__x86_return_thunk, @function
	.balign	16
__x86_return_thunk:
uni_trace_no_exit:
	ret
	int3
	.size	__x86_return_thunk, . - __x86_return_thunk

/* --- the slow ways: into C -------------------------------------------------------------------- */

into_c uni_trace_entry_slowly, uni_trace_slow_entry
into_c uni_trace_start_slowly, uni_trace_slow_start
into_c uni_trace_stop_slowly, uni_trace_slow_stop
into_c uni_trace_args_slowly, uni_trace_slow_args
into_c uni_trace_exit_slowly, uni_trace_slow_exit
into_c uni_trace_value_slowly, uni_trace_slow_value
into_c uni_trace_close_rcx, uni_trace_slow_close
into_c uni_trace_one_less, uni_trace_slow_one_less
into_c uni_trace_one_more, uni_trace_slow_one_more
into_c uni_trace_caller_slowly, uni_trace_slow_caller
into_c uni_trace_freeze_slowly, uni_trace_slow_freeze

	.section .note.GNU-stack, "", @progbits
