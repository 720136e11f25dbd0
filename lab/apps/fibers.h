/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by fibers.c and fibers_asm.S. */
#ifndef LAB_FIBERS_H
#define LAB_FIBERS_H

#define FIBER_BYTES    16384
#define FIBER_NR       3
#define FIBER_SP       0  /* where it goes on */
#define FIBER_TOP      8  /* its handler: the end of its stack */
#define HANDLER_PARENT 24 /* the fiber that started it */
#define HANDLER_BYTES  32

#endif
