/* SPDX-License-Identifier: BSD-2-Clause */
/* PVH entry (32-bit, paging off, %ebx = start info) up to kmain on its stack. */
#include "layout.h"

#define PA(x) ((x) - LAB_IMAGE_OFFSET)

	/* Desc of 8 bytes: QEMU reads as much for a 64-bit ELF, Xen takes either. */
	.section .note.Xen, "a", @note
	.balign	4
	.long	4, 8, 18		/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz	"Xen"
	.quad	PA(lab_pvh_start)

	.section .text.boot, "ax"
	.code32
	.globl	lab_pvh_start
	.type	lab_pvh_start, @function
lab_pvh_start:
	cli
	cld
	movl	%ebx, PA(lab_start_info)
	movl	$PA(boot_pml4), %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orl	$0x20, %eax		/* PAE */
	movl	%eax, %cr4
	movl	$0xc0000080, %ecx	/* EFER */
	rdmsr
	orl	$0x100, %eax		/* LME */
	wrmsr
	movl	$0x80010033, %eax	/* PG WP NE ET MP PE */
	movl	%eax, %cr0
	lgdt	PA(boot_gdtr)
	ljmp	$LAB_SEL_CODE, $PA(1f)
	.code64
1:	movq	$lab_entry, %rax	/* from the identity map to the higher half */
	jmp	*%rax
	.size	lab_pvh_start, . - lab_pvh_start

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
	movq	$boot_gdtr_high, %rax
	lgdt	(%rax)
	movq	$lab_boot_stack + LAB_BOOT_STACK_SIZE, %rsp
	xorl	%ebp, %ebp
	call	lab_setup		/* returns the top of the main stack */
	movq	%rax, %rsp
	xorl	%ebp, %ebp
	call	kmain
	ud2
	.cfi_endproc
	.size	lab_entry, . - lab_entry

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

	/*
	 * Boot tables: PA 0-1 GiB by 2 MiB leaves, seen at 0 (for the jump only), at LAB_LINEAR and
	 * at LAB_IMAGE_OFFSET. paging.c builds the real ones; further vCPUs start on these.
	 */
	.data
	.balign	4096
	.globl	boot_pml4
	.type	boot_pml4, @object
boot_pml4:
	.quad	PA(boot_pdpt_low) + 3
	.fill	255, 8, 0
	.quad	PA(boot_pdpt_low) + 3
	.fill	254, 8, 0
	.quad	PA(boot_pdpt_high) + 3
	.size	boot_pml4, . - boot_pml4
boot_pdpt_low:
	.quad	PA(boot_pd) + 3
	.fill	511, 8, 0
boot_pdpt_high:
	.fill	510, 8, 0
	.quad	PA(boot_pd) + 3
	.quad	0
boot_pd:
	.set	i, 0
	.rept	512
	.quad	(i << 21) + 0x83	/* present, writable, large */
	.set	i, i + 1
	.endr

	.globl	lab_gdt
	.type	lab_gdt, @object
lab_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* 0x08: 64-bit code, ring 0 */
	.quad	0x00cf93000000ffff	/* 0x10: data */
	.quad	0
	.fill	8, 8, 0			/* 0x20: four TSS, two slots each */
	.size	lab_gdt, . - lab_gdt
lab_gdt_end:

	.balign	8
	.word	0
	.globl	boot_gdtr
boot_gdtr:
	.word	lab_gdt_end - lab_gdt - 1
	.quad	PA(lab_gdt)
	.balign	8
	.globl	boot_gdtr_high
boot_gdtr_high:
	.word	lab_gdt_end - lab_gdt - 1
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

	.section .note.GNU-stack, "", @progbits
