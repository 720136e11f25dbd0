/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses on x86_64. Read by C, by the assembler and by the linker script. */
#ifndef LAB_X86_64_LAYOUT_H
#define LAB_X86_64_LAYOUT_H

#define LAB_IMAGE_OFFSET 0xffffffff80000000 /* VA - PA of the image */
#define LAB_IMAGE_PA	 0x200000
#define LAB_LINEAR	 0xffffa00000000000 /* RAM below 4 GiB by 2 MiB leaves; not in Xen's hole */
#define LAB_LINEAR_SLOT	 320		    /* its entry in the root */
#define LAB_HUGE	 0xffff880000000000 /* the same by 1 GiB leaves, if the CPU has them */
#define LAB_HUGE_SLOT	 272
#define LAB_STACKS	 0xffffc90000000000 /* stacks, 4 KiB leaves, order reversed */
#define LAB_STACK_STRIDE 0x1000000	    /* a stack and what guards it */
#define LAB_MAX_STACKS	 256
#define LAB_APIC	 0xffffffffc0000000 /* local APIC, one uncached page */
#define LAB_APIC_PA	 0xfee00000
#define LAB_TRAMPOLINE	 0x8000		    /* PA at which further vCPUs start */
#define LAB_PIE_TABLES	 0x10000	    /* PA of boot_pie.S's tables, 7 pages */
#define LAB_PROGRAMS	 0x0000100000000000 /* programs that are loaded at run time */

#define LAB_SEL_CODE 0x08
#define LAB_SEL_DATA 0x10
#define LAB_SEL_TSS  0x20 /* + 16 * cpu */
#ifndef LAB_MAX_CPUS	  /* as in lab_truth.h, for the assembler */
#define LAB_MAX_CPUS 4
#endif
#define LAB_GDT_SIZE (32 + 16 * LAB_MAX_CPUS)

#define LAB_BOOT_STACK_SIZE 16384

#define LAB_TRACE_GS 64 /* the tracer's part of struct lab_cpu */
#define MSR_GS_BASE  0xc0000101

#endif
