/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses on QEMU's `virt`. Read by C, by the assembler and by the linker script. */
#ifndef LAB_AARCH64_LAYOUT_H
#define LAB_AARCH64_LAYOUT_H

#define LAB_RAM_PA	 0x40000000 /* the device tree lies at its start */
#define LAB_IMAGE_PA	 0x40200000
#define LAB_IMAGE_OFFSET 0xffff800040000000 /* VA - PA of the image */
#define LAB_LINEAR	 0xffff000000000000 /* RAM by 2 MiB blocks, devices by pages */
#define LAB_HUGE	 0xffff100000000000 /* RAM by 1 GiB blocks */
#define LAB_STACKS	 0x0000700000000000 /* stacks, pages, order reversed: by TTBR0 */
#define LAB_STACK_STRIDE 0x1000000	    /* a stack and what guards it */
#define LAB_MAX_STACKS	 64

#define LAB_GICD_PA 0x08000000
#define LAB_GICC_PA 0x08010000
#define LAB_UART_PA 0x09000000

#define LAB_BOOT_STACK_SIZE 16384

#endif
