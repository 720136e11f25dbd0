/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The reason of an exit, from the facts of the CPU and of KVM. Arithmetic only. It is compiled for
 * the kernel and for unit tests, which define the integer types (abi.h does).
 */
#ifndef UNI_BACKEND_KVM_BPF_EXIT_WHAT_BPF_H
#define UNI_BACKEND_KVM_BPF_EXIT_WHAT_BPF_H

#include "backend/exit_kind.h"

struct uni_exit_what {
	u64 info;
	u32 reason;
	u8 isa, info_kind, access, size; /* enums of backend/exit_kind.h */
};

/* Values of isa in the trace point kvm_exit; other values are other vendors' (PVM). */
#define UNI_KVM_ISA_VMX 1
#define UNI_KVM_ISA_SVM 2

/* The KVM_EXIT_* that are examined. */
#define UNI_KVM_EXIT_IO	       2
#define UNI_KVM_EXIT_HYPERCALL 3
#define UNI_KVM_EXIT_HLT       5
#define UNI_KVM_EXIT_MMIO      6
#define UNI_KVM_EXIT_INTR      10
#define UNI_KVM_EXIT_RDMSR     29
#define UNI_KVM_EXIT_WRMSR     30

/*
 * The part of struct kvm_run with the reason; it is a user-space interface, so it does not change.
 */
struct uni_kvm_run {
	u8 head[8];
	u32 exit_reason;
	u8 state[20];
	union {
		struct {
			u8 direction; /* 1: out */
			u8 size;
			u16 port;
		} io;
		struct {
			u64 gpa;
			u8 data[8];
			u32 len;
			u8 is_write;
		} mmio;
		struct {
			u64 nr;
		} hypercall;
		struct {
			u8 error[8];
			u32 reason, index;
		} msr;
	};
};

_Static_assert(__builtin_offsetof(struct uni_kvm_run, io) == 32, "user-space interface");

static inline __attribute__((always_inline)) void uni_exit_set(
	struct uni_exit_what *w, u8 kind, u64 info, u8 access, u64 size)
{
	w->info_kind = kind;
	w->info = info;
	w->access = access;
	w->size = (u8)size;
}

/* SDM volume 3, table 28-5 (exit qualification of I/O instructions). */
static inline __attribute__((always_inline)) void uni_exit_vmx(
	struct uni_exit_what *w, u64 qualification, u64 rax, u64 rcx)
{
	switch (w->reason) {
	case 30:
		uni_exit_set(w, UNI_EXIT_INFO_PORT, qualification >> 16 & 0xffff,
			(qualification & 8) != 0 ? UNI_EXIT_ACCESS_READ : UNI_EXIT_ACCESS_WRITE,
			(qualification & 7) + 1);
		break;
	case 18:
		uni_exit_set(w, UNI_EXIT_INFO_HYPERCALL, rax, UNI_EXIT_ACCESS_NONE, 0);
		break;
	case 31:
		uni_exit_set(w, UNI_EXIT_INFO_MSR, rcx & 0xffffffff, UNI_EXIT_ACCESS_READ, 8);
		break;
	case 32:
		uni_exit_set(w, UNI_EXIT_INFO_MSR, rcx & 0xffffffff, UNI_EXIT_ACCESS_WRITE, 8);
		break;
	default:
		break;
	}
}

/* APM volume 2, 15.10.2 (EXITINFO1 of IOIO), 15.11 (MSR), 15.25.6 (nested page faults). */
static inline __attribute__((always_inline)) void uni_exit_svm(
	struct uni_exit_what *w, u64 info1, u64 info2, u64 rax, u64 rcx)
{
	switch (w->reason) {
	case 0x7b:
		uni_exit_set(w, UNI_EXIT_INFO_PORT, info1 >> 16 & 0xffff,
			(info1 & 1) != 0 ? UNI_EXIT_ACCESS_READ : UNI_EXIT_ACCESS_WRITE,
			info1 >> 4 & 7);
		break;
	case 0x7c:
		uni_exit_set(w, UNI_EXIT_INFO_MSR, rcx & 0xffffffff,
			(info1 & 1) != 0 ? UNI_EXIT_ACCESS_WRITE : UNI_EXIT_ACCESS_READ, 8);
		break;
	case 0x81:
		uni_exit_set(w, UNI_EXIT_INFO_HYPERCALL, rax, UNI_EXIT_ACCESS_NONE, 0);
		break;
	case 0x400:
		/* KVM marks pages of devices by reserved bits. */
		if ((info1 & 8) != 0)
			uni_exit_set(w, UNI_EXIT_INFO_MMIO, info2,
				(info1 & 2) != 0 ? UNI_EXIT_ACCESS_WRITE : UNI_EXIT_ACCESS_READ, 0);
		break;
	default:
		break;
	}
}

/* From the record of the trace point kvm_exit, and two registers. */
static inline __attribute__((always_inline)) void uni_exit_by_cpu(
	struct uni_exit_what *w, u32 isa, u32 reason, u64 info1, u64 info2, u64 rax, u64 rcx)
{
	uni_exit_set(w, UNI_EXIT_INFO_NONE, 0, UNI_EXIT_ACCESS_NONE, 0);
	w->reason = reason;
	if (isa == UNI_KVM_ISA_VMX) {
		w->isa = UNI_EXIT_ISA_VMX;
		w->reason = reason & 0xffff; /* flags above the basic reason */
		uni_exit_vmx(w, info1, rax, rcx);
	} else if (isa == UNI_KVM_ISA_SVM) {
		w->isa = UNI_EXIT_ISA_SVM;
		uni_exit_svm(w, info1, info2, rax, rcx);
	} else {
		/*
		 * Other vendors have their own numbers; the reason is known only if the exit goes
		 * to the VMM.
		 */
		w->isa = UNI_EXIT_ISA_KVM;
		w->reason = 0;
	}
}

/* From what the VMM is told. error: KVM_RUN's, 0 or negative. */
static inline __attribute__((always_inline)) void uni_exit_by_run(
	struct uni_exit_what *w, const struct uni_kvm_run *run, u32 reason, int error)
{
	uni_exit_set(w, UNI_EXIT_INFO_NONE, 0, UNI_EXIT_ACCESS_NONE, 0);
	w->isa = UNI_EXIT_ISA_KVM;
	w->reason = reason;
	if (error < 0) {
		w->reason = error == -4 ? UNI_KVM_EXIT_INTR : 0; /* EINTR */
		return;
	}
	switch (reason) {
	case UNI_KVM_EXIT_IO:
		uni_exit_set(w, UNI_EXIT_INFO_PORT, run->io.port,
			run->io.direction != 0 ? UNI_EXIT_ACCESS_WRITE : UNI_EXIT_ACCESS_READ,
			run->io.size);
		break;
	case UNI_KVM_EXIT_MMIO:
		uni_exit_set(w, UNI_EXIT_INFO_MMIO, run->mmio.gpa,
			run->mmio.is_write != 0 ? UNI_EXIT_ACCESS_WRITE : UNI_EXIT_ACCESS_READ,
			run->mmio.len);
		break;
	case UNI_KVM_EXIT_HYPERCALL:
		uni_exit_set(
			w, UNI_EXIT_INFO_HYPERCALL, run->hypercall.nr, UNI_EXIT_ACCESS_NONE, 0);
		break;
	case UNI_KVM_EXIT_RDMSR:
		uni_exit_set(w, UNI_EXIT_INFO_MSR, run->msr.index, UNI_EXIT_ACCESS_READ, 8);
		break;
	case UNI_KVM_EXIT_WRMSR:
		uni_exit_set(w, UNI_EXIT_INFO_MSR, run->msr.index, UNI_EXIT_ACCESS_WRITE, 8);
		break;
	default:
		break;
	}
}

/* Four classes for each octave: times in one class differ by less than a fourth. */
static inline __attribute__((always_inline)) u8 uni_exit_bucket(u64 ns)
{
	u32 log2 = 0;

	if (ns < 4)
		return (u8)ns;
	if (ns >> 32 != 0)
		log2 += 32;
	if (ns >> (log2 + 16) != 0)
		log2 += 16;
	if (ns >> (log2 + 8) != 0)
		log2 += 8;
	if (ns >> (log2 + 4) != 0)
		log2 += 4;
	if (ns >> (log2 + 2) != 0)
		log2 += 2;
	if (ns >> (log2 + 1) != 0)
		log2 += 1;
	return (u8)(log2 << 2 | (ns >> (log2 - 2) & 3));
}

#endif
