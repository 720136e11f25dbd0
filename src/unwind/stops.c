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

static int compare_entry(const void *key, const void *member)
{
	const uint64_t *svma = key;
	const struct uni_skid_entry *e = member;

	return *svma < e->svma ? -1 : *svma > e->svma;
}

/* It has not begun. If its caller is not known, nor is the block that ran. */
static bool is_first_byte(const struct uni_unwinder *u, uint64_t pc)
{
	uint64_t svma = pc - u->skid_bias;

	return bsearch(&svma, u->skid->entry, u->skid->nr_entries, sizeof(*u->skid->entry),
		       compare_entry) != NULL;
}

void uni_unwind_stopped(const struct uni_unwinder *u, struct uni_as *as,
	const struct uni_regs *regs, struct uni_chain *c)
{
	if (u->skid == NULL || c->nr == 0 || regs->state != UNI_VCPU_RUNNING)
		return;
	if (is_read(u, c->pc[0])) {
		uni_unwind_unskid(u, as, regs, c);
		if ((c->flags[0] & UNI_FRAME_MOVED) != 0 || !is_first_byte(u, c->pc[0]))
			return;
	}
	c->flags[0] |= UNI_FRAME_UNSURE;
}
