/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of exact.c that depends on the architecture, and its instructions one by one. */
#ifndef EXACT_ARCH_H
#define EXACT_ARCH_H

#include <stdint.h>

void exact_touch(volatile void *p);		     /* 2 instructions, the first one faults */
void exact_device(volatile void *p, uint64_t turns); /* 3 instructions a turn, and 1 */
/* 4 a turn, and 2. The block before the loop has its first turn, too. */
void exact_devices(volatile void *p, uint64_t turns);
void exact_tail_a(uint64_t n);				/* 3 instructions, the last time 3 */
void exact_tail_b(uint64_t n);				/* the same, by turns */
uint64_t exact_catch(void (*fn)(uint64_t), uint64_t n); /* returns once somebody throws */
void exact_throw(void);
void exact_bounce(uint64_t n); /* calls itself down to 0, and goes on as it was at 4 */
void exact_note(void);	       /* by that one */
void exact_page_fault(void);   /* calls exact_map() */
void exact_map(void);

volatile void *exact_register(void);	 /* of a device: reading it has no effect */
volatile void *exact_page_prepare(void); /* it is there */
void exact_page_hide(void);		 /* until the next access, which faults */
void exact_more(void);			 /* what only this architecture has */

#endif
