/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The switches of stacks of OCaml 5's runtime (caml_start_program, caml_c_call, caml_runstack and
 * calls that allocate nothing), with their unwind rows, and functions that use them.
 */
#include "fibers.h"

#define BREG_RSP 0x77
#define DEREF	 0x06
#define PLUS	 0x23
#define CFA_EXPR 0x0f

#define LINK_SP	   8  /* of what is on top of the C stack: the managed stack's pointer */
#define LINK_PREV  16
#define LINK_BYTES 24
#define SAVED_BYTES 48

	.text
.macro function name
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
.endm
.macro end name
	.cfi_endproc
	.size \name, . - \name
.endm
.macro save reg
	push %\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
.endm
.macro restore reg
	pop %\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
.endm
.macro frame bytes
	sub $\bytes, %rsp
	.cfi_adjust_cfa_offset \bytes
.endm
.macro leave_frame bytes
	add $\bytes, %rsp
	.cfi_adjust_cfa_offset -\bytes
.endm

/* void start_managed(void (*fn)(void)): from C, on the fiber that is current. */
function start_managed
	save rbx
	save rbp
	save r12
	save r13
	save r14
	save r15
	frame LINK_BYTES
	mov c_stack(%rip), %r10
	mov %r10, LINK_PREV(%rsp)
	mov %rsp, c_stack(%rip)
	mov fiber_now(%rip), %r11
	mov FIBER_SP(%r11), %r10
	sub $32, %r10
	mov %rsp, 16(%r10)		/* for the unwinder; below it, a handler of exceptions */
	mov %r10, %rsp
	.cfi_remember_state
	.cfi_escape CFA_EXPR, 5, BREG_RSP, 16, DEREF, PLUS, LINK_BYTES + SAVED_BYTES + 8
	call *%rdi
	lea 32(%rsp), %r10
	mov fiber_now(%rip), %r11
	mov %r10, FIBER_SP(%r11)
	mov c_stack(%rip), %rsp
	.cfi_restore_state
	mov LINK_PREV(%rsp), %r10
	mov %r10, c_stack(%rip)
	leave_frame LINK_BYTES
	restore r15
	restore r14
	restore r13
	restore r12
	restore rbp
	restore rbx
	ret
end start_managed

/* Calls the C function in rax, on the C stack. OCaml marks it as a handler of signals. */
function call_c
	.cfi_signal_frame
	mov fiber_now(%rip), %r10
	mov %rsp, FIBER_SP(%r10)
	mov c_stack(%rip), %r11
	mov %rsp, LINK_SP(%r11)
	mov %r11, %rsp
	.cfi_remember_state
	.cfi_escape CFA_EXPR, 5, BREG_RSP, LINK_SP, DEREF, PLUS, 8
	call *%rax
	mov LINK_SP(%rsp), %rsp
	.cfi_restore_state
	cmpq $0, fiber_now(%rip)	/* OCaml looks whether a signal has come */
	je 1f
	ret
1:	ret
end call_c

/* Calls the function in rsi on the fiber in rdi. */
function run_fiber
	.cfi_signal_frame
	mov fiber_now(%rip), %rcx
	mov %rsp, FIBER_SP(%rcx)
	mov FIBER_TOP(%rdi), %r11
	mov %rcx, HANDLER_PARENT(%r11)
	mov %rdi, fiber_now(%rip)
	sub $32, %r11
	mov %r11, %rsp
	.cfi_remember_state
	.cfi_escape CFA_EXPR, 8, BREG_RSP, 32 + HANDLER_PARENT, DEREF, PLUS, FIBER_SP, DEREF, PLUS, 8
	call *%rsi
	lea 32(%rsp), %r11
	mov HANDLER_PARENT(%r11), %r10
	mov %r10, fiber_now(%rip)
	mov FIBER_SP(%r10), %r13
	.cfi_restore_state
	.cfi_remember_state
	.cfi_def_cfa_register r13
	mov c_stack(%rip), %rsp
	call c_frees
	mov %r13, %rsp
	.cfi_restore_state
	ret
end run_fiber

.macro call_linked fn
	lea \fn(%rip), %rax
	call call_c
.endm
.macro call_direct fn
	mov %rsp, %rbx
	.cfi_remember_state
	.cfi_def_cfa_register rbx
	mov c_stack(%rip), %rsp
	call \fn
	mov %rbx, %rsp
	.cfi_restore_state
.endm

function m_main
	frame 24
	call_linked c_linked
	call_direct c_direct
	mov $12, %ebp			/* here a number like any other */
	call m_deep
	lea fibers + 16(%rip), %rdi
	lea m_fiber(%rip), %rsi
	call run_fiber
	leave_frame 24
	ret
end m_main

function m_deep
	frame 40
	dec %ebp
	jz 1f
	call m_deep
	jmp 2f
1:	call_direct c_deep
2:	leave_frame 40
	ret
end m_deep

function m_fiber
	frame 8
	call_linked c_fiber
	lea fibers + 32(%rip), %rdi
	lea m_inner(%rip), %rsi
	call run_fiber
	leave_frame 8
	ret
end m_fiber

function m_inner
	frame 56
	call_direct c_inner
	call_linked c_calls_back
	leave_frame 56
	ret
end m_inner

function m_called
	frame 8
	call_linked c_called
	leave_frame 8
	ret
end m_called

	.bss
	.balign 16
	.globl fiber_now, c_stack, fibers, fiber_stacks
fiber_now:
	.quad 0
c_stack:
	.quad 0
fibers:
	.zero 16 * FIBER_NR
	.balign 16
fiber_stacks:
	.zero FIBER_BYTES * FIBER_NR

	.section .note.GNU-stack, "", @progbits
