/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first sector of a disk that boots a lab image. It reads the disk into low memory by the BIOS,
 * and copies the ELF's segments to their places. It enters the image by PVH, with a program as its
 * module. make.py puts it before the two files and fills in the numbers at `numbers`.
 */
#define BUFFER	0x10000 /* PA of what follows this sector; up to 512 KiB */
#define SECTORS 32	/* of a read */
#define MAGIC	0x336ec578

	.section .text, "ax"
	.code16
	.globl	disk_start
	.type	disk_start, @function
disk_start:
	cli
	xorl	%eax, %eax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$0x7c00, %sp
	sti
	cld
	movw	nr_reads, %bx
1:	movw	$packet, %si
	movb	$0x42, %ah		/* %dl: the disk that was booted */
	int	$0x13
	jc	2f
	addw	$SECTORS * 32, packet_segment
	addl	$SECTORS, packet_sector
	decw	%bx
	jnz	1b
	cli
	lgdt	gdtr
	inb	$0x92, %al		/* A20 */
	orb	$2, %al
	outb	%al, $0x92
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmp	$8, $disk_load
2:	hlt
	jmp	2b
	.size	disk_start, . - disk_start

	.code32
	.type	disk_load, @function
disk_load:
	movw	$16, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movl	$BUFFER, %ebp
	movl	0x20(%ebp), %ebx	/* e_phoff */
	addl	%ebp, %ebx
	movzwl	0x38(%ebp), %edx	/* e_phnum */
1:	cmpl	$1, (%ebx)		/* PT_LOAD */
	jne	2f
	movl	0x08(%ebx), %esi	/* p_offset */
	addl	%ebp, %esi
	movl	0x18(%ebx), %edi	/* p_paddr */
	movl	0x20(%ebx), %ecx	/* p_filesz */
	rep movsb
	movl	0x28(%ebx), %ecx	/* p_memsz */
	subl	0x20(%ebx), %ecx
	xorl	%eax, %eax
	rep stosb
2:	addl	$56, %ebx
	decl	%edx
	jnz	1b
	movl	$start_info, %ebx
	jmp	*entry
	.size	disk_load, . - disk_load

	.balign	8
gdt:
	.quad	0
	.quad	0x00cf9b000000ffff	/* 0x08: 32-bit code */
	.quad	0x00cf93000000ffff	/* 0x10: data */
gdtr:
	.word	. - gdt - 1
	.long	gdt
packet:
	.byte	16, 0
	.word	SECTORS, 0
packet_segment:
	.word	BUFFER >> 4
packet_sector:
	.quad	1

	.balign	8
start_info:
	.long	MAGIC, 1, 0, 1		/* version 1, one module */
	.long	module, 0, command_line, 0, 0, 0, ram, 0
	.long	1, 0
ram:
	.quad	0x100000, 0x5f00000	/* of the 128 MiB that `run` gives */
	.long	1, 0

	/* make.py fills this in. */
	.org	disk_start + 416
module:					/* PA, size, no command line */
	.quad	0, 0, 0, 0
entry:
	.long	0
nr_reads:
	.long	0
command_line:				/* up to 53 bytes */
	.org	disk_start + 510
	.byte	0x55, 0xaa

	.section .note.GNU-stack, "", @progbits
