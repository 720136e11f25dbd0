/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the programs that watch VM exits and their loader share, besides abi.h. */
#ifndef UNI_BACKEND_KVM_BPF_EXIT_ABI_H
#define UNI_BACKEND_KVM_BPF_EXIT_ABI_H

#include "backend/kvm/bpf/abi.h"

#define UNI_BPF_EXIT_SIZE_MASK 0x3f /* of uni_bpf_exit_key.how */
#define UNI_BPF_EXIT_USERSPACE 0x80

/* Exits that are counted together. */
struct uni_bpf_exit_key {
	u64 info;
	u32 chain; /* a number, or UNI_BPF_NONE */
	u32 reason;
	u32 number; /* of the vCPU: the target's */
	u8 isa;
	u8 what;   /* enum uni_exit_info, and enum uni_exit_access << 4 */
	u8 how;	   /* bytes of the access, and whether it went to the VMM */
	u8 bucket; /* of its length: uni_exit_bucket() */
};

/* Written by one vCPU's thread alone, hence not atomic. It only grows. */
struct uni_bpf_exit_sum {
	u64 exits;
	u64 host_ns, asleep_ns, stolen_ns;
};

/*
 * Where not every exit is looked at: what tells them apart without a look at the stack. Of each
 * kind the first is looked at and then one in so many; those between are taken to be like the one
 * before them. So their number is exact for each kind, that is, for each instruction that exits,
 * and a guest whose exits take turns cannot hide one kind behind another.
 */
struct uni_bpf_exit_kind {
	u64 pc, info;
	u32 reason;
	u32 number; /* of the vCPU: the target's */
	u8 isa, what;
	u8 pad[6];
};

struct uni_bpf_exit_last {
	struct uni_bpf_exit_key key; /* the one looked at last */
	struct uni_bpf_exit_sum sum; /* its times; exits: of those since then */
	u64 left;		     /* how many more are like it */
};

/* One vCPU, by the index that it has in "vcpus". */
struct uni_bpf_exit {
	u32 every;    /* loader: one exit in so many of a kind is looked at; 0: none */
	u32 by_entry; /* program: the trace point kvm_exit began it, so kvm_entry ends it */
	u64 seq;      /* program: exits begun */
	u64 lost;     /* program: exits not kept */
	/* Program: the exit under way. */
	u64 begin_ns;		  /* 0: there is none */
	u64 asleep_ns, stolen_ns; /* the vCPU's totals then */
	u64 looked;		  /* 0: it is one of those between */
	struct uni_bpf_exit_key key;
	struct uni_bpf_exit_kind kind;
	/* Program: an access that KVM has seen, and that may yet go to the VMM. */
	u64 seen_info, seen_pc;
	u64 seen_kind; /* enum uni_exit_info; 0: none */
	u64 pad[2];
};

#endif
