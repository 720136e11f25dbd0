/* SPDX-License-Identifier: BSD-2-Clause */
/* From the first instruction in the higher half to kmain on its stack. Position-independent. */
#include "layout.h"

	/* Code that is called from here on may be traced already. Uses rax, rcx, rdx. */
	.macro	set_gs area
#ifdef LAB_TRACE
	leaq	\area(%rip), %rax
	movq	%rax, %rdx
	shrq	$32, %rdx
	movl	$MSR_GS_BASE, %ecx
	wrmsr
#endif
	.endm

	.text
	.globl	lab_entry
	.type	lab_entry, @function
lab_entry:
	.cfi_startproc
	.cfi_undefined rip		/* the outermost frame */
	movl	$LAB_SEL_DATA, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs
	lgdt	boot_gdtr_high(%rip)
	set_gs	lab_cpus
	leaq	lab_boot_stack + LAB_BOOT_STACK_SIZE(%rip), %rsp
	xorl	%ebp, %ebp
	call	lab_setup		/* returns the top of the main stack */
	movq	%rax, %rsp
	xorl	%ebp, %ebp
	call	kmain
	ud2
	.cfi_endproc
	.size	lab_entry, . - lab_entry

	/* Further vCPUs begin here, on the boot tables. */
	.globl	lab_ap_entry
	.type	lab_ap_entry, @function
lab_ap_entry:
	.cfi_startproc
	.cfi_undefined rip		/* the outermost frame */
	movl	$LAB_SEL_DATA, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs
	lgdt	boot_gdtr_high(%rip)
	set_gs	uni_trace_early-LAB_TRACE_GS /* it has no area of its own yet */
	/* On a stack that the boot tables know as well, until C has loaded the real ones. */
	leaq	ap_boot_stack + 4096(%rip), %rsp
	xorl	%ebp, %ebp
	call	lab_ap_setup		/* returns the top of this vCPU's stack */
	movq	%rax, %rsp
	xorl	%ebp, %ebp
	call	lab_ap_main
	ud2
	.cfi_endproc
	.size	lab_ap_entry, . - lab_ap_entry

	/* lab_on_stack(fn, arg, top): rbp links both stacks, for walkers and for us. */
	.globl	lab_on_stack
	.type	lab_on_stack, @function
lab_on_stack:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register rbp
	movq	%rdx, %rsp
	movq	%rdi, %rax
	movq	%rsi, %rdi
	call	*%rax
	leave
	.cfi_def_cfa rsp, 8
	.cfi_restore rbp
	ret
	.cfi_endproc
	.size	lab_on_stack, . - lab_on_stack

	.data
	.balign	8
	.globl	lab_gdt
	.type	lab_gdt, @object
lab_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* 0x08: 64-bit code, ring 0 */
	.quad	0x00cf93000000ffff	/* 0x10: data */
	.quad	0
	.fill	2 * LAB_MAX_CPUS, 8, 0	/* 0x20: a TSS each, two slots */
	.size	lab_gdt, . - lab_gdt
	.if	. - lab_gdt != LAB_GDT_SIZE
	.error	"LAB_GDT_SIZE"
	.endif

	.balign	8
	.globl	boot_gdtr_high
boot_gdtr_high:
	.word	LAB_GDT_SIZE - 1
	.quad	lab_gdt

	.globl	lab_start_info
	.type	lab_start_info, @object
	.balign	8
lab_start_info:
	.quad	0
	.size	lab_start_info, 8

	.bss
	.balign	16
	.type	lab_boot_stack, @object
lab_boot_stack:
	.skip	LAB_BOOT_STACK_SIZE
	.size	lab_boot_stack, LAB_BOOT_STACK_SIZE

	.balign	16
	.type	ap_boot_stack, @object
ap_boot_stack:
	.skip	4096
	.size	ap_boot_stack, 4096

	.section .note.GNU-stack, "", @progbits
