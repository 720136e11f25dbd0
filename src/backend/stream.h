/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples and VM exits that the host's kernel makes of a running guest, without stopping it. A
 * backend with UNI_CAP_STREAM starts them, hands over what has gathered when it is asked, and
 * counts what was lost. All times are CLOCK_MONOTONIC, ns.
 */
#ifndef UNI_BACKEND_STREAM_H
#define UNI_BACKEND_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/regs.h"
#include "backend/exit_kind.h"

struct uni_stream_cfg {
	double frequency; /* samples a second of each vCPU thread's CPU time; 0: none */
	bool ordered;	  /* each sample with its time; false: counts of equal chains, cheaper */
	/* 0: no exits; N: one exit in N of each kind and vCPU is looked at, all are counted */
	uint32_t exits_every;
};

/* Call chains are borrowed for the duration of the call that delivers them. */
struct uni_stream_sample {
	uint64_t t_ns;	 /* when; of an aggregate: when it was read out */
	uint64_t weight; /* periods it stands for */
	uint32_t vcpu;
	uint8_t stop;  /* enum uni_stop */
	uint8_t state; /* enum uni_vcpu_state */
	bool vmm;      /* HALTED: its thread slept in the VMM, not in KVM */
	uint16_t nr;
	const uint64_t *pc;   /* leaf first */
	const uint8_t *flags; /* enum uni_frame_flags */
};

/*
 * Exits that are equal but for their times. The times are sums over all of them; one delivery holds
 * only exits of about the same length (within a fourth of it), so that a sum over their number
 * still tells long ones from short ones.
 */
struct uni_stream_exit {
	uint64_t t_ns;	    /* of the exit; of several: not later than the delivery */
	uint64_t weight;    /* exits it stands for */
	uint64_t host_ns;   /* until the guest was entered again */
	uint64_t asleep_ns; /* of that: the vCPU's thread slept (in a halt: idle time) */
	uint64_t stolen_ns; /* of that: it was ready, but the host ran something else */
	uint64_t info;
	uint32_t guest; /* of a session; a target leaves it 0 */
	uint32_t vcpu;
	uint32_t reason;   /* as the hardware or KVM numbers it */
	uint8_t isa;	   /* enum uni_exit_isa */
	uint8_t info_kind; /* enum uni_exit_info */
	uint8_t access;	   /* enum uni_exit_access */
	uint8_t size;	   /* of the access, bytes; 0 unknown */
	bool userspace;	   /* the VMM had to handle it */
	uint8_t stop;
	uint16_t nr;
	const uint64_t *pc;
	const uint8_t *flags;
};

/* A sample that is to be unwound by whoever gets it: registers, and what lay above the stack
 * pointer. */
struct uni_stream_raw {
	uint64_t t_ns, weight;
	uint32_t vcpu;
	struct uni_regs regs;
	const uint8_t *stack; /* borrowed during the call; from regs.sp on */
	size_t stack_size;
	/*
	 * Already followed by frame pointers, leaf first; nr 0: it is not. Then the stack is for
	 * the one step that may be missing in it, from the leaf; nothing else of the guest can be
	 * read.
	 */
	const uint64_t *pc;
	uint16_t nr;
	uint8_t stop;	 /* enum uni_stop, of that chain */
	uint64_t thread; /* what its guest calls the thread that ran; 0: none, or not known */
};

struct uni_stream_sink {
	void *ctx;
	void (*sample)(void *ctx, const struct uni_stream_sample *s);
	void (*exit)(void *ctx, const struct uni_stream_exit *e); /* NULL: not wanted */
	/* NULL: samples that are still to be unwound cannot be taken */
	void (*raw)(void *ctx, const struct uni_stream_raw *s);
};

/* Since stream_start(). */
struct uni_stream_stats {
	uint64_t begin_ns;	     /* nothing was counted before; 0: not told */
	uint64_t samples;	     /* delivered, by weight */
	uint64_t lost;		     /* made but not kept: ring or map full */
	uint64_t failed;	     /* no registers or no page tables */
	uint64_t exits, exits_lost;  /* delivered, by weight; not kept */
	uint64_t host_ns, host_runs; /* CPU time in the kernel's part, and how often it ran; 0: the
					kernel does not count it */
	uint32_t silent;   /* CPUs of such a guest whose timer has not called its sampler */
	uint64_t serve_ns; /* that a guest which samples itself spent to hand the samples over */
};

/* Where a vCPU's wall time went since stream_start(); the sum is the wall time. */
struct uni_vcpu_times {
	uint64_t guest_ns;  /* also KVM's part where the two cannot be told apart */
	uint64_t kvm_ns;    /* KVM worked for it */
	uint64_t vmm_ns;    /* its thread ran in the VMM */
	uint64_t idle_ns;   /* halted, or its thread slept in the VMM */
	uint64_t stolen_ns; /* ready to run, but the host ran something else */
	uint64_t exits;	    /* 0 if they are not counted */
	bool split;	    /* guest and kvm were told apart */
};

#endif
