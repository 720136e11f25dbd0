/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VMMs of a few lines, each awkward in its own way, run in a forked child: real-mode guests, one
 * thread a vCPU.
 */
#ifndef UNI_TESTS_TINYVMM_H
#define UNI_TESTS_TINYVMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define TINY_VCPUS    4
#define TINY_RAM      (1u << 20)
#define TINY_CODE     0x1000u
#define TINY_PLUGGED  0x200000u /* GROWS: memory that comes later, with a frame of vCPU 1's */
#define TINY_COUNTERS 0x8000u	/* in guest memory: one 32-bit number a vCPU, 64 bytes apart */

enum tiny_mode {
	TINY_BRITTLE, /* the guest counts; the VMM gives up when KVM_RUN fails, even with EINTR */
	TINY_EXITS,   /* the guest leaves by OUT all the time */
	TINY_SLEEPS,  /* the guest halts; the VMM sleeps in epoll_wait() and gives up on EINTR */
	TINY_KICKED,  /* as BRITTLE, expects EINTR and gets a signal of its own all the time */
	TINY_SYNCS,   /* as BRITTLE, uses synchronized registers itself */
	TINY_GROWS,   /* as BRITTLE with one vCPU; when woken, plugs in memory and a second one */
	/*
	 * Keeps books of its time. vCPU 0: the guest counts, leaves by OUT, and the VMM works half
	 * as long as the guest did. Others: the guest counts and halts, the VMM sleeps twice as
	 * long.
	 */
	TINY_BURNS,
	/*
	 * The guest halts until `wake`, leaves a known number of times (TINY_OUTS, ...) and halts
	 * for good. The VMM works a while for each exit, and measures how long.
	 */
	TINY_TIMED,
	TINY_NR
};

/* The exits of TINY_TIMED's guest: port 0x80 a byte, port 0x84 four bytes, memory at MMIO. */
#define TINY_OUTS   5000u
#define TINY_OUTS4  500u
#define TINY_STORES 250u
#define TINY_MMIO   0xd0000010u

enum tiny_timed { TINY_T_OUT, TINY_T_OUT4, TINY_T_STORE, TINY_T_HALT, TINY_T_NR };

/* The exits of one kind: how many, and the time from KVM_RUN's return to the next KVM_RUN. */
struct tiny_time {
	atomic_ulong exits, host_ns; /* wall time */
	atomic_ulong cpu_ns;	     /* the thread's CPU time */
};

/* Shared by the VMM and the test. */
struct tiny_shared {
	atomic_int failed; /* errno, or -1, of what made the VMM give up */
	atomic_ulong sleeps, exits, kicks;
	atomic_bool wake; /* SLEEPS: let the guest run to its next halt; GROWS: now */
	struct tiny_books {
		atomic_int tid;
		atomic_ullong run_ns, vmm_ns; /* CPU time in KVM_RUN, and of the VMM */
		atomic_ulong rounds;	      /* of one and the other: charged at their ends */
	} books[TINY_VCPUS];		      /* BURNS */
	struct tiny_time timed[TINY_T_NR];    /* TIMED */
	atomic_ullong valid_regs; /* last seen in vCPU 0's kvm_run; BRITTLE never returns: SYNCS */
};

struct tiny {
	pid_t pid;
	enum tiny_mode mode;
	struct tiny_shared *shared;
	uint8_t *ram;	 /* the guest's, also mapped here to see it run */
	size_t ram_size; /* mapped: at least TINY_RAM */
	int ram_fd;	 /* -1: none */
};

/* The place of the guest's memory in the VMM. */
enum tiny_ram {
	TINY_ANON,
	TINY_MEMFD,
	TINY_HUGE,    /* a memfd of huge pages */
	TINY_REGIONS, /* two memory slots, elsewhere and in the other order: below and from
			 TINY_SPLIT on */
};
#define TINY_SPLIT 0x8000u
#define TINY_USER  65534 /* of a jailed one */

struct tiny_how {
	enum tiny_ram ram;
	bool jailed; /* as by Firecracker's jailer: a pid namespace, an empty root, another user */
};

/* False when this host cannot (no usable /dev/kvm). */
bool tiny_start(struct tiny *t, enum tiny_mode mode, unsigned nr_vcpus);
bool tiny_start_how(
	struct tiny *t, enum tiny_mode mode, unsigned nr_vcpus, const struct tiny_how *how);
/* Kills it, if it still lives. */
void tiny_end(struct tiny *t);

/* The guest's own program, as the image's code: 256 bytes at TINY_CODE. */
const uint8_t *tiny_code(enum tiny_mode mode);

/* Does vCPU i count on, within twenty seconds? A busy host lets it wait. */
bool tiny_runs(struct tiny *t, unsigned i);
uint32_t tiny_counter(const struct tiny *t, unsigned i);

#endif
