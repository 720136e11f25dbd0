/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "unwind/unwind.h"

static int compare_code(const void *key, const void *member)
{
	const uint64_t *pc = key;
	const struct uni_skid_code *code = member;

	if (*pc < code->start)
		return -1;
	return *pc - code->start >= code->size;
}

static bool is_read(const struct uni_unwinder *u, uint64_t pc)
{
	return u->nr_skid_code != 0 && bsearch(&pc, u->skid_code, u->nr_skid_code,
					       sizeof(*u->skid_code), compare_code) != NULL;
}

void uni_unwind_stopped(const struct uni_unwinder *u, struct uni_as *as,
	const struct uni_regs *regs, struct uni_chain *c)
{
	if (u->skid == NULL || c->nr == 0 || regs->state != UNI_VCPU_RUNNING)
		return;
	if (is_read(u, c->pc[0])) {
		uni_unwind_unskid(u, as, regs, c);
		/* A function that has not begun: if its caller is not known, nor is the block
		 * that ran. */
		if ((c->flags[0] & UNI_FRAME_MOVED) != 0 ||
			uni_unwind_skid_entry(u, c->pc[0]) == NULL)
			return;
	}
	c->flags[0] |= UNI_FRAME_UNSURE;
}
