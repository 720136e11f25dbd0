/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts that make an image for Xen: notes for the loader, the hypercall page, PV entries. PVH
 * guests enter by ../boot.S and ../entry.S as they do elsewhere.
 */
#include "../layout.h"
#include "abi.h"

	.macro	note type, value
	.balign	4
	.long	4, 8, \type
	.asciz	"Xen"
	.quad	\value
	.endm

	.macro	note_text type, text
	.balign	4
	.long	4, 2f - 1f, \type
	.asciz	"Xen"
1:	.asciz	"\text"
2:
	.endm

	.section .note.Xen, "a", @note
	note	XEN_NOTE_ENTRY, lab_pv_start
	note	XEN_NOTE_HYPERCALL_PAGE, hypercall_page
	note	XEN_NOTE_VIRT_BASE, LAB_IMAGE_OFFSET
	note	XEN_NOTE_PADDR_OFFSET, 0
	note_text XEN_NOTE_XEN_VERSION, "xen-3.0"
	note_text XEN_NOTE_GUEST_OS, "uniscope-lab"
	note_text XEN_NOTE_LOADER, "generic"
	.balign	4

	/* Xen writes a stub of 32 bytes for each hypercall: for PV as it loads us, for PVH when asked. */
	.text
	.balign	4096
	.globl	hypercall_page
	.type	hypercall_page, @function
hypercall_page:
	.fill	4096, 1, 0xcc
	.size	hypercall_page, 4096

	/* %rsi: start info. Paging is on, all segments are flat. */
	.globl	lab_pv_start
	.type	lab_pv_start, @function
lab_pv_start:
	.cfi_startproc
	.cfi_undefined rip		/* the outermost frame */
	cld
	leaq	lab_pv_boot_stack + LAB_BOOT_STACK_SIZE(%rip), %rsp
	xorl	%ebp, %ebp
	movq	%rsi, %rdi
	call	lab_pv_setup		/* returns the top of the main stack */
	movq	%rax, %rsp
	xorl	%ebp, %ebp
	call	kmain
	ud2
	.cfi_endproc
	.size	lab_pv_start, . - lab_pv_start

	/* Further vCPUs of PV guests start with their stack, the tables and a %gs that is not theirs yet. */
	.globl	lab_pv_ap_start
	.type	lab_pv_ap_start, @function
lab_pv_ap_start:
	.cfi_startproc
	.cfi_undefined rip
	xorl	%ebp, %ebp
	call	lab_ap_setup
	xorl	%ebp, %ebp
	call	lab_ap_main
	ud2
	.cfi_endproc
	.size	lab_pv_ap_start, . - lab_pv_ap_start

	/* Those of PVH guests start in 64-bit mode, on the tables, with no more than that. */
	.globl	lab_pvh_ap_start
	.type	lab_pvh_ap_start, @function
lab_pvh_ap_start:
	.cfi_startproc
	.cfi_undefined rip
	lgdt	boot_gdtr_high(%rip)
	pushq	$LAB_SEL_CODE
	leaq	lab_ap_entry(%rip), %rax
	pushq	%rax
	lretq
	.cfi_endproc
	.size	lab_pvh_ap_start, . - lab_pvh_ap_start

	.bss
	.balign	16
	.type	lab_pv_boot_stack, @object
lab_pv_boot_stack:
	.skip	LAB_BOOT_STACK_SIZE
	.size	lab_pv_boot_stack, LAB_BOOT_STACK_SIZE

	.section .note.GNU-stack, "", @progbits
