/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Where the return address of an interrupted function is, as one byte for each byte of code: what
 * the frame-pointer step finds out from the instructions, found out before. For those who unwind
 * where there is no time to look at code: programs in the kernel. They include this, so no more
 * than constants are here.
 *
 * One byte holds moves of rsp by up to 1016 bytes (248 where a search may follow). Functions that
 * move it further without a frame pointer are of images that have none at all, and these are
 * unwound by their unwind rows.
 */
#ifndef UNI_ARCH_LEAF_H
#define UNI_ARCH_LEAF_H

enum uni_leaf_rule {
	UNI_LEAF_FRAME = 0, /* in the frame, at rbp + 8 */
	UNI_LEAF_ENTRY = 1, /* nowhere: an entry point */
	/* At rsp if that is behind a call of anything, else in the frame. */
	UNI_LEAF_SLOT = 2,
	/*
	 * 32 + n: above rsp, where the lowest word is that is behind a call of this very function.
	 * If there is none: in the frame if that one is; else n words above rsp, or at rsp, if it
	 * is behind a call of anything; else in the frame.
	 */
	UNI_LEAF_SEARCH = 32,
	UNI_LEAF_SEARCH_MAX = 63,
	UNI_LEAF_AT = 128, /* 128 + n: n words above rsp */
	UNI_LEAF_AT_MAX = 255,
};

#endif
