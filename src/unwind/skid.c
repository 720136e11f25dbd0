/* SPDX-License-Identifier: BSD-2-Clause */
/* Corrects a chain that was taken when the next block was about to begin: arch/skid.h. */
#include <stdlib.h>
#include <string.h>

#include "unwind/unwind.h"

static int compare_ret(const void *key, const void *member)
{
	const uint64_t *ret = key;
	const struct uni_skid_call *c = member;

	return *ret < c->ret ? -1 : *ret > c->ret;
}

static const struct uni_skid_call *find_call(const struct uni_unwinder *u, uint64_t ret_addr)
{
	uint64_t svma = ret_addr - u->skid_bias;

	return u->skid->nr == 0 ? NULL
				: bsearch(&svma, u->skid->call, u->skid->nr, sizeof(*u->skid->call),
					  compare_ret);
}

static int compare_entry(const void *key, const void *member)
{
	const uint64_t *svma = key;
	const struct uni_skid_entry *e = member;

	return *svma < e->svma ? -1 : *svma > e->svma;
}

const struct uni_skid_entry *uni_unwind_skid_entry(const struct uni_unwinder *u, uint64_t pc)
{
	uint64_t svma = pc - u->skid_bias;

	return u->skid->nr_entries == 0 ? NULL
					: bsearch(&svma, u->skid->entry, u->skid->nr_entries,
						  sizeof(*u->skid->entry), compare_entry);
}

static int compare_place(const void *key, const void *member)
{
	const uint64_t *svma = key, *place = member;

	return *svma < *place ? -1 : *svma > *place;
}

/* May a block of another function have run before? */
static bool is_shared(const struct uni_unwinder *u, uint64_t pc)
{
	uint64_t svma = pc - u->skid_bias;

	return u->skid->nr_shared != 0 && bsearch(&svma, u->skid->shared, u->skid->nr_shared,
						  sizeof(svma), compare_place) != NULL;
}

/* Puts the callee, whose last block ran, in front of the chain. pc 0: it is not known. */
static void put_back(uint64_t pc, struct uni_chain *c)
{
	if (c->nr == UNI_CHAIN_MAX)
		return;
	memmove(c->pc + 1, c->pc, c->nr * sizeof(c->pc[0]));
	memmove(c->sp + 1, c->sp, c->nr * sizeof(c->sp[0]));
	memmove(c->flags + 1, c->flags, c->nr * sizeof(c->flags[0]));
	c->nr++;
	c->pc[0] = pc;
	c->flags[0] = UNI_FRAME_EXACT | UNI_FRAME_MOVED;
	c->flags[1] = (uint8_t)(c->flags[1] & ~UNI_FRAME_EXACT);
}

/* Takes off a function that has not begun: the block before ran. */
static void drop_leaf(struct uni_chain *c)
{
	c->nr--;
	memmove(c->pc, c->pc + 1, c->nr * sizeof(c->pc[0]));
	memmove(c->sp, c->sp + 1, c->nr * sizeof(c->sp[0]));
	memmove(c->flags, c->flags + 1, c->nr * sizeof(c->flags[0]));
	c->flags[0] |= UNI_FRAME_EXACT | UNI_FRAME_MOVED;
}

/* The same, where the block before ends in the call. */
static void take_off(struct uni_chain *c)
{
	drop_leaf(c);
	c->pc[0]--;
}

static void unskid_returned(const struct uni_unwinder *u, struct uni_chain *c)
{
	const struct uni_skid_call *call = find_call(u, c->pc[0]);

	if (call == NULL || (call->flags & UNI_SKID_BEHIND) == 0)
		c->flags[0] |= UNI_FRAME_UNSURE;
	else if ((call->flags & UNI_SKID_RETURNS) != 0)
		put_back(call->callee + u->skid_bias, c);
	else
		put_back(0, c);
}

/*
 * No jump leads there, and yet it is no plain return: `ret N`, or the end of an interrupt. Behind
 * a trap, the handler's last block ran.
 */
static void doubt_return(const struct uni_unwinder *u, struct uni_chain *c)
{
	const struct uni_skid_call *call = find_call(u, c->pc[0]);

	if (call == NULL || (call->flags & UNI_SKID_BEHIND) == 0)
		return;
	if ((call->flags & UNI_SKID_TRAP) != 0)
		put_back(0, c);
	else
		c->flags[0] |= UNI_FRAME_UNSURE;
}

#define ENDS_MOST 8 /* functions, each of which leaves for the next alone */

/* Another function ran before its first byte: it only returns, and does not begin again. */
static bool is_last(const struct uni_skid_entry *entry)
{
	return entry->end == 0 && !entry->is_repeated;
}

/*
 * Which function jumped to `entry`, after `callee` was called? 0: one of several, or one that a
 * pointer leads to. False: none is known to lead there.
 */
static bool find_jumper(const struct uni_unwinder *u, uint64_t callee,
	const struct uni_skid_entry *entry, uint64_t *pc_ret)
{
	const struct uni_skid_entry *from = uni_unwind_skid_entry(u, callee + u->skid_bias);

	for (unsigned i = 0; from != NULL && i < ENDS_MOST; i++) {
		bool is_known = from->end == entry->svma;

		*pc_ret = is_known ? from->svma + u->skid_bias : 0;
		if (is_known || from->end == UNI_SKID_ANYWHERE)
			return true;
		from = uni_unwind_skid_entry(u, from->end + u->skid_bias);
	}
	return false;
}

/* Puts the function that jumped in the place of one that has not begun. pc 0: it is not known. */
static void replace_leaf(uint64_t pc, struct uni_chain *c)
{
	c->pc[0] = pc;
	c->flags[0] |= UNI_FRAME_MOVED;
}

/*
 * Before the first byte of a handler, the block that was interrupted ran. If that would have gone
 * on behind a call, or at a first byte, it may have been another function's.
 */
static void unskid_handler(
	const struct uni_unwinder *u, const struct uni_skid_entry *entry, struct uni_chain *c)
{
	const struct uni_skid_call *call;

	if (entry->is_jumped) {
		c->flags[0] |= UNI_FRAME_UNSURE;
		return;
	}
	drop_leaf(c);
	call = find_call(u, c->pc[0]);
	if (call != NULL && (call->flags & UNI_SKID_TRAP) != 0)
		c->pc[0]--;
	else if (call != NULL || uni_unwind_skid_entry(u, c->pc[0]) != NULL)
		c->flags[0] |= UNI_FRAME_UNSURE;
}

/* Which block ran before the first byte of a function? */
static void unskid_entered(const struct uni_unwinder *u, struct uni_chain *c)
{
	const struct uni_skid_entry *entry = uni_unwind_skid_entry(u, c->pc[0]);
	const struct uni_skid_call *call;
	uint64_t jumper = 0;
	bool is_callee, is_known;

	if (c->nr < 2 || (c->flags[1] & UNI_FRAME_GUESS) != 0)
		return;
	if ((c->flags[1] & UNI_FRAME_EXACT) != 0) {
		unskid_handler(u, entry, c);
		return;
	}
	call = find_call(u, c->pc[1]);
	if (call == NULL)
		return;
	is_callee = call->callee == entry->svma ? (call->flags & UNI_SKID_ENTERS) != 0
						: call->callee == 0 && !entry->is_jumped;
	if (is_callee) {
		take_off(c);
		/* Or a function that the pointer led to jumped there by another pointer. */
		if (call->callee == 0 && u->skid->has_tail_pointers)
			c->flags[0] |= UNI_FRAME_UNSURE;
		return;
	}
	is_known = is_last(entry) && call->callee != 0 && call->callee != entry->svma &&
		   find_jumper(u, call->callee, entry, &jumper);
	/* A pointer led to it, or to a function that jumped there: it did not run itself. */
	if (is_known || (is_last(entry) && call->callee == 0))
		replace_leaf(jumper, c);
	if (!is_known)
		c->flags[0] |= UNI_FRAME_UNSURE;
}

void uni_unwind_unskid(const struct uni_unwinder *u, struct uni_as *as, const struct uni_regs *regs,
	struct uni_chain *c)
{
	if (u->skid == NULL || c->nr == 0 || regs->state != UNI_VCPU_RUNNING)
		return;
	if (u->arch->has_returned(as, regs))
		unskid_returned(u, c);
	else if (uni_unwind_skid_entry(u, c->pc[0]) != NULL)
		unskid_entered(u, c);
	else if (is_shared(u, c->pc[0]))
		c->flags[0] |= UNI_FRAME_UNSURE;
	else
		doubt_return(u, c);
}
