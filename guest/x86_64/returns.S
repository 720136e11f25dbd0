/* SPDX-License-Identifier: BSD-2-Clause */
/* For binaries with -pg alone, whose returns cannot be patched. The return address on the stack is
 * replaced by an address in here. A table keeps it by its place on the stack (returns.c).
 *
 * This is the last resort. While such a call runs, unwinders and samplers see this address instead
 * of its caller, and shadow stacks refuse the return. longjmp and exceptions leave entries behind;
 * the next call at that place takes them over. The CPU predicts each return wrongly. */
#include "hooks.inc"

	.text

/* `call __fentry__` at the function's start: the place is above the return address into it. */
function uni_trace_entry_return
	if_off	3f
	lea	8(%rsp), %r11
	call	uni_trace_keep_slowly
	jmp	uni_trace_entry_any
3:	ret
end uni_trace_entry_return

	.weak	__fentry__
	.type	__fentry__, @function
	.balign	16
__fentry__:
	jmp	uni_trace_entry_return
	.size	__fentry__, . - __fentry__

/* `call mcount` behind the prologue: the place is above the caller's frame pointer. */
	.weak	mcount
	.type	mcount, @function
	.balign	16
mcount:
	if_off	3f
	lea	8(%rbp), %r11
	call	uni_trace_keep_slowly
	cmpl	$UNI_TRACE_CALLERS, CONTROL(UNI_TRACE_MODE)
	jne	uni_trace_entry_any
	/* Its caller is elsewhere than that hook looks. */
	mov	(%rsp), %r11
	call	uni_trace_mcount_slowly
3:	ret
	.size	mcount, . - mcount

/* Such a call returns to here: the place is below the stack pointer. Its value is in rax, rdx, and
 * registers that C does not touch. */
function uni_trace_return
	sub	$8, %rsp
	mov	%rsp, %r11
	call	uni_trace_restore_slowly
	jmp	uni_trace_exit_any
end uni_trace_return

into_c uni_trace_mcount_slowly, uni_trace_slow_entry
into_c uni_trace_keep_slowly, uni_trace_slow_keep
into_c uni_trace_restore_slowly, uni_trace_slow_restore

	.section .note.GNU-stack, "", @progbits
