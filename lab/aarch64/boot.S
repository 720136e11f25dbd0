/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry of all vCPUs, at EL1 with the MMU off, up to lab_entry or lab_ap_entry in the higher half.
 * QEMU enters an ELF image at its physical address and leaves a device tree at the start of RAM.
 */
#include "layout.h"

#define PA(x) ((x) - LAB_IMAGE_OFFSET)

#define DEVICE_BLOCK 0x401	     /* block, AF, attribute 0 */
#define NORMAL_BLOCK 0x705	     /* block, AF, inner shareable, attribute 1 */
#define TABLE	     3
#define MAIR	     0xff00	     /* 0: device nGnRnE, 1: normal write-back */
#define TCR	     0x1b5103510     /* 48 bits and 4 KiB both halves, cached walks, 36-bit PA */
#define SCTLR_ON     0xc8003005	     /* MMU, caches; return addresses may be signed (EnIA, EnIB) */

	.section .text.boot, "ax"
	.globl	lab_start
	.type	lab_start, @function
lab_start:
	ldr	x9, =lab_entry
	b	enable_mmu
	.size	lab_start, . - lab_start

	.globl	lab_ap_start
	.type	lab_ap_start, @function
lab_ap_start:
	ldr	x9, =lab_ap_entry
	b	enable_mmu
	.size	lab_ap_start, . - lab_ap_start

	.type	enable_mmu, @function
enable_mmu:
	msr	daifset, #15
	ldr	x10, =MAIR
	msr	mair_el1, x10
	ldr	x10, =TCR
	msr	tcr_el1, x10
	ldr	x10, =PA(boot_low)
	msr	ttbr0_el1, x10
	ldr	x10, =PA(boot_high)
	msr	ttbr1_el1, x10
	mov	x10, #0x5a17		/* a key is better than none */
	mrs	x11, id_aa64isar1_el1
	tst	x11, #0xff0		/* APA, API: there are keys at all */
	b.eq	1f
	msr	s3_0_c2_c1_0, x10	/* APIAKeyLo_EL1 */
	msr	s3_0_c2_c1_1, x10
	msr	s3_0_c2_c1_2, x10	/* APIBKeyLo_EL1 */
	msr	s3_0_c2_c1_3, x10
1:	isb
	tlbi	vmalle1
	dsb	sy
	mrs	x10, sctlr_el1
	ldr	x11, =SCTLR_ON
	orr	x10, x10, x11
	msr	sctlr_el1, x10
	isb
	br	x9
	.size	enable_mmu, . - enable_mmu
	.ltorg

	/*
	 * Boot tables: PA 0-1 GiB as devices, 1-2 GiB as memory, seen at 0 (for the jump only) and
	 * at LAB_LINEAR; the image at LAB_IMAGE_OFFSET. paging.c builds the real ones; further
	 * vCPUs start on these.
	 */
	.data
	.balign	4096
boot_low:
	.quad	PA(boot_gigabytes) + TABLE
	.fill	511, 8, 0
boot_high:
	.quad	PA(boot_gigabytes) + TABLE
	.fill	255, 8, 0
	.quad	PA(boot_image) + TABLE	/* ffff800000000000 */
	.fill	255, 8, 0
boot_gigabytes:
	.quad	DEVICE_BLOCK
	.quad	LAB_RAM_PA + NORMAL_BLOCK
	.fill	510, 8, 0
boot_image:
	.fill	2, 8, 0
	.quad	LAB_RAM_PA + NORMAL_BLOCK	/* ffff800080000000 */
	.fill	509, 8, 0

	.text
	.globl	lab_entry
	.type	lab_entry, @function
lab_entry:
	.cfi_startproc
	.cfi_undefined x30		/* the outermost frame */
	ldr	x0, =lab_boot_stack + LAB_BOOT_STACK_SIZE
	mov	sp, x0
	mov	x29, xzr
	bl	lab_setup		/* returns the top of the main stack */
	mov	sp, x0
	mov	x29, xzr
	bl	kmain
	brk	#1
	.cfi_endproc
	.size	lab_entry, . - lab_entry

	.globl	lab_ap_entry
	.type	lab_ap_entry, @function
lab_ap_entry:
	.cfi_startproc
	.cfi_undefined x30
	ldr	x0, =lab_ap_boot_stack + LAB_BOOT_STACK_SIZE
	mov	sp, x0
	mov	x29, xzr
	bl	lab_ap_setup
	mov	sp, x0
	mov	x29, xzr
	bl	lab_ap_main
	brk	#1
	.cfi_endproc
	.size	lab_ap_entry, . - lab_ap_entry
	.ltorg

	/* lab_on_stack(fn, arg, top): the frame record links both stacks, for walkers and for us. */
	.globl	lab_on_stack
	.type	lab_on_stack, @function
lab_on_stack:
	.cfi_startproc
	stp	x29, x30, [sp, #-16]!
	.cfi_def_cfa_offset 16
	.cfi_offset x29, -16
	.cfi_offset x30, -8
	mov	x29, sp
	.cfi_def_cfa_register x29
	mov	x9, x0
	mov	x0, x1
	mov	sp, x2
	blr	x9
	mov	sp, x29
	ldp	x29, x30, [sp], #16
	.cfi_def_cfa sp, 0
	.cfi_restore x29
	.cfi_restore x30
	ret
	.cfi_endproc
	.size	lab_on_stack, . - lab_on_stack

	.bss
	.balign	16
	.type	lab_boot_stack, @object
lab_boot_stack:
	.skip	LAB_BOOT_STACK_SIZE
	.size	lab_boot_stack, LAB_BOOT_STACK_SIZE
	.type	lab_ap_boot_stack, @object
lab_ap_boot_stack:			/* they come up one after the other */
	.skip	LAB_BOOT_STACK_SIZE
	.size	lab_ap_boot_stack, LAB_BOOT_STACK_SIZE

	.section .note.GNU-stack, "", %progbits
