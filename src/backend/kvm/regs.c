/* SPDX-License-Identifier: BSD-2-Clause */
#include "backend/kvm/regs.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "backend/kvm/bpf/scan.h"

/* struct kvm_regs has its own order (rax rbx rcx rdx ...), DWARF has rax rdx rcx rbx. */
static const struct {
	uint16_t offset;
	uint8_t dwarf;
} order[] = {
	{ offsetof(struct kvm_regs, rax), UNI_X86_RAX },
	{ offsetof(struct kvm_regs, rbx), UNI_X86_RBX },
	{ offsetof(struct kvm_regs, rcx), UNI_X86_RCX },
	{ offsetof(struct kvm_regs, rdx), UNI_X86_RDX },
	{ offsetof(struct kvm_regs, rsi), UNI_X86_RSI },
	{ offsetof(struct kvm_regs, rdi), UNI_X86_RDI },
	{ offsetof(struct kvm_regs, rsp), UNI_X86_RSP },
	{ offsetof(struct kvm_regs, rbp), UNI_X86_RBP },
	{ offsetof(struct kvm_regs, r8), UNI_X86_R8 },
	{ offsetof(struct kvm_regs, r9), UNI_X86_R9 },
	{ offsetof(struct kvm_regs, r10), UNI_X86_R10 },
	{ offsetof(struct kvm_regs, r11), UNI_X86_R11 },
	{ offsetof(struct kvm_regs, r12), UNI_X86_R12 },
	{ offsetof(struct kvm_regs, r13), UNI_X86_R13 },
	{ offsetof(struct kvm_regs, r14), UNI_X86_R14 },
	{ offsetof(struct kvm_regs, r15), UNI_X86_R15 },
	{ offsetof(struct kvm_regs, rip), UNI_X86_RIP },
};

void uni_kvm_regs_convert(
	const struct kvm_regs *regs, const struct kvm_sregs *sregs, struct uni_regs *ret)
{
	for (size_t i = 0; i < uni_array_len(order); i++) {
		uint64_t v;

		memcpy(&v, (const uint8_t *)regs + order[i].offset, sizeof(v));
		uni_regs_set(ret, order[i].dwarf, v);
	}
	ret->pc = regs->rip;
	ret->sp = regs->rsp;
	ret->pc_valid = true;
	ret->sp_valid = true;
	uni_regs_set_sys(ret, UNI_X86_CR0, sregs->cr0);
	uni_regs_set_sys(ret, UNI_X86_CR3, sregs->cr3);
	uni_regs_set_sys(ret, UNI_X86_CR4, sregs->cr4);
	uni_regs_set_sys(ret, UNI_X86_EFER, sregs->efer);
	uni_regs_set_sys(ret, UNI_X86_RFLAGS, regs->rflags);
	uni_regs_set_sys(ret, UNI_X86_CS, sregs->cs.selector);
	uni_regs_set_sys(ret, UNI_X86_FS_BASE, sregs->fs.base);
	uni_regs_set_sys(ret, UNI_X86_GS_BASE, sregs->gs.base);
}

void uni_kvm_scan_regs(const struct uni_bpf_regs *r, struct uni_regs *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->state = UNI_VCPU_UNKNOWN;
	if ((r->have & UNI_BPF_HAVE_PC) == 0)
		return;
	ret->state = UNI_VCPU_RUNNING;
	ret->pc = r->pc;
	ret->pc_valid = true;
	uni_regs_set(ret, UNI_X86_RIP, r->pc);
	uni_regs_set(ret, UNI_X86_RBP, r->fp);
	ret->sp_valid = (r->have & UNI_BPF_HAVE_SP) != 0;
	ret->sp = ret->sp_valid ? r->sp : 0;
	if (ret->sp_valid)
		uni_regs_set(ret, UNI_X86_RSP, r->sp);
	if ((r->have & UNI_BPF_HAVE_CR0) != 0)
		uni_regs_set_sys(ret, UNI_X86_CR0, r->cr0);
	if ((r->have & UNI_BPF_HAVE_CR3) != 0)
		uni_regs_set_sys(ret, UNI_X86_CR3, r->cr3);
	if ((r->have & UNI_BPF_HAVE_CR4) != 0)
		uni_regs_set_sys(ret, UNI_X86_CR4, r->cr4);
	uni_regs_set_sys(ret, UNI_X86_EFER, r->efer);
}
