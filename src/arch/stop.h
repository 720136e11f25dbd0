/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a call chain ended. This is data, not an error: every chain has a reason, which is recorded.
 * Programs in the kernel include this file, so it has constants only.
 */
#ifndef UNI_ARCH_STOP_H
#define UNI_ARCH_STOP_H

/*
 * Frames of one chain. A deeper chain keeps the innermost half, and the outermost quarter behind
 * UNI_FRAME_GAP. The numbers are always the same, so a recursion looks the same at every depth.
 */
#define UNI_CHAIN_MAX	512
#define UNI_CHAIN_INNER (UNI_CHAIN_MAX / 2)
#define UNI_CHAIN_OUTER (UNI_CHAIN_MAX / 4)
#define UNI_CHAIN_DEPTH 2560 /* frames that are followed: a guest may be paused meanwhile */

enum uni_stop {
	UNI_STOP_ROOT = 0,   /* the outermost frame: entry point, or a zero return address */
	UNI_STOP_FAULT = 1,  /* the next frame is not mapped or not readable */
	UNI_STOP_LOOP = 2,   /* the stack does not rise: cyclic or descending chain */
	UNI_STOP_LIMIT = 3,  /* more frames than are followed */
	UNI_STOP_BADPTR = 4, /* misaligned or absurd frame pointer */
	UNI_STOP_BADPC = 5,  /* the return address is no code address */
	UNI_STOP_BUDGET = 6, /* bytes, page-table loads or time of this sample used up */
	UNI_STOP_NOREGS = 7, /* no registers: nothing could be unwound */
	UNI_STOP_GONE = 8,   /* the target went away in the middle */
	UNI_STOP_NR
};

/* Short lower-case word for reports and files: "root", "fault", ... */
const char *uni_stop_name(unsigned stop);

#endif
