/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a call chain ended. This is data, not an error: every chain has a reason, which is recorded.
 */
#ifndef UNI_ARCH_STOP_H
#define UNI_ARCH_STOP_H

enum uni_stop {
	UNI_STOP_ROOT = 0,   /* the outermost frame: entry point, or a zero return address */
	UNI_STOP_FAULT = 1,  /* the next frame is not mapped or not readable */
	UNI_STOP_LOOP = 2,   /* the stack does not rise: cyclic or descending chain */
	UNI_STOP_LIMIT = 3,  /* more frames than UNI_CHAIN_MAX */
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
