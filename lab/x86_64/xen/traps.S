/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of PV guests. Xen calls them on the stack they meet, with what the CPU pushes and below that
 * r11 and rcx. Exceptions are fatal and go on as those of PVH guests do.
 */
#include "../irq.h"
#include "abi.h"

	.text
	.globl	lab_pv_trap_entries
	.type	lab_pv_trap_entries, @function
	.balign	32
lab_pv_trap_entries:
	.irp	v, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	.balign	32
	popq	%rcx
	popq	%r11
	.if	!(\v == 8 || (\v >= 10 && \v <= 14) || \v == 17 || \v == 21 || \v == 29 || \v == 30)
	pushq	$0			/* no error code comes with it */
	.endif
	pushq	$\v
	jmp	lab_trap_common
	.endr
	.size	lab_pv_trap_entries, . - lab_pv_trap_entries

	.globl	lab_pv_upcall
	.type	lab_pv_upcall, @function
lab_pv_upcall:
	.cfi_startproc simple
	.cfi_signal_frame
	.cfi_def_cfa rsp, 56
	.cfi_offset rip, -40
	.cfi_offset rsp, -16
	.cfi_offset rcx, -56
	.cfi_offset r11, -48
	popq	%rcx
	.cfi_def_cfa_offset 48
	.cfi_restore rcx
	popq	%r11
	.cfi_restore r11
	irq_body lab_timer_tick
	pushq	$0			/* flags; the stub adds rcx, r11 and rax */
	.cfi_def_cfa_offset 48
	jmp	hypercall_page + 32 * XEN_IRET
	.cfi_endproc
	.size	lab_pv_upcall, . - lab_pv_upcall

	.section .note.GNU-stack, "", @progbits
