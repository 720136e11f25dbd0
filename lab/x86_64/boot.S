/* SPDX-License-Identifier: BSD-2-Clause */
/* PVH entry (32-bit, paging off, %ebx = start info) up to lab_entry in the higher half. */
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
	.fill	LAB_LINEAR_SLOT - 1, 8, 0
	.quad	PA(boot_pdpt_low) + 3
	.fill	510 - LAB_LINEAR_SLOT, 8, 0
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

	.balign	8
	.word	0
boot_gdtr:
	.word	LAB_GDT_SIZE - 1
	.quad	PA(lab_gdt)

	.section .note.GNU-stack, "", @progbits
