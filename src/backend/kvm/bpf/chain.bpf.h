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

#define UNI_HASH_MUL 0x9e3779b97f4a7c15ull

/* Can there be a caller at ret_addr? False: the chain ends; s->stop says why. */
static __always_inline bool uni_check_pc(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 ret_addr)
{
	s->stop = UNI_STOP_ROOT;
	if (ret_addr == 0)
		return false;
	s->stop = UNI_STOP_BADPC;
	return uni_in_text(g, ret_addr - 1) || uni_translate(g, &s->regs, ret_addr - 1, true) != 0;
}

/* Adds the caller that ret_addr returns to; false: the chain ends; s->stop says why. */
static __always_inline bool uni_push_frame(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 ret_addr)
{
	u32 n = s->nr;

	s->exact = 0;
	s->stop = UNI_STOP_LIMIT;
	if (n >= UNI_BPF_FRAMES)
		return false;
	s->pc[n & (UNI_BPF_FRAMES - 1)] = ret_addr;
	s->nr = n + 1;
	s->hash = (s->hash ^ ret_addr) * UNI_HASH_MUL;
	s->hash ^= s->hash >> 29;
	return true;
}

/* The result of uni_cfi_frame(). */
enum { UNI_CFI_UNKNOWN, UNI_CFI_STEPPED, UNI_CFI_ENDED };

/*
 * One frame up by the image's unwind rows; pc is the last frame's. Not everything that rows can
 * express is known here. In that case frame pointers are used, as for code without rows.
 */
__noinline int uni_cfi_frame(const struct uni_bpf_guest *g, struct uni_bpf_scratch *s)
{
	u64 pc, off, cfa, ret_addr = 0, fp = 0, sp;
	const struct uni_bpf_text *t;
	const struct uni_bpf_cfi *c;

	if (g == NULL || s == NULL || s->nr == 0)
		return UNI_CFI_UNKNOWN;
	pc = s->pc[(s->nr - 1) & (UNI_BPF_FRAMES - 1)] - (s->exact == 0);
	off = pc - g->text_start;
	if (off >= g->text_size || !s->has_sp)
		return UNI_CFI_UNKNOWN;
	t = uni_text_at(s->guest, (u32)(off >> 3));
	c = t != NULL ? uni_cfi_at(s->guest, t->cfi[off & 7]) : NULL;
	if (c == NULL || c->cfa_of == UNI_BPF_CFI_NONE || c->ra_how == UNI_BPF_CFI_NONE)
		return UNI_CFI_UNKNOWN;
	s->stop = UNI_STOP_ROOT;
	if (c->ra_how == UNI_BPF_CFI_UNDEF)
		return UNI_CFI_ENDED;
	if (c->cfa_of == UNI_BPF_CFI_FP && !s->has_fp)
		return UNI_CFI_UNKNOWN;
	cfa = (c->cfa_of == UNI_BPF_CFI_FP ? s->fp : s->sp) + (u64)(long long)c->cfa;
	if (s->nr == 1 && c->cfa_of == UNI_BPF_CFI_SP && c->ra == -8)
		cfa = uni_torn_slot(g, s, cfa - 8, uni_function_at(g, t, off)) + 8;
	s->stop = UNI_STOP_FAULT;
	if (!uni_stack_word(g, s, cfa + (u64)(long long)c->ra, &ret_addr))
		return UNI_CFI_ENDED;
	sp = cfa;
	if (c->sp_how == UNI_BPF_CFI_AT_CFA &&
		!uni_stack_word(g, s, cfa + (u64)(long long)c->sp, &sp))
		return UNI_CFI_ENDED;
	if (!uni_check_pc(g, s, ret_addr))
		return UNI_CFI_ENDED;
	s->stop = UNI_STOP_LOOP;
	if (sp < s->sp || (sp == s->sp && s->nr != 1))
		return UNI_CFI_ENDED;
	if (!uni_push_frame(g, s, ret_addr))
		return UNI_CFI_ENDED;
	if (c->interrupted) {
		u32 n = s->nr_exact;

		s->exact = 1;
		if (n < sizeof(s->rec.exact) && s->nr <= 256)
			s->rec.exact[n] = (u8)(s->nr - 1);
		s->nr_exact = n + 1;
	}
	s->sp = sp;
	if (c->fp_how == UNI_BPF_CFI_SAME)
		return UNI_CFI_STEPPED;
	s->has_fp = c->fp_how == UNI_BPF_CFI_AT_CFA &&
		    uni_stack_word(g, s, cfa + (u64)(long long)c->fp, &fp);
	s->fp = fp;
	return UNI_CFI_STEPPED;
}

struct uni_frames {
	const struct uni_bpf_guest *g;
	struct uni_bpf_scratch *s;
};

/* One frame: the caller's rbp, and the return address above it. */
static long uni_frame_step(u32 i, struct uni_frames *f)
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
	if (!uni_check_pc(f->g, s, ret_addr) || !uni_push_frame(f->g, s, ret_addr))
		return 1;
	s->sp = fp + 16;
	s->has_sp = 1;
	s->fp = caller_fp;
	return 0;
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
	s->nr = 0;
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
	s->has_sp = (s->regs.have & UNI_BPF_HAVE_SP) != 0;
	s->has_fp = s->exact = 1;
	s->nr_exact = 0;
	s->rec.exact[0] = s->rec.exact[1] = s->rec.exact[2] = 0;
	if ((g->flags & UNI_BPF_CFI) != 0)
		found = uni_cfi_frame(g, s);
	if (found == UNI_CFI_ENDED)
		return 1;
	if (found == UNI_CFI_UNKNOWN && uni_leaf_find(g, s, &loc)) {
		s->stop = UNI_STOP_FAULT;
		if (!uni_stack_word(g, s, loc, &ret_addr))
			return 1;
		if (!uni_check_pc(g, s, ret_addr) || !uni_push_frame(g, s, ret_addr))
			return 1;
		s->sp = loc + 8;
		s->has_sp = 1;
		/* At a mov rbp, rsp that was already done: the frame is there. */
		if (uni_may_be_torn(g) && s->fp + 8 == loc && uni_stack_word(g, s, s->fp, &fp))
			s->fp = fp;
	}
	bpf_loop(UNI_BPF_FRAMES + 1, uni_frame_step, &f, 0);
	return 1;
}

#endif
