/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A guest that ends as the first letter of its command line says; any other letter spins. PVH enters
 * it in 32 bits, without paging, and there it stays, unless the letter is g. With -DENTRY=triple it ends at its first instructions.
 */
#ifndef ENTRY
#define ENTRY start
#endif
	.section .note.Xen, "a", @note
	.align 4
	.long 4, 4, 18
	.asciz "Xen"
	.long ENTRY
	.text
	.code32
	.globl start
	.type start, @function
start:
	lgdt gdtr
	ljmp $8, $1f
1:	mov $16, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $stack_end, %esp
	movl $1, mark
	mov 24(%ebx), %esi
	mov (%esi), %al
	cmp $'e', %al
	je unemulated
	cmp $'t', %al
	je triple
	cmp $'s', %al
	je shut
	cmp $'p', %al
	je panic
	cmp $'d', %al
	je debug
	cmp $'r', %al
	je reset
	cmp $'h', %al
	je halt
	cmp $'j', %al
	je astray
	mov %al, %bl
	cmp $'l', %al
	je late
	cmp $'m', %al
	je late
	cmp $'k', %al
	je late
	cmp $'g', %al
	je paged
	cmp $'o', %al
	je elsewhere
spin:	jmp spin
/* All addresses as they are, in pages of 4 MiB. */
paged:	mov $directory, %edi
	mov $0x83, %eax
1:	mov %eax, (%edi)
	add $4, %edi
	add $0x400000, %eax
	jnc 1b
	mov $directory, %eax
	mov %eax, %cr3
	mov %cr4, %eax
	or $0x10, %eax
	mov %eax, %cr4
	mov %cr0, %eax
	or $0x80000000, %eax
	mov %eax, %cr0
/* Above its memory. */
astray:	mov $0x40000000, %eax
	jmp *%eax
halt:	cli
	hlt
	jmp halt
/* Until the host's side has written into the scratch register of the serial port. */
late:	mov $0x10000, %ecx
	call inner
	mov $0x3ff, %edx
	in %dx, %al
	cmp $0x5a, %al
	jne late
	cmp $'m', %bl
	je unemulated
	cmp $'k', %bl
	je astray
	jmp halt
/* Nearly all of its time in a copy of inner; 4 % in itself, or `run` looks for long until it sees it there. */
elsewhere:
	mov $inner, %esi
	mov $0x500000, %edi
	mov $inner_end - inner, %ecx
	rep movsb
1:	mov $0xf000, %ecx
	mov $0x500000, %eax
	call *%eax
	mov $0xa00, %ecx
	call inner
	jmp 1b
	.type inner, @function
inner:	loop inner
	ret
inner_end:
/* No KVM emulates this, and one that does not emulate all has to for a device's memory. */
	.globl unemulated
unemulated:
	mov %cr0, %eax
	and $~4, %eax
	or $2, %eax
	mov %eax, %cr0
	mov %cr4, %eax
	or $0x600, %eax
	mov %eax, %cr4
	mov $0xd0000000, %edi
	paddd (%edi), %xmm0
	jmp spin
	.globl triple
triple:	lidt noidt
	ud2
/* The firmware of a q35 puts its ACPI registers here. */
shut:	mov $0x604, %edx
	mov $0x2000, %eax
	out %ax, %dx
	jmp spin
panic:	mov $0x505, %edx
	mov $1, %al
	out %al, %dx
	jmp spin
debug:	mov $0xf4, %edx
	mov $0x10, %al
	out %al, %dx
	jmp spin
reset:	mov $0xfe, %al
	out %al, $0x64
	jmp spin
	.align 8
gdt:	.quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdtr:	.word 23
	.long gdt
noidt:	.word 0
	.long 0
	.bss
mark:	.long 0
	.align 16
	.skip 4096
stack_end:
	.align 4096
directory:
	.skip 4096
