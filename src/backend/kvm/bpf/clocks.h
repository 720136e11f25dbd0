/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Was the guest's clock set back? KVM adds a number to the host's clock for the guest's, and the
 * VMM sets it whenever the guest goes on. After a mere pause, the clock goes on where it stood, so
 * it lost time in which the guest did not run. If it lost time in which the guest ran, a snapshot
 * was restored.
 *
 *                 snapshot        ran            restored, goes on
 *     ----------------|-------------x------------------|---------- host's clock
 *                     |<------ lost by the guest ----->|
 */
#ifndef UNI_BACKEND_KVM_BPF_CLOCKS_H
#define UNI_BACKEND_KVM_BPF_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/stream.h"

/* All zero: nothing was seen yet. */
struct uni_kvm_clock {
	uint64_t offset;
	uint64_t seen_ns; /* the last look; 0: none */
	uint64_t ran_ns;  /* the guest was in KVM_RUN then, or later; 0: not known */
	uint64_t samples; /* in KVM_RUN, until the last look */
};

/* The facts of one look. */
struct uni_kvm_clock_look {
	uint64_t offset;  /* struct uni_bpf_item_vm.clock_offset */
	uint64_t samples; /* of all vCPUs, made in KVM_RUN */
	bool halted;	  /* a vCPU sleeps in KVM_RUN */
	uint64_t now_ns;
};

/* Was it set back between the last look and this one? Then fills *ret. Pure. */
bool uni_kvm_clock_look(struct uni_kvm_clock *c, const struct uni_kvm_clock_look *look,
	struct uni_stream_back *ret);

#endif
