/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The return address of a vCPU's innermost function, by rules that were made from the code
 * beforehand (arch/leaf.h).
 */
#ifndef UNI_BACKEND_KVM_BPF_LEAF_BPF_H
#define UNI_BACKEND_KVM_BPF_LEAF_BPF_H

#include "arch/leaf.h"
#include "backend/kvm/bpf/guest.bpf.h"

#define UNI_BELOW_WORDS 32 /* how far below rbp a call is searched if rsp is not known */
#define UNI_STACK_MAX	(1024u * 1024) /* rbp this close above rsp is on the same stack */
#define UNI_X86_LEAVE	0xc9
#define UNI_X86_POP_RBP 0x5d

/* The data of the leaf's search; callee and found are in the scratch. */
struct uni_leaf {
	const struct uni_bpf_guest *g;
	struct uni_bpf_scratch *s;
};

static __always_inline bool uni_in_text(const struct uni_bpf_guest *g, u64 pc)
{
	return pc - g->text_start < g->text_size;
}

/* The 8 bytes of code before an address in the image; false if it has no 8 there. */
static __always_inline bool uni_code_before(
	const struct uni_bpf_guest *g, u32 guest, u64 addr, u64 *ret)
{
	u64 off = addr - g->text_start - 8;
	u32 at = (u32)(off >> 3), shift = (u32)(off & 7) * 8;
	const struct uni_bpf_text *t;

	if (!uni_in_text(g, addr - 1) || !uni_in_text(g, addr - 8))
		return false;
	t = uni_text_at(guest, at);
	if (t == NULL)
		return false;
	*ret = t->code >> shift;
	if (shift == 0)
		return true;
	t = uni_text_at(guest, at + 1);
	if (t == NULL)
		return false;
	*ret |= t->code << (64 - shift);
	return true;
}

/* Is there a call rel32 (E8) before a return address? Gives its target. */
static __always_inline bool uni_direct_call(u64 before, u64 ret_addr, u64 *target)
{
	*target = ret_addr + (u64)(long long)(int)(before >> 32);
	return (before >> 24 & 0xff) == 0xe8;
}

/* Number of bytes of ModRM, SIB and displacement; they begin with the lowest byte of code. */
static __always_inline u32 uni_modrm_len(u64 code)
{
	u32 mod = code >> 6 & 3, rm = code & 7, len = 1;

	if (mod != 3 && rm == 4) {
		len = 2;
		if (mod == 0 && (code >> 8 & 7) == 5)
			len += 4;
	}
	if (mod == 0 && rm == 5)
		len += 4;
	if (mod == 1)
		len += 1;
	if (mod == 2)
		len += 4;
	return len;
}

/* Is there a call through a register or memory (FF /2) before a return address? */
static __always_inline bool uni_indirect_call(u64 before)
{
	bool found = false;

	for (u32 len = 2; len <= 7; len++) {
		u64 p = before >> (8 * (8 - len));

		if ((p & 0xff) == 0xff && (p >> 11 & 7) == 2 && uni_modrm_len(p >> 8) == len - 1)
			found = true;
	}
	return found;
}

static __always_inline bool uni_returns_from(
	const struct uni_bpf_guest *g, u32 guest, u64 ret_addr, u64 callee)
{
	u64 before, target;

	return uni_code_before(g, guest, ret_addr, &before) &&
	       uni_direct_call(before, ret_addr, &target) && target == callee;
}

/* A separate function for the verifier, which would otherwise check it for each caller's state. */
__noinline int uni_is_return(const struct uni_bpf_guest *g, u32 guest, u64 ret_addr)
{
	u64 before, target;

	return g != NULL && uni_code_before(g, guest, ret_addr, &before) &&
	       (uni_direct_call(before, ret_addr, &target) || uni_indirect_call(before));
}

/*
 * A KVM that emulates instructions writes back an instruction's registers before its pc, and a
 * sample may come in between. Then pc is still at an instruction that rsp and rbp have already
 * passed. If KVM tells when a sample hit the guest, all of them are of one instant.
 */
static __always_inline bool uni_may_be_torn(const struct uni_bpf_guest *g)
{
	return (g->flags & UNI_BPF_SPLIT) == 0;
}

/*
 * The place of the return address that is expected at loc. If a push, pop, call or ret was done
 * already, it is a word beside loc. At loc, the return address of any call will do. Beside loc, it
 * must be behind a call of this very function.
 */
__noinline u64 uni_torn_slot(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 loc, u64 callee)
{
	u64 word = 0;

	if (g == NULL || s == NULL || !uni_may_be_torn(g))
		return loc;
	if (uni_stack_word(g, s, loc, &word) && uni_is_return(g, s->guest, word))
		return loc;
	if (uni_stack_word(g, s, loc + 8, &word) && uni_returns_from(g, s->guest, word, callee))
		return loc + 8;
	if (uni_stack_word(g, s, loc - 8, &word) && uni_returns_from(g, s->guest, word, callee))
		return loc - 8;
	return loc;
}

static __always_inline bool uni_ends_frame(u64 code)
{
	return (code & 0xff) == UNI_X86_LEAVE || (code & 0xff) == UNI_X86_POP_RBP;
}

/*
 * At a leave or pop rbp that was already done: the return address is at rsp, and rbp is the
 * caller's. If it was not done yet, the result is the same.
 */
__noinline int uni_torn_frame_end(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 callee)
{
	u64 word = 0;

	if (g == NULL || s == NULL || !uni_may_be_torn(g) || (s->regs.sp & 7) != 0)
		return false;
	if (s->regs.sp == s->regs.fp + 8) {
		s->sp = s->regs.fp;
		return false;
	}
	if (uni_stack_word(g, s, s->regs.fp + 8, &word) &&
		uni_returns_from(g, s->guest, word, callee))
		return false;
	return uni_stack_word(g, s, s->regs.sp, &word) &&
	       uni_returns_from(g, s->guest, word, callee);
}

static long uni_leaf_step(u32 i, struct uni_leaf *l)
{
	u64 word = l->s->window[i & (UNI_WINDOW_WORDS - 1)];

	if (!uni_in_text(l->g, word - 1) ||
		!uni_returns_from(l->g, l->s->guest, word, l->s->callee))
		return 0;
	l->s->found = i;
	return 1;
}

/* rbp is the caller's: the caller's frame is below it, and the call is at the frame's lower end. */
static long uni_leaf_step_down(u32 i, struct uni_leaf *l)
{
	return uni_leaf_step(UNI_BELOW_WORDS - 1 - i, l);
}

/* Searches up to `words` words of the window, which begins at va; subtracts the searched words. */
static __always_inline bool uni_leaf_search_window(struct uni_leaf *l, u64 va, u64 *words, u64 *loc)
{
	u32 nr = l->s->window_len;

	if (nr > *words)
		nr = (u32)*words;
	*words -= nr;
	bpf_loop(nr, uni_leaf_step, l, 0);
	*loc = va + (u64)l->s->found * 8;
	return l->s->found != UNI_BPF_NONE;
}

/* UNI_LEAF_SEARCH; *loc: the address of the return address. */
UNI_APART bool uni_leaf_search(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 callee, u32 moved, u64 *loc)
{
	struct uni_leaf l = { .g = g, .s = s };
	u64 sp = s->regs.sp, fp = s->regs.fp, words = UNI_WINDOW_WORDS, word = 0, page;
	bool same_stack = fp >= sp && fp - sp < UNI_STACK_MAX;

	if ((sp & 7) != 0)
		return false;
	s->callee = callee;
	s->found = UNI_BPF_NONE;
	if (same_stack && (fp - sp) / 8 + 1 < words)
		words = (fp - sp) / 8 + 1;
	if (uni_window_load(g, s, sp) && uni_leaf_search_window(&l, sp, &words, loc))
		return true;
	page = (sp & ~(UNI_PAGE - 1)) + UNI_PAGE;
	if (words != 0 && s->window_len < UNI_WINDOW_WORDS && uni_window_load(g, s, page) &&
		uni_leaf_search_window(&l, page, &words, loc))
		return true;
	/*
	 * It was called through a pointer, or jumped to by a called function. Not if its own frame
	 * is there already, because it set the frame up later on.
	 */
	if (same_stack && (fp & 7) == 0 && uni_stack_word(g, s, fp + 8, &word) &&
		uni_returns_from(g, s->guest, word, callee))
		return false;
	*loc = sp + moved * 8;
	if (uni_stack_word(g, s, *loc, &word) && uni_is_return(g, s->guest, word))
		return true;
	*loc = sp;
	return moved != 0 && uni_stack_word(g, s, sp, &word) && uni_is_return(g, s->guest, word);
}

/* rsp is not known. By the rule, rbp is the caller's or this function's. */
static __always_inline bool uni_leaf_below(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 callee, u64 *loc)
{
	struct uni_leaf l = { .g = g, .s = s };
	u64 low = s->regs.fp - UNI_BELOW_WORDS * 8;

	s->callee = callee;
	s->found = UNI_BPF_NONE;
	if ((low & 7) != 0 || !uni_window_load(g, s, low) || s->window_len < UNI_BELOW_WORDS)
		return false;
	bpf_loop(UNI_BELOW_WORDS, uni_leaf_step_down, &l, 0);
	*loc = low + (u64)s->found * 8;
	return s->found != UNI_BPF_NONE;
}

/* Code without a rule: in another image, or without an image. */
static __always_inline bool uni_leaf_unknown(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 *loc)
{
	u64 pc = s->regs.pc, hva, code = 0;

	*loc = s->regs.sp;
	if ((pc & (UNI_PAGE - 1)) > UNI_PAGE - sizeof(code))
		return false;
	hva = uni_translate(g, &s->regs, pc, false);
	if (hva == 0 || uni_read_user(&code, sizeof(code), hva) != 0)
		return false;
	if ((code & 0xff) == 0x55 || (code & 0xff) == 0xc3 || (code & 0xffffffff) == 0xfa1e0ff3)
		return true;
	*loc = s->regs.sp + 8; /* mov rbp, rsp: behind push rbp */
	return (code & 0xffffff) == 0xe58948 || (code & 0xffffff) == 0xec8b48;
}

/* The start of the function that has the code at off, which is in t. */
static __always_inline u64 uni_function_at(
	const struct uni_bpf_guest *g, const struct uni_bpf_text *t, u64 off)
{
	return g->text_start + (t->next != 0 && off >= t->next ? t->next : t->func);
}

/*
 * Applies the rule of pc. True: *loc is the address of the return address. False: it is in the
 * frame.
 */
static __always_inline bool uni_leaf_find(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 *loc)
{
	u64 off = s->regs.pc - g->text_start, callee, word;
	const struct uni_bpf_text *t;
	u32 rule;

	if (off >= g->text_size)
		return s->has_sp && uni_leaf_unknown(g, s, loc);
	t = uni_text_at(s->guest, (u32)(off >> 3));
	if (t == NULL)
		return false;
	rule = t->rule >> (off & 7) * 8 & 0xff;
	callee = uni_function_at(g, t, off);
	*loc = s->regs.sp;
	if (rule == UNI_LEAF_FRAME)
		return s->has_sp && uni_ends_frame(t->code >> (off & 7) * 8) &&
		       uni_torn_frame_end(g, s, callee);
	if (rule == UNI_LEAF_ENTRY)
		return false;
	if (!s->has_sp)
		return rule != UNI_LEAF_SLOT && uni_leaf_below(g, s, callee, loc);
	if (rule >= UNI_LEAF_AT) {
		*loc = uni_torn_slot(g, s, s->regs.sp + (rule - UNI_LEAF_AT) * 8, callee);
		return true;
	}
	if (rule >= UNI_LEAF_SEARCH)
		return uni_leaf_search(g, s, callee, rule - UNI_LEAF_SEARCH, loc);
	*loc = s->regs.sp;
	return (s->regs.sp & 7) == 0 && uni_stack_word(g, s, s->regs.sp, &word) &&
	       uni_is_return(g, s->guest, word);
}

#endif
