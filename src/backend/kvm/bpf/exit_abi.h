/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Shared by the programs that watch VM exits and their loader, in addition to abi.h. */
#ifndef UNI_BACKEND_KVM_BPF_EXIT_ABI_H
#define UNI_BACKEND_KVM_BPF_EXIT_ABI_H

#include "backend/kvm/bpf/abi.h"

#define UNI_BPF_EXIT_SIZE_MASK 0x3f /* in uni_bpf_exit_key.how */
#define UNI_BPF_EXIT_USERSPACE 0x80

/* Exits that are counted together. */
struct uni_bpf_exit_key {
	u64 info;
	u32 chain; /* a number, or UNI_BPF_NONE */
	u32 reason;
	u32 number; /* the target's number of the vCPU */
	u8 isa;
	u8 what;   /* enum uni_exit_info, and enum uni_exit_access << 4 */
	u8 how;	   /* bytes of the access, and whether the VMM handled it */
	u8 bucket; /* of its duration: uni_exit_bucket() */
};

/* Only one vCPU's thread writes it, so it is not atomic. It only grows. */
struct uni_bpf_exit_sum {
	u64 exits;
	u64 host_ns, asleep_ns, stolen_ns;
};

/*
 * Kinds of exits that are distinguished without reading the stack, for guests in which not every
 * exit is examined. In each kind, the first exit is examined, and then one in N. The exits in
 * between are taken to be like the one before them. So the count is exact for each kind, that is,
 * for each instruction that exits. If a guest's exits alternate, no kind hides behind another.
 */
struct uni_bpf_exit_kind {
	u64 pc, info;
	u32 reason;
	u32 number; /* the target's number of the vCPU */
	u8 isa, what;
	u8 pad[6];
};

struct uni_bpf_exit_last {
	struct uni_bpf_exit_key key; /* the last one that was examined */
	struct uni_bpf_exit_sum sum; /* its times; exits: number since then */
	u64 left;		     /* how many more are taken to be like it */
};

/* One vCPU, by its index in "vcpus". */
struct uni_bpf_exit {
	u32 every;    /* loader: one exit in so many of a kind is examined; 0: none */
	u32 by_entry; /* program: it began at the trace point kvm_exit, so kvm_entry ends it */
	u64 seq;      /* program: exits begun */
	u64 lost;     /* program: exits not kept */
	/* Program: the exit in progress. */
	u64 begin_ns;		  /* 0: there is none */
	u64 asleep_ns, stolen_ns; /* the vCPU's totals then */
	u64 looked;		  /* 0: it is one in between */
	struct uni_bpf_exit_key key;
	struct uni_bpf_exit_kind kind;
	/* Program: an access that KVM has seen, and that may still go to the VMM. */
	u64 seen_info, seen_pc;
	u64 seen_kind; /* enum uni_exit_info; 0: none */
	u64 pad[2];
};

#endif
