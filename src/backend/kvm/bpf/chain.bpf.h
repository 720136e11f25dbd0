/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * From a vCPU's registers to its call chain. It does what arch/x86_64/fp.c does, but by rules that
 * were made from the code beforehand (arch/leaf.h). A chain begins with the interrupted pc. The
 * return address of a function that has no frame at this point comes next, if there is one. Then
 * follow the frames that rbp leads to.
 */
#ifndef UNI_BACKEND_KVM_BPF_CHAIN_BPF_H
#define UNI_BACKEND_KVM_BPF_CHAIN_BPF_H

#include "arch/stop.h"
#include "backend/kvm/bpf/leaf.bpf.h"
#include "backend/kvm/bpf/recursion.bpf.h"

#define UNI_BPF_FALLS 256			/* switches to a lower stack within one chain */
#define UNI_BPF_STEPS (UNI_CHAIN_DEPTH * 3 / 2) /* with those that look at a recursion */
#define UNI_HASH_MUL  0x9e3779b97f4a7c15ull

/* Does FF /2 with this ModRM and SIB take len bytes? As in arch/x86_64/code.c. */
static __always_inline bool uni_is_call_by(u8 modrm, u8 sib, u32 len)
{
	u8 mod = modrm >> 6, rm = modrm & 7;
	u32 is = 2;

	if ((modrm >> 3 & 7) != 2)
		return false;
	if (mod != 3 && rm == 4) {
		is++;
		if (mod == 0 && (sib & 7) == 5)
			is += 4;
	}
	if (mod == 2 || (mod == 0 && rm == 5))
		is += 4;
	else if (mod == 1)
		is++;
	return is == len;
}

/* Is this word, of the 8 bytes before an address, the end of a call? */
static __always_inline bool uni_ends_in_call(u64 word)
{
	if ((u8)(word >> 24) == 0xe8)
		return true;
	for (u32 len = 2; len <= 7; len++) {
		u32 at = 64 - 8 * len;

		if ((u8)(word >> at) == 0xff &&
			uni_is_call_by((u8)(word >> (at + 8)),
				len > 2 ? (u8)(word >> ((at + 16) & 63)) : 0, len))
			return true;
	}
	return false;
}

/* Pages of data may be executable, too, so outside of the image it has to be behind a call. */
UNI_APART int uni_outer_code(const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 ret_addr)
{
	u64 hva, word = 0;

	if (g == NULL || s == NULL)
		return 0;
	if (uni_translate(g, &s->regs, ret_addr - 1, true) == 0)
		return 0;
	hva = uni_translate(g, &s->regs, ret_addr - 8, false);
	if (hva == 0)
		return 0;
	return uni_read_user(&word, sizeof(word), hva) == 0 && uni_ends_in_call(word);
}

/* Can there be a caller at ret_addr? False: the chain ends; s->stop says why. */
static __always_inline bool uni_check_pc(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 ret_addr, bool anywhere)
{
	s->stop = UNI_STOP_ROOT;
	if (ret_addr == 0)
		return false;
	s->stop = UNI_STOP_BADPC;
	if (uni_in_text(g, ret_addr - 1))
		return true;
	if (anywhere)
		return uni_translate(g, &s->regs, ret_addr - 1, true) != 0;
	return uni_outer_code(g, s, ret_addr) != 0;
}

static __always_inline void uni_hash_frame(struct uni_bpf_scratch *s, u64 pc)
{
	s->hash = (s->hash ^ pc) * UNI_HASH_MUL;
	s->hash ^= s->hash >> 29;
}

/* Adds the caller that ret_addr returns to; false: the chain ends; s->stop says why. */
static __always_inline bool uni_push_frame(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 ret_addr)
{
	u32 n = s->nr;

	s->exact = 0;
	s->stop = UNI_STOP_LIMIT;
	if (n >= UNI_CHAIN_DEPTH)
		return false;
	s->pc[uni_frame_place(n) & (UNI_BPF_FRAMES - 1)] = ret_addr;
	s->nr = n + 1;
	if (n < UNI_CHAIN_INNER)
		uni_hash_frame(s, ret_addr);
	return true;
}

/* The result of uni_cfi_frame(). */
enum { UNI_CFI_UNKNOWN, UNI_CFI_STEPPED, UNI_CFI_ENDED };

/* How far a row's CFA is known. */
enum { UNI_CFA_KNOWN, UNI_CFA_UNKNOWN, UNI_CFA_FAULT };

/* Puts the CFA into s->cfa. */
UNI_APART int uni_cfi_cfa(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, const struct uni_bpf_cfi *c)
{
	u32 i = (u32)c->cfa_of - UNI_BPF_CFI_SAVED;
	u64 cfa = s->sp;

	if (c->cfa_of == UNI_BPF_CFI_FP) {
		if (!s->has_fp)
			return UNI_CFA_UNKNOWN;
		cfa = s->fp;
	} else if (i < UNI_BPF_SAVED) {
		if ((s->has_saved >> i & 1) == 0)
			return UNI_CFA_UNKNOWN;
		cfa = s->saved[i];
	}
	cfa += (u64)(long long)c->cfa;
	for (i = 0; i < UNI_BPF_LOADS && i < c->nr_loads; i++) {
		if (!uni_stack_word(g, s, cfa, &cfa))
			return UNI_CFA_FAULT;
		cfa += (u64)(long long)c->load[i];
	}
	s->cfa = cfa;
	return UNI_CFA_KNOWN;
}

/* May the caller be on a lower stack? As in unwind/engine.c. */
static __always_inline bool uni_stack_falls(
	struct uni_bpf_scratch *s, const struct uni_bpf_cfi *c, u64 sp, u64 pc)
{
	if (c->cfa_of == UNI_BPF_CFI_SP && c->nr_loads == 0 && !c->interrupted)
		return false;
	if (sp == s->sp || s->falls == UNI_BPF_FALLS ||
		(s->falls != 0 && sp == s->fall_sp && pc == s->fall_pc))
		return false;
	if ((s->falls & (s->falls - 1)) == 0) {
		s->fall_sp = sp;
		s->fall_pc = pc;
	}
	s->falls++;
	return true;
}

/* The caller's values of registers that calls keep. */
UNI_APART void uni_cfi_saved(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, const struct uni_bpf_cfi *c)
{
	for (u32 i = 0; i < UNI_BPF_SAVED; i++) {
		u64 word = 0;

		if (c->saved_how[i] == UNI_BPF_CFI_SAME)
			continue;
		s->has_saved &= ~(1u << i);
		if (c->saved_how[i] == UNI_BPF_CFI_AT_CFA &&
			uni_stack_word(g, s, s->cfa + (u64)(long long)c->saved[i], &word)) {
			s->saved[i] = word;
			s->has_saved |= 1u << i;
		}
	}
}

/* Notes that the frame found last was interrupted. */
static __always_inline void uni_note_exact(struct uni_bpf_scratch *s)
{
	u32 n = s->nr_exact;

	s->exact = 1;
	if (n < sizeof(s->rec.exact) && s->nr <= 256)
		s->rec.exact[n] = (u8)(s->nr - 1);
	s->nr_exact = n + 1;
}

/*
 * One frame up by the image's unwind rows; pc is the last frame's. Not everything that rows can
 * express is known here. In that case frame pointers are used, as for code without rows.
 */
__noinline int uni_cfi_frame(const struct uni_bpf_guest *g, struct uni_bpf_scratch *s)
{
	u64 pc, off, cfa, ret_addr = 0, word = 0;
	const struct uni_bpf_text *t;
	const struct uni_bpf_cfi *c;
	int found;

	if (g == NULL || s == NULL || s->nr == 0)
		return UNI_CFI_UNKNOWN;
	pc = uni_frame_pc(s, s->nr - 1) - (s->exact == 0);
	off = pc - g->text_start;
	if (off >= g->text_size || !s->has_sp)
		return UNI_CFI_UNKNOWN;
	t = uni_text_at(s->guest, (u32)(off >> 3));
	c = t != NULL ? uni_cfi_at(s->guest, t->cfi[off & 7]) : NULL;
	if (c == NULL || c->cfa_of == UNI_BPF_CFI_NONE || c->ra_how == UNI_BPF_CFI_NONE)
		return UNI_CFI_UNKNOWN;
	s->callee = uni_function_at(g, t, off);
	s->stop = UNI_STOP_ROOT;
	if (c->ra_how == UNI_BPF_CFI_UNDEF)
		return UNI_CFI_ENDED;
	s->stop = UNI_STOP_FAULT;
	found = uni_cfi_cfa(g, s, c);
	if (found != UNI_CFA_KNOWN)
		return found == UNI_CFA_FAULT ? UNI_CFI_ENDED : UNI_CFI_UNKNOWN;
	cfa = s->cfa;
	if (s->nr == 1 && c->cfa_of == UNI_BPF_CFI_SP && c->nr_loads == 0 && c->ra == -8)
		cfa = uni_torn_slot(g, s, cfa - 8, s->callee) + 8;
	if (!uni_stack_word(g, s, cfa + (u64)(long long)c->ra, &ret_addr))
		return UNI_CFI_ENDED;
	s->cfa = word = cfa;
	if (c->sp_how == UNI_BPF_CFI_AT_CFA &&
		!uni_stack_word(g, s, cfa + (u64)(long long)c->sp, &word))
		return UNI_CFI_ENDED;
	if (!uni_check_pc(g, s, ret_addr, c->interrupted != 0)) {
		s->stop = ret_addr == 0 ? UNI_BPF_STOP_RA_0 : s->stop;
		return UNI_CFI_ENDED;
	}
	s->stop = UNI_STOP_LOOP;
	if ((word < s->sp || (word == s->sp && s->nr != 1)) &&
		!uni_stack_falls(s, c, word, ret_addr))
		return UNI_CFI_ENDED;
	if (!uni_push_frame(g, s, ret_addr))
		return UNI_CFI_ENDED;
	if (c->interrupted)
		uni_note_exact(s);
	s->sp = word;
	uni_cfi_saved(g, s, c);
	if (c->fp_how == UNI_BPF_CFI_SAME)
		return UNI_CFI_STEPPED;
	s->has_fp = c->fp_how == UNI_BPF_CFI_AT_CFA &&
		    uni_stack_word(g, s, s->cfa + (u64)(long long)c->fp, &word);
	s->fp = word;
	return UNI_CFI_STEPPED;
}

struct uni_frames {
	const struct uni_bpf_guest *g;
	struct uni_bpf_scratch *s;
	u32 keep; /* of the outermost frames */
};

/* One frame: by its row, or the caller's rbp, and the return address above it. 1: the end. */
static __always_inline u32 uni_frame_up(struct uni_frames *f)
{
	struct uni_bpf_scratch *s = f->s;
	u64 fp, caller_fp = 0, ret_addr = 0;

	/* The leaf's row was tried already. */
	if ((f->g->flags & UNI_BPF_CFI) != 0 && s->nr != 1) {
		int found = uni_cfi_frame(f->g, s);

		if (found != UNI_CFI_UNKNOWN)
			return found == UNI_CFI_ENDED;
	}
	fp = s->fp;
	s->stop = UNI_STOP_NOREGS;
	if (!s->has_fp)
		return 1;
	s->stop = UNI_BPF_STOP_FP_0;
	if (fp == 0)
		return 1;
	s->stop = UNI_STOP_BADPTR;
	if ((fp & 7) != 0 || fp > ~0ull - 16)
		return 1;
	s->stop = UNI_STOP_LOOP;
	if (s->has_sp && fp < s->sp)
		return 1;
	s->stop = UNI_STOP_FAULT;
	if (!uni_stack_pair(f->g, s, fp, &caller_fp, &ret_addr))
		return 1;
	if (!uni_check_pc(f->g, s, ret_addr, true) || !uni_push_frame(f->g, s, ret_addr))
		return 1;
	s->sp = fp + 16;
	s->has_sp = 1;
	s->fp = caller_fp;
	return 0;
}

static long uni_frame_step(u32 i, struct uni_frames *f)
{
	struct uni_bpf_scratch *s = f->s;
	u32 end = uni_frame_up(f);

	if (s->leap.how == UNI_LEAP_NONE) {
		s->leap.sp[(s->nr - 1) & (UNI_BPF_LAST - 1)] = s->exact || !s->has_sp ? 0 : s->sp;
		s->leap.since++;
		if (end || s->nr != s->leap.next)
			return end;
	}
	(void)uni_leap_step(s, end);
	return 0;
}

static long uni_outer_take(u32 i, struct uni_frames *f)
{
	struct uni_bpf_scratch *s = f->s;

	s->outer[i & (UNI_CHAIN_OUTER - 1)] = uni_frame_pc(s, s->nr - f->keep + i);
	return 0;
}

static long uni_outer_put(u32 i, struct uni_frames *f)
{
	struct uni_bpf_scratch *s = f->s;

	s->pc[(UNI_CHAIN_INNER + i) & (UNI_BPF_FRAMES - 1)] = s->outer[i & (UNI_CHAIN_OUTER - 1)];
	return 0;
}

static long uni_outer_hash(u32 i, struct uni_frames *f)
{
	uni_hash_frame(f->s, f->s->pc[(UNI_CHAIN_INNER + i) & (UNI_BPF_FRAMES - 1)]);
	return 0;
}

/* Keeps the innermost and the outermost frames if there are more than there is room for. */
static __always_inline void uni_chain_close(struct uni_frames *f)
{
	struct uni_bpf_scratch *s = f->s;

	if (s->nr > UNI_BPF_FRAMES) {
		f->keep = s->leap.since < UNI_CHAIN_OUTER ? s->leap.since : UNI_CHAIN_OUTER;
		bpf_loop(f->keep, uni_outer_take, f, 0);
		bpf_loop(f->keep, uni_outer_put, f, 0);
		s->nr = UNI_CHAIN_INNER + f->keep;
		s->gap = UNI_BPF_GAP;
	}
	if (s->nr > UNI_CHAIN_INNER)
		bpf_loop(s->nr - UNI_CHAIN_INNER, uni_outer_hash, f, 0);
}

/*
 * Puts the chain of the registers in s->regs into s->pc[], s->nr, s->stop and s->hash. 0: there is
 * no chain, as the pc is not known.
 */
__noinline int uni_chain(const struct uni_bpf_guest *g, struct uni_bpf_scratch *s)
{
	struct uni_frames f = { .g = g, .s = s };
	int found = UNI_CFI_UNKNOWN;
	u64 loc = 0, ret_addr = 0, fp = 0;

	if (g == NULL || s == NULL)
		return 0;
	s->nr = s->gap = s->windows = 0;
	s->stop = UNI_STOP_NOREGS;
	if ((s->regs.have & UNI_BPF_HAVE_PC) == 0)
		return 0;
	s->pc[0] = s->regs.pc;
	s->nr = 1;
	s->hash = (s->regs.pc + 1) * UNI_HASH_MUL;
	s->page_va = UNI_PAGE_NONE;
	s->window_len = 0;
	s->fp = s->regs.fp;
	s->sp = s->regs.sp;
	for (u32 i = 0; i < UNI_BPF_SAVED; i++)
		s->saved[i] = s->regs.saved[i];
	s->has_saved = (1u << UNI_BPF_SAVED) - 1;
	s->falls = 0;
	s->has_sp = (s->regs.have & UNI_BPF_HAVE_SP) != 0;
	s->has_fp = s->exact = 1;
	s->nr_exact = 0;
	s->leap.how = UNI_LEAP_NONE;
	s->leap.next = UNI_BPF_FRAMES + 1;
	s->leap.since = UNI_CHAIN_OUTER;
	s->rec.exact[0] = s->rec.exact[1] = s->rec.exact[2] = 0;
	if ((g->flags & UNI_BPF_CFI) != 0)
		found = uni_cfi_frame(g, s);
	if (found == UNI_CFI_ENDED)
		return 1;
	if (found == UNI_CFI_UNKNOWN && uni_leaf_find(g, s, &loc)) {
		s->stop = UNI_STOP_FAULT;
		if (!uni_stack_word(g, s, loc, &ret_addr))
			return 1;
		if (!uni_check_pc(g, s, ret_addr, true) || !uni_push_frame(g, s, ret_addr))
			return 1;
		s->sp = loc + 8;
		s->has_sp = 1;
		/* At a mov rbp, rsp that was already done: the frame is there. */
		if (uni_may_be_torn(g) && s->fp + 8 == loc && uni_stack_word(g, s, s->fp, &fp))
			s->fp = fp;
	}
	if (bpf_loop(UNI_BPF_STEPS, uni_frame_step, &f, 0) == UNI_BPF_STEPS) {
		if (s->leap.how != UNI_LEAP_NONE)
			s->nr = s->leap.base;
		s->stop = UNI_STOP_LIMIT;
	}
	uni_chain_close(&f);
	return 1;
}

#endif
