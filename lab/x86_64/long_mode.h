/* SPDX-License-Identifier: BSD-2-Clause */
/* For assembly: paging and long mode, by the tables in %eax. A far jump has to follow; clobbers
 * %eax, %ecx and %edx. */
	.macro	enable_paging
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
	.endm
