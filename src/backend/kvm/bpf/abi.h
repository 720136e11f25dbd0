/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Shared by the programs in the kernel and their loader: values of maps, and records. Two compilers
 * compile it. So it has only fixed-width types, and no padding in what the kernel copies out.
 *
 * Each guest has maps of its own (inner maps of the arrays "texts", "cfis", "chains", ...), so that
 * guests do not lose each other's samples. A call chain is stored once. Its first sample puts it
 * into the ring as UNI_BPF_CHAIN with a number; later samples have only the number.
 */
#ifndef UNI_BACKEND_KVM_BPF_ABI_H
#define UNI_BACKEND_KVM_BPF_ABI_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#define UNI_BPF_GUESTS 64      /* of one loaded object */
#define UNI_BPF_VCPUS  2048    /* of all its guests together */
#define UNI_BPF_SLOTS  64      /* of a guest, after neighbours were joined */
#define UNI_BPF_FRAMES 512     /* of a chain; a power of two */
#define UNI_BPF_GAP    0x8000u /* in a number of frames: some are left out (arch/stop.h) */
#define UNI_BPF_NONE   0xffffffffu

/* Counters of a chain, and states in records. Below 7 they are enum uni_vcpu_state. */
#define UNI_BPF_STATES	 8
#define UNI_BPF_GUEST	 0 /* UNI_VCPU_RUNNING */
#define UNI_BPF_HALTED	 1 /* UNI_VCPU_HALTED; counts ns */
#define UNI_BPF_KVM	 4 /* UNI_VCPU_KVM */
#define UNI_BPF_VMM	 5 /* UNI_VCPU_VMM */
#define UNI_BPF_STOLEN	 6 /* UNI_VCPU_STOLEN; counts ns */
#define UNI_BPF_VMM_IDLE 7 /* asleep, but not in KVM_RUN; counts ns */

/* An event's cookie is the index of the vCPU, and this if its thread leaves the CPU. */
#define UNI_BPF_LEAVES (1u << 31)

/* struct uni_bpf_guest.flags */
#define UNI_BPF_ORDERED (1u << 0) /* a record for each sample; else it is only counted */
#define UNI_BPF_SPLIT	(1u << 1) /* this KVM says when a sample hit the guest */
#define UNI_BPF_CFI	(1u << 2) /* the image has no frame pointers: unwind by "cfis" */

/* struct uni_bpf_guest.sys_have and struct uni_bpf_regs.have */
#define UNI_BPF_HAVE_PC	 (1u << 0)
#define UNI_BPF_HAVE_SP	 (1u << 1)
#define UNI_BPF_HAVE_CR0 (1u << 2)
#define UNI_BPF_HAVE_CR3 (1u << 3)
#define UNI_BPF_HAVE_CR4 (1u << 4)

/* x86: rbx, r12, r13, r14, r15 keep their values in calls. */
#define UNI_BPF_SAVED 5

struct uni_bpf_regs {
	u64 pc, sp, fp;
	u64 saved[UNI_BPF_SAVED];
	u64 lr; /* arm64 */
	u64 cr0, cr3, cr4, efer;
	u32 have;
	u32 pad;
};

struct uni_bpf_slot {
	u64 gpa, size, hva;
};

/* One guest. The loader writes it, but for the fields that are marked. */
struct uni_bpf_guest {
	u64 kvm;		   /* struct kvm * */
	u64 generation;		   /* of its memory slots, when they were read */
	u64 text_start, text_size; /* hull of the image's code; 0: no image */
	u64 cr0, cr3, cr4, efer;   /* by another way, where the kernel's copy may be stale */
	u64 period_ns;		   /* of samples */
	u64 lost;		   /* program: samples that found no room */
	u64 failed;		   /* program: no registers */
	u64 runs;		   /* program: number of its runs */
	u64 clock_off; /* program: minimum of CLOCK_MONOTONIC minus the scheduler's clock */
	u32 tgid;
	u32 flags;
	u32 online; /* number of vCPUs at the last look */
	u32 sys_have;
	u32 nr_slots[2];
	u32 cur_slots; /* which of the two is in use */
	u32 changed;   /* program: memory or vCPUs have changed */
	u32 nr_chains; /* program: numbers given to chains */
	u32 max_chains;
	struct uni_bpf_slot slot[2][UNI_BPF_SLOTS];
};

/* One vCPU. */
struct uni_bpf_vcpu {
	u64 vcpu;      /* struct kvm_vcpu *; 0: none */
	u32 id;	       /* KVM's number */
	u32 guest;     /* index */
	u32 number;    /* the target's */
	u32 out_state; /* program: why it is off the CPU: UNI_BPF_HALTED, ... */
	/*
	 * Program: since when it has been off the CPU; 0: it is on a CPU, or the time was settled.
	 */
	u64 out_clock; /* scheduler's clock; 1: not known, take out_ns */
	u64 out_ns;    /* CLOCK_MONOTONIC */
	u64 out_delay; /* how long it had waited for a CPU in its life, at that time */
	u64 out_chain; /* number of its chain then, or UNI_BPF_NONE */
	u64 lost_ns;   /* time off the CPU that found no room, less than a period */
	/* Program: totals, ns. */
	u64 idle_ns, vmm_idle_ns, stolen_ns;
	u64 samples[UNI_BPF_STATES];
};

#define UNI_BPF_LOADS 2

/* The rule for a caller's registers, in an image without frame pointers; see arch/cfi.h. */
struct uni_bpf_cfi {
	int cfa, ra, fp, sp; /* CFA is so far above a register; others are saved above CFA */
	int saved[UNI_BPF_SAVED];
	int load[UNI_BPF_LOADS]; /* so far above the word that is loaded from there instead */
	u8 cfa_of;		 /* enum uni_bpf_cfi_how: SP, FP, SAVED, ..., or NONE */
	u8 nr_loads;
	u8 ra_how;		     /* AT_CFA, UNDEF, or NONE */
	u8 fp_how;		     /* SAME, AT_CFA, or NONE: it is lost */
	u8 sp_how;		     /* AT_CFA, or NONE: it is CFA itself */
	u8 interrupted;		     /* the caller was interrupted: its pc is exact */
	u8 saved_how[UNI_BPF_SAVED]; /* SAME, AT_CFA, or NONE */
	u8 pad;
};

enum uni_bpf_cfi_how {
	UNI_BPF_CFI_NONE, /* not known, or not expressible here: use frame pointers */
	UNI_BPF_CFI_SP,
	UNI_BPF_CFI_FP,
	UNI_BPF_CFI_SAME,
	UNI_BPF_CFI_AT_CFA,
	UNI_BPF_CFI_UNDEF, /* there is no caller */
	UNI_BPF_CFI_SAVED, /* and so on: of saved[] */
};

/* 8 bytes of the image's code, and the facts about them; see arch/leaf.h for the rules. */
struct uni_bpf_text {
	u64 code;
	u16 cfi[8]; /* for each byte of code, its index in the guest's "cfis"; 0: NONE */
	u64 rule;   /* one byte for each byte of code */
	u32 func;   /* start of the function that has the first byte, from text_start */
	u32 next;   /* start of a function that begins in the middle; 0: none */
};

struct uni_bpf_chain_key {
	u64 hash;
	u32 vcpu;
	u16 nr;
	u8 stop;
	u8 pad;
};

enum uni_bpf_rec_type {
	UNI_BPF_CHAIN = 1, /* defines a number; pc[] follows */
	UNI_BPF_SAMPLE,	   /* of a chain with a number */
	UNI_BPF_INLINE,	   /* a sample with its own pc[], as there are too many chains */
	UNI_BPF_OFF,	   /* was off the CPU: struct uni_bpf_off follows; t_ns is its begin */
};

/* In addition to enum uni_stop: rbp is 0. The loader knows whether these are the root. */
#define UNI_BPF_STOP_FP_0 255
#define UNI_BPF_STOP_RA_0 254 /* the return address is 0, by rows */

struct uni_bpf_rec {
	u64 t_ns;
	u32 number; /* of the vCPU */
	u32 chain;
	u16 nr;
	u8 type, stop, state;
	u8 exact[3]; /* indexes in pc[] of frames that were interrupted; 0: none */
};

struct uni_bpf_off {
	u64 idle_ns, stolen_ns;
};

/*
 * The output of the iterator over a VMM's files: the head, and the part of the union that `kind`
 * selects. It must be short: the buffer has to take all of a VM's slots.
 */
enum uni_bpf_item_kind { UNI_BPF_ITEM_VM = 1, UNI_BPF_ITEM_SLOT, UNI_BPF_ITEM_VCPU };
#define UNI_BPF_ITEM_SIZE(part) (16 + sizeof(((struct uni_bpf_item *)0)->part))

struct uni_bpf_item_vm {
	u64 generation;
	u64 clock_offset; /* KVM adds it to the host's clock for the guest's; 0: not known */
	u32 online, tgid;
	u32 vm_type;
	u8 has_private, has_protected; /* its memory, its registers */
};

struct uni_bpf_item_slot {
	u64 gpa, size, hva;
	u32 flags;
};

struct uni_bpf_item {
	u32 kind;
	u32 id; /* of the slot or vCPU */
	u64 kvm;
	union {
		struct uni_bpf_item_vm vm;
		struct uni_bpf_item_slot slot;
		struct {
			u64 vcpu;     /* struct kvm_vcpu * */
			u32 tid;      /* in the pid namespace of the reader; 0: none */
			u32 host_tid; /* in the host's, as programs see it */
			u32 protected_regs;
			u64 now_ns, clock; /* its run queue's clock, which may be a little old */
			u64 arrival, queued, delay, exec_ns;
			u32 on_cpu, on_rq;
			struct uni_bpf_regs regs;
		} vcpu;
	};
};

#endif
