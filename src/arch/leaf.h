/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The place of an interrupted function's return address, as one byte for each byte of code. The
 * frame-pointer step finds it out from the instructions; here it is found out beforehand. This is
 * for programs in the kernel, which have no time to look at code. They include this file, so it has
 * constants only.
 *
 * One byte can state moves of rsp by up to 1016 bytes (248 if a search may follow). Functions that
 * move rsp further without a frame pointer are in images that have none at all. Those images are
 * unwound by their unwind rows.
 */
#ifndef UNI_ARCH_LEAF_H
#define UNI_ARCH_LEAF_H

enum uni_leaf_rule {
	UNI_LEAF_FRAME = 0, /* in the frame, at rbp + 8 */
	UNI_LEAF_ENTRY = 1, /* nowhere: an entry point */
	/* At rsp if that word points behind a call of anything, else in the frame. */
	UNI_LEAF_SLOT = 2,
	/*
	 * 32 + n: at the lowest word above rsp that points behind a call of this very function. If
	 * there is none: in the frame, if that word points behind such a call. Else n words above
	 * rsp, or at rsp, if that word points behind a call of anything. Else in the frame.
	 */
	UNI_LEAF_SEARCH = 32,
	UNI_LEAF_SEARCH_MAX = 63,
	UNI_LEAF_AT = 128, /* 128 + n: n words above rsp */
	UNI_LEAF_AT_MAX = 255,
};

#endif
