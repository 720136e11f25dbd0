/* SPDX-License-Identifier: BSD-2-Clause */
/* Jumps within a function, drawn in text: each on a lane of its own beside the instructions. */
#ifndef UNI_ANNOTATE_ARROWS_H
#define UNI_ANNOTATE_ARROWS_H

#include "annotate/code.h"

#define UNI_ARROW_LANES 6

struct uni_arrows {
	UNI_VEC(uint8_t) cells; /* UNI_ARROW_LANES for each instruction; ours */
	unsigned lanes;		/* that are used */
	size_t left_out;	/* jumps that are too long, or for which there is no lane */
};

/* Shorter jumps go first. False: out of memory. */
bool uni_arrows_draw(const struct uni_code *c, struct uni_arrows *ret);
void uni_arrows_deinit(struct uni_arrows *a);
/* The part beside an instruction, `lanes` + 2 characters: "  /->". */
void uni_arrows_text(const struct uni_arrows *a, size_t insn, char ret[static UNI_ARROW_LANES + 3]);

#endif
