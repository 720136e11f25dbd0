/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples and VM exits of a running guest, made by the host's kernel without stopping the guest. A
 * backend with UNI_CAP_STREAM starts them, delivers those that have gathered, and counts the lost
 * ones. All times are CLOCK_MONOTONIC, ns.
 */
#ifndef UNI_BACKEND_STREAM_H
#define UNI_BACKEND_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/regs.h"
#include "backend/exit_kind.h"

struct uni_stream_cfg {
	double frequency; /* samples per second of each vCPU thread's CPU time; 0: none */
	bool ordered;	  /* each sample with its time; false: only counts of equal chains, which is
			     cheaper */
	/* For a target that holds its vCPUs: with real-time priority; for at most this share of the
	 * time. */
	bool hurry;
	double max_duty;
	/* 0: no exits; N: one exit in N of each kind and vCPU is recorded; all are counted */
	uint32_t exits_every;
};

/* Call chains are borrowed until the call that delivers them returns. */
struct uni_stream_sample {
	uint64_t t_ns;	 /* time of the sample; for an aggregate: when it was read out */
	uint64_t weight; /* number of periods that it stands for */
	uint32_t vcpu;
	uint8_t stop;  /* enum uni_stop */
	uint8_t state; /* enum uni_vcpu_state */
	bool vmm;      /* HALTED: its thread slept in the VMM, not in KVM */
	uint16_t nr;
	const uint64_t *pc;   /* leaf first */
	const uint8_t *flags; /* enum uni_frame_flags */
};

/*
 * Exits that are equal except for their times. The times are sums over all of them. The exits of
 * one delivery have about the same length (within a fourth of it). So sum / number still separates
 * long ones from short ones.
 */
struct uni_stream_exit {
	uint64_t t_ns;	    /* time of the exit; for several: not later than the delivery */
	uint64_t weight;    /* number of exits that it stands for */
	uint64_t host_ns;   /* time until the guest was entered again */
	uint64_t asleep_ns; /* part of host_ns in which the vCPU's thread slept (in a halt: idle
			       time) */
	uint64_t stolen_ns; /* part of host_ns in which it was ready, but the host ran something
			       else */
	uint64_t info;
	uint32_t guest; /* set by the session; a target leaves it 0 */
	uint32_t vcpu;
	uint32_t reason;   /* in the numbering of the hardware or of KVM */
	uint8_t isa;	   /* enum uni_exit_isa */
	uint8_t info_kind; /* enum uni_exit_info */
	uint8_t access;	   /* enum uni_exit_access */
	uint8_t size;	   /* size of the access in bytes; 0: unknown */
	bool userspace;	   /* the VMM had to handle the exit */
	uint8_t stop;
	uint16_t nr;
	const uint64_t *pc;
	const uint8_t *flags;
};

/*
 * A sample that the receiver unwinds: registers, and a copy of the stack above the stack pointer.
 */
struct uni_stream_raw {
	uint64_t t_ns, weight;
	uint32_t vcpu;
	struct uni_regs regs;
	const uint8_t *stack; /* borrowed during the call; starts at regs.sp */
	size_t stack_size;
	const uint8_t *other; /* a copy of another stack, from other_sp on, likewise */
	size_t other_size;
	uint64_t other_sp;
	bool alone; /* nothing but these copies can be read of the guest */
	/*
	 * The chain by frame pointers, leaf first; nr 0: there is none. With a chain, the stack
	 * only serves for the one step that may be missing in it, from the leaf.
	 */
	const uint64_t *pc;
	uint16_t nr;
	uint8_t stop;	 /* enum uni_stop of that chain */
	uint64_t thread; /* the guest's address of the thread that ran; 0: none, or not known */
	/* Gets the bytes of the stack that the chain needed; may be NULL. */
	uint64_t *depth_ret;
	/*
	 * NULL: the guest runs. Otherwise it is held, and all of its memory is of this moment. It
	 * is called when the chain is known, so that the guest can go on.
	 */
	void (*unwound)(void *ctx);
	void *unwound_ctx;
	/* A process that ran in the kernel: the kernel's frames, leaf first (UNI_FRAME_KERNEL). */
	const uint64_t *kernel;
	uint16_t nr_kernel;
};

struct uni_stream_sink {
	void *ctx;
	void (*sample)(void *ctx, const struct uni_stream_sample *s);
	void (*exit)(void *ctx, const struct uni_stream_exit *e); /* NULL: not wanted */
	/* NULL: the receiver cannot unwind samples */
	void (*raw)(void *ctx, const struct uni_stream_raw *s);
	/* The guest was stopped for so long; NULL: not wanted */
	void (*pause)(void *ctx, uint64_t ns);
};

/* The guest's clock was set back at some moment in between: its VMM restored a snapshot. */
struct uni_stream_back {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
	uint64_t back_ns;	   /* by about so much */
};

/* Counts since stream_start(). */
struct uni_stream_stats {
	uint64_t begin_ns; /* nothing was counted before; 0: not known */
	uint64_t samples;  /* delivered, by weight */
	uint64_t lost;	   /* made but not kept: the ring or map was full */
	uint64_t failed;   /* no registers or no page tables */
	uint64_t callers;  /* stops that found who called the kernel, where it may not be sampled */
	uint64_t exits, exits_lost; /* delivered, by weight; number of those not kept */
	uint32_t turn_samples; /* it wants to be read after so many samples of a vCPU; 0: at any
				  time */
	uint64_t host_ns, host_runs; /* CPU time and runs of the kernel's part; 0: the kernel does
					not count them */
	uint32_t silent;   /* CPUs of a guest that samples itself whose timer has not called the
			      sampler */
	uint64_t serve_ns; /* time that a guest which samples itself spent on delivering the samples
			    */
};

/* How a vCPU spent its wall time since stream_start(); the sum is the wall time. */
struct uni_vcpu_times {
	uint64_t guest_ns;     /* includes KVM's part if the two cannot be separated */
	uint64_t kvm_ns;       /* KVM worked for it */
	uint64_t vmm_ns;       /* its thread ran in the VMM */
	uint64_t unsampled_ns; /* on a CPU, but no sample tells in which of the three */
	uint64_t idle_ns;      /* halted, or its thread slept in the VMM */
	uint64_t stolen_ns;    /* ready to run, but the host ran something else */
	uint64_t exits;	       /* 0 if they are not counted */
	bool split;	       /* guest and kvm were separated */
};

#endif
