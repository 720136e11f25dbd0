/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PVH entry of the image that relocates itself; all others use boot.S. The image is linked at its
 * physical address. It chooses a page-aligned one in the top 2 GiB by the TSC, maps itself there,
 * applies its own relocations and goes on there.
 *
 * 32-bit code cannot be position-independent, so its constants are differences within this section,
 * which begins the image. Boot tables lie in low memory, which nothing else uses:
 *   10000 PML4   11000, 12000 PDPT low and high   13000 1 GiB of RAM by 2 MiB leaves
 *   14000 directory of the image's tables   15000, 16000 those
 */
#include "layout.h"
#include "long_mode.inc"

#define PA(x)	 ((x) - lab_pvh_start + LAB_IMAGE_PA)
#define TABLES	 LAB_PIE_TABLES
#define HIGH	 0xffffffff80000000
#define RELATIVE 8 /* R_X86_64_RELATIVE */

	.section .text.boot, "ax"
	.code32
	.globl	lab_pvh_start
	.type	lab_pvh_start, @function
lab_pvh_start:
	cli
	cld
	movl	%ebx, %esi		/* start info */
	movl	$TABLES, %edi
	xorl	%eax, %eax
	movl	$7 * 1024, %ecx
	rep stosl
	movl	$TABLES + 0x1003, TABLES
	movl	$TABLES + 0x1003, TABLES + LAB_LINEAR_SLOT * 8
	movl	$TABLES + 0x2003, TABLES + 511 * 8
	movl	$TABLES + 0x3003, TABLES + 0x1000
	movl	$TABLES + 0x4003, TABLES + 0x2000 + 510 * 8
	xorl	%ecx, %ecx
1:	movl	%ecx, %eax
	shll	$21, %eax
	orl	$0x83, %eax
	movl	%eax, TABLES + 0x3000(,%ecx,8)
	incl	%ecx
	cmpl	$512, %ecx
	jb	1b
	rdtsc
	imull	$0x9e3779b1, %eax, %eax
	movl	%eax, %ebp
	shrl	$23, %ebp		/* page within 2 MiB: 0 to 511 */
	movl	%eax, %ebx
	shrl	$8, %ebx
	andl	$255, %ebx
	incl	%ebx			/* 2 MiB within the top 2 GiB: 1 to 256 */
	movl	$TABLES + 0x5003, TABLES + 0x4000(,%ebx,8)
	movl	$TABLES + 0x6003, TABLES + 0x4008(,%ebx,8)
	movl	%ebp, %ecx
	movl	$LAB_IMAGE_PA + 3, %eax
2:	movl	%eax, TABLES + 0x5000(,%ecx,8)
	addl	$4096, %eax
	incl	%ecx
	cmpl	$1024, %ecx
	jb	2b
	movl	$TABLES, %eax
	enable_paging
	lgdt	PA(pie_gdtr)
	ljmp	$LAB_SEL_CODE, $PA(3f)
	.code64
	/* At the physical address, so what is linked there is found. %r8: how far it moves. */
3:	movl	%ebx, %ebx
	movl	%ebp, %ebp
	shlq	$21, %rbx
	shlq	$12, %rbp
	movq	$HIGH, %r8
	addq	%rbx, %r8
	addq	%rbp, %r8
	leaq	lab_pvh_start(%rip), %rax
	subq	%rax, %r8
	movl	%esi, %esi
	movq	%rsi, lab_start_info(%rip)
	leaq	lab_rela_start(%rip), %rsi
	leaq	lab_rela_end(%rip), %rdi
4:	cmpq	%rdi, %rsi
	jae	5f
	cmpl	$RELATIVE, 8(%rsi)
	jne	6f
	movq	(%rsi), %rcx
	movq	16(%rsi), %rdx
	addq	%r8, %rdx
	movq	%rdx, (%rcx)
	addq	$24, %rsi
	jmp	4b
6:	ud2
5:	leaq	lab_entry(%rip), %rax
	addq	%r8, %rax
	jmp	*%rax
	.size	lab_pvh_start, . - lab_pvh_start

	.balign	8
	.type	pie_gdt, @object
	.size	pie_gdt, pie_gdtr - pie_gdt
pie_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* 0x08: 64-bit code, ring 0 */
	.quad	0x00cf93000000ffff	/* 0x10: data */
	.type	pie_gdtr, @object
	.size	pie_gdtr, 6
pie_gdtr:
	.word	23
	.long	PA(pie_gdt)

	.section .note.GNU-stack, "", @progbits
