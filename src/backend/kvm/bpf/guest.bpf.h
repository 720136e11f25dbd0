/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A vCPU's registers in KVM's copies, and the guest's memory through its page tables.
 *
 * On SVM and software KVMs, arch.regs[] has all registers after each exit. On VMX, rip, rsp and the
 * control registers stay in the VMCS until somebody reads them; regs_avail tells which are there.
 * rip is there if perf requested the sample's address; rsp mostly is not.
 */
#ifndef UNI_BACKEND_KVM_BPF_GUEST_BPF_H
#define UNI_BACKEND_KVM_BPF_GUEST_BPF_H

#include "arch/stop.h"
#include "backend/kvm/bpf/port.bpf.h"
#include "backend/kvm/bpf/abi.h"
#include "backend/kvm/bpf/kernel.bpf.h"

/*
 * Words of the stack that are read at once. A copy of 512 bytes costs hardly more than one of 16,
 * and has about ten frames. This is also how far above rsp a function without a frame may have
 * moved it.
 */
#define UNI_WINDOW_WORDS 64
#define UNI_WINDOWS_MAX	 1024 /* loaded for one chain: a guest's stacks decide how many it takes */

/* Frames that are kept of the outer ones; calls from a recursive function to itself. */
#define UNI_BPF_LAST  (UNI_BPF_FRAMES - UNI_CHAIN_INNER)
#define UNI_BPF_ROUND 32 /* a power of two, as the other */

/* The registers of the frame that the walk has reached. */
struct uni_bpf_walk {
	u64 sp, fp, saved[UNI_BPF_SAVED], fall_sp, fall_pc;
	u32 falls, has_fp, has_saved, pad;
};

/* A recursion whose middle is left out (recursion.bpf.h). */
struct uni_bpf_leap {
	u64 sp[UNI_BPF_LAST];		/* of the last frames; 0: not known, or interrupted */
	u64 round_pc[UNI_BPF_ROUND];	/* of the frames of a round */
	u64 round_up[UNI_BPF_ROUND];	/* and so many bytes each is above the one before */
	struct uni_bpf_walk begin, end; /* of the first round */
	u64 bytes;			/* of a round */
	u64 before;			/* stack pointer of the frame before */
	u32 how, base, frames, at;	/* frames there were; of a round; of this one */
	u32 rounds, good, bad;		/* so far away: now; the same; not the same */
	u32 next;			/* number of frames at which to look for a recursion */
	u32 since;			/* frames since some were left out */
	u32 pad;
};

/* The working data of a program, too large for its stack. One for each CPU and kind of program. */
struct uni_bpf_scratch {
	struct uni_bpf_rec rec; /* with pc[]: a record */
	u64 pc[UNI_BPF_FRAMES];
	u64 outer[UNI_CHAIN_OUTER]; /* while the outermost frames are moved */
	u64 window[UNI_WINDOW_WORDS + 2];
	u64 window_va;	/* address of the words in window[] */
	u32 window_len; /* their number; 0: none */
	u32 pad;
	struct uni_bpf_regs regs;
	u64 page_va, page_hva; /* the page of the stack that was translated last */
	u64 fp, sp;	       /* of the next frame, with the two below */
	u64 saved[UNI_BPF_SAVED];
	u64 cfa;	      /* of the last frame, by its row */
	u64 fall_sp, fall_pc; /* see uni_stack_falls() */
	u64 hash;
	u32 nr;
	u32 gap;	    /* UNI_BPF_GAP or 0 */
	u32 windows;	    /* so often window[] was loaded for this chain */
	u32 stop;	    /* enum uni_stop */
	u32 guest;	    /* index */
	u32 has_sp, has_fp; /* these two are known */
	u32 has_saved;	    /* a bit for each of saved[] */
	u32 falls;	    /* so often a caller was on a lower stack */
	u32 exact;	    /* the last frame was interrupted: its pc is not a return address */
	u32 nr_exact;
	u32 found;  /* index in window[] of the word that the leaf's search found */
	u64 callee; /* start of the function that the word must return from */
	struct uni_bpf_chain_key key;
	struct uni_bpf_leap leap;
};

#define UNI_CR0_PG     (1ull << 31)
#define UNI_CR4_PAE    (1ull << 5)
#define UNI_CR4_LA57   (1ull << 12)
#define UNI_EFER_LMA   (1ull << 10)
#define UNI_EFER_NXE   (1ull << 11)
#define UNI_PT_ADDR    0x000ffffffffff000ull
#define UNI_PT_PRESENT 1ull
#define UNI_PT_LARGE   (1ull << 7)
#define UNI_PT_NX      (1ull << 63)
#define UNI_PAGE       4096ull
#define UNI_PAGE_NONE  1ull /* no page begins there */

/* Is KVM's copy of that control register valid? Old kernels keep all copies up to date. */
#define UNI_SYS_AVAIL(avail, name)                         \
	(!UNI_HAS_ENUM(enum kvm_reg, VCPU_EXREG_##name) || \
		((avail) >> UNI_ENUM(enum kvm_reg, VCPU_EXREG_##name) & 1) != 0)

static __always_inline void uni_regs_x86(const struct kvm_vcpu *v, struct uni_bpf_regs *r)
{
	u32 avail = ~0u, have = 0;
	unsigned long w = 0;

	if (UNI_HAS(v->arch.regs_avail))
		UNI_PEEK(avail, v, arch.regs_avail);
	UNI_PEEK(w, v, arch.regs[VCPU_REGS_RBP]);
	r->fp = w;
	UNI_PEEK(r->saved[0], v, arch.regs[VCPU_REGS_RBX]);
	UNI_PEEK(r->saved[1], v, arch.regs[VCPU_REGS_R12]);
	UNI_PEEK(r->saved[2], v, arch.regs[VCPU_REGS_R13]);
	UNI_PEEK(r->saved[3], v, arch.regs[VCPU_REGS_R14]);
	UNI_PEEK(r->saved[4], v, arch.regs[VCPU_REGS_R15]);
	if ((avail >> VCPU_REGS_RIP & 1) != 0) {
		UNI_PEEK(w, v, arch.regs[VCPU_REGS_RIP]);
		r->pc = w;
		have |= UNI_BPF_HAVE_PC;
	}
	if ((avail >> VCPU_REGS_RSP & 1) != 0) {
		UNI_PEEK(w, v, arch.regs[VCPU_REGS_RSP]);
		r->sp = w;
		have |= UNI_BPF_HAVE_SP;
	}
	UNI_PEEK(w, v, arch.cr0);
	r->cr0 = w;
	UNI_PEEK(w, v, arch.cr3);
	r->cr3 = w;
	UNI_PEEK(w, v, arch.cr4);
	r->cr4 = w;
	UNI_PEEK(r->efer, v, arch.efer);
	if (UNI_SYS_AVAIL(avail, CR0))
		have |= UNI_BPF_HAVE_CR0;
	if (UNI_SYS_AVAIL(avail, CR3))
		have |= UNI_BPF_HAVE_CR3;
	if (UNI_SYS_AVAIL(avail, CR4))
		have |= UNI_BPF_HAVE_CR4;
	r->have = have;
}

static __always_inline void uni_regs_arm64(const struct kvm_vcpu___arm64 *v, struct uni_bpf_regs *r)
{
	r->have = 0;
	if (UNI_CORE(r->pc, v, arch.ctxt.regs.pc) != 0)
		return;
	UNI_CORE(r->sp, v, arch.ctxt.regs.sp);
	UNI_CORE(r->fp, v, arch.ctxt.regs.regs[29]);
	UNI_CORE(r->lr, v, arch.ctxt.regs.regs[30]);
	r->have = UNI_BPF_HAVE_PC | UNI_BPF_HAVE_SP;
}

/* Reads all registers of the vCPU that are known without stopping it. */
static __always_inline void uni_regs_read(const struct kvm_vcpu *v, struct uni_bpf_regs *r)
{
	if (UNI_HAS(((struct kvm_vcpu___arm64 *)0)->arch.ctxt))
		uni_regs_arm64((const struct kvm_vcpu___arm64 *)v, r);
	else
		uni_regs_x86(v, r);
}

/* If KVM has no fresh copy of a control register, takes it from a sample made in another way. */
static __always_inline void uni_regs_complete(struct uni_bpf_regs *r, const struct uni_bpf_guest *g)
{
	u32 want = g->sys_have & ~r->have;

	if ((want & UNI_BPF_HAVE_CR0) != 0)
		r->cr0 = g->cr0;
	if ((want & UNI_BPF_HAVE_CR3) != 0)
		r->cr3 = g->cr3;
	if ((want & UNI_BPF_HAVE_CR4) != 0)
		r->cr4 = g->cr4;
}

/*
 * Converts time off the CPU that found no room to samples: returns the whole samples, including the
 * rest from the last time.
 */
static __always_inline u64 uni_lost_samples(
	const struct uni_bpf_guest *g, struct uni_bpf_vcpu *v, u64 ns)
{
	u64 n;

	if (g->period_ns == 0)
		return 0;
	v->lost_ns += ns;
	n = v->lost_ns / g->period_ns;
	v->lost_ns -= n * g->period_ns;
	return n;
}

struct uni_slot_search {
	const struct uni_bpf_guest *g;
	u64 gpa, hva;
};

static long uni_slot_step(u32 i, struct uni_slot_search *s)
{
	const struct uni_bpf_slot *slot = &s->g->slot[s->g->cur_slots & 1][i & (UNI_BPF_SLOTS - 1)];
	u64 off = s->gpa - slot->gpa;

	if (off >= slot->size)
		return 0;
	s->hva = slot->hva + off;
	return 1;
}

/* The HVA of a guest physical address; 0: none. Slots are whole pages; the largest comes first. */
static __always_inline u64 uni_gpa_to_hva(const struct uni_bpf_guest *g, u64 gpa)
{
	u32 cur = g->cur_slots & 1;
	const struct uni_bpf_slot *first = &g->slot[cur][0];
	struct uni_slot_search s = { .g = g, .gpa = gpa };

	if (gpa - first->gpa < first->size)
		return first->hva + (gpa - first->gpa);
	bpf_loop(g->nr_slots[cur] & (2 * UNI_BPF_SLOTS - 1), uni_slot_step, &s, 0);
	return s.hva;
}

/*
 * GVA to HVA through the guest's 4- or 5-level tables (SDM 4.5), or without paging. 0: not mapped;
 * reserved bits are set; no RAM; or (with exec) not executable. 32-bit guests have no call chains
 * of 64-bit words.
 */
__noinline u64 uni_translate(
	const struct uni_bpf_guest *g, const struct uni_bpf_regs *r, u64 va, bool exec)
{
	u64 table, entry, mask, hva;
	u32 shift;

	if (g == NULL || r == NULL)
		return 0;
	if ((r->cr0 & UNI_CR0_PG) == 0)
		return uni_gpa_to_hva(g, va);
	if ((r->cr4 & UNI_CR4_PAE) == 0 || (r->efer & UNI_EFER_LMA) == 0)
		return 0;
	shift = (r->cr4 & UNI_CR4_LA57) != 0 ? 48 : 39;
	mask = va >> (shift + 8); /* canonical: copies of the highest valid bit */
	if (mask != 0 && mask != ~0ull >> (shift + 8))
		return 0;
	table = r->cr3 & UNI_PT_ADDR;
	for (u32 i = 0; i < 5; i++) {
		hva = uni_gpa_to_hva(g, table + (va >> shift & 511) * 8);
		if (hva == 0 || uni_read_user(&entry, sizeof(entry), hva) != 0)
			return 0;
		if ((entry & UNI_PT_PRESENT) == 0)
			return 0;
		if ((entry & UNI_PT_NX) != 0 && (exec || (r->efer & UNI_EFER_NXE) == 0))
			return 0;
		if (shift == 12 || (entry & UNI_PT_LARGE) != 0) {
			mask = (1ull << shift) - 1;
			/*
			 * Bit 12 of a large leaf is PAT; the other bits up to its size are
			 * reserved.
			 */
			if (shift > 30 || (shift > 12 && (entry & mask & ~0x1fffull) != 0))
				return 0;
			return uni_gpa_to_hva(g, (entry & UNI_PT_ADDR & ~mask) | (va & mask));
		}
		table = entry & UNI_PT_ADDR;
		shift -= 9;
	}
	return 0;
}

/* Loads the stack from va on, up to its page's end, into window[]; 0: it is not mapped. */
__noinline int uni_window_load(const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 va)
{
	u64 page = va & ~(UNI_PAGE - 1);
	u32 size = (u32)(UNI_PAGE - (va & (UNI_PAGE - 1)));

	if (g == NULL || s == NULL)
		return 0;
	s->window_len = 0;
	if (s->windows++ >= UNI_WINDOWS_MAX)
		return 0;
	if (page != s->page_va) {
		s->page_va = UNI_PAGE_NONE;
		s->page_hva = uni_translate(g, &s->regs, page, false);
		if (s->page_hva == 0)
			return 0;
		s->page_va = page;
	}
	if (size >= UNI_WINDOW_WORDS * 8)
		size = UNI_WINDOW_WORDS * 8;
	UNI_OPAQUE(size);
	if (size > UNI_WINDOW_WORDS * 8)
		return 0;
	if (uni_read_user(s->window, size, s->page_hva + (va & (UNI_PAGE - 1))) != 0)
		return 0;
	s->window_va = va;
	s->window_len = size / 8;
	return 1;
}

/* The word of the stack at va; an unaligned word must not cross a page's end. */
static __always_inline bool uni_stack_word(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 va, u64 *ret)
{
	u64 at = (va - s->window_va) / 8;

	if (va < s->window_va || (va - s->window_va) % 8 != 0 || at >= s->window_len) {
		if (!uni_window_load(g, s, va) || s->window_len == 0)
			return false;
		at = 0;
	}
	*ret = s->window[at & (UNI_WINDOW_WORDS - 1)];
	return true;
}

/* Two words at a multiple of 8, which may be in two pages. */
static __always_inline bool uni_stack_pair(
	const struct uni_bpf_guest *g, struct uni_bpf_scratch *s, u64 va, u64 *first, u64 *second)
{
	u64 at = (va - s->window_va) / 8;

	if (va < s->window_va || (va - s->window_va) % 8 != 0 || at + 1 >= s->window_len) {
		if (!uni_window_load(g, s, va))
			return false;
		at = 0;
	}
	*first = s->window[at & (UNI_WINDOW_WORDS - 1)];
	if (at + 1 >= s->window_len)
		return uni_stack_word(g, s, va + 8, second);
	*second = s->window[(at & (UNI_WINDOW_WORDS - 1)) + 1];
	return true;
}

#endif
