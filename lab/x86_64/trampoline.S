/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Further vCPUs begin here, in real mode. The code is copied to LAB_TRAMPOLINE and goes by way of
 * protected mode and the boot tables to lab_ap_entry in the higher half. Both are filled in where
 * it was copied to.
 */
#include "layout.h"
#include "long_mode.inc"

#define LOW(x) ((x) - lab_trampoline + LAB_TRAMPOLINE)

	.section .rodata
	.globl	lab_trampoline, lab_trampoline_end
lab_trampoline:
	.code16
	cli
	cld
	xorw	%ax, %ax
	movw	%ax, %ds
	lgdtl	LOW(low_gdtr)
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$0x18, $LOW(1f)
	.code32
1:	movl	$LAB_SEL_DATA, %eax
	movl	%eax, %ds
	movl	%eax, %ss
	movl	LOW(lab_trampoline_cr3), %eax
	enable_paging
	ljmpl	$LAB_SEL_CODE, $LOW(2f)
	.code64
2:	jmp	*LOW(lab_trampoline_entry)
	.balign	8
low_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* 0x08: 64-bit code */
	.quad	0x00cf93000000ffff	/* 0x10: data */
	.quad	0x00cf9b000000ffff	/* 0x18: 32-bit code */
low_gdtr:
	.word	31
	.long	LOW(low_gdt)
	.balign	8
	.globl	lab_trampoline_cr3, lab_trampoline_entry
lab_trampoline_cr3:
	.quad	0
lab_trampoline_entry:
	.quad	0
lab_trampoline_end:

	.section .note.GNU-stack, "", @progbits
