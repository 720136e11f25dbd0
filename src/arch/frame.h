/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about a frame of a call chain, besides its address. */
#ifndef UNI_ARCH_FRAME_H
#define UNI_ARCH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum uni_frame_flags {
	UNI_FRAME_GUESS = 1u << 0, /* found by scanning, may be wrong */
	UNI_FRAME_EXACT = 1u << 1, /* an interrupted pc, not a return address: look up as it is */
	/* For a leaf, if the vCPU stopped at a block's start (arch/skid.h): */
	UNI_FRAME_MOVED = 1u << 2, /* the block before was in this function; where in the function
				      is not known. pc 0: nor is the function */
	UNI_FRAME_UNSURE =
		1u << 3, /* the block before may have been in its callee, or its caller */
	/* A frame of the kernel below a process; pc 0: its place in the kernel is not known. */
	UNI_FRAME_KERNEL = 1u << 4,
	/* Frames between this one and the one before, which it called through them, are left out.
	 */
	UNI_FRAME_GAP = 1u << 5,
};

/*
 * Did frame i, leaf first, call nothing: did an interrupt, an exception or a signal come in at its
 * pc? The frame above it is the handler's. A process that is in its kernel may have called it.
 */
static inline bool uni_frame_is_interrupted(const uint8_t *flags, size_t i)
{
	return i != 0 && (flags[i] & UNI_FRAME_EXACT) != 0 &&
	       (flags[i - 1] & UNI_FRAME_KERNEL) == 0;
}

/* A function that was called by a pointer, of which nothing else is known. */
static inline bool uni_frame_is_unknown_callee(uint64_t pc, unsigned flags)
{
	return pc == 0 && (flags & UNI_FRAME_MOVED) != 0;
}

#endif
