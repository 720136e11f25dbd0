/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can the sampler in the host's kernel run here? What counts is a trial: its programs are loaded
 * and an event is opened. The rest says why a trial failed and what grants it.
 */
#ifndef UNI_BACKEND_KVM_BPFCHECK_H
#define UNI_BACKEND_KVM_BPFCHECK_H

#include <stdint.h>

#include "base/err.h"
#include "backend/hostway.h"

/* Where the answers come from; tests make up their own. */
struct uni_kvm_bpf_host {
	const char *absent;	/* why this build has no sampler at all; NULL: it has */
	const char *root;	/* before /proc and /sys; "" for this host's */
	const char *exe;	/* our own path, for the line that grants; "" unknown */
	const char *release;	/* of the kernel: "6.1.0-18-amd64" */
	uint32_t uid;		/* effective */
	uint64_t memlock_bytes; /* RLIMIT_MEMLOCK */
	int prog_errno; /* of loading a perf_event program of two instructions; 0: it loaded */
	const char
		*refused; /* why the sampler's own were not loaded; "" they were; NULL: not tried */
	int event_errno;  /* of opening a cpu-clock event that counts the kernel, too */
};

/* Fills way: name, summary, facts, ok and advice. */
void uni_kvm_bpf_judge(const struct uni_kvm_bpf_host *host, struct uni_host_way *way_ret);

/* What came of loading all programs; an err without a code: nothing was refused. */
struct uni_kvm_bpf_trial {
	struct uni_err sampler, exits;
};

/* The same for this host, with trials made now: about 0.1 s of CPU time. */
void uni_kvm_bpf_way(struct uni_host_way *way_ret, struct uni_kvm_bpf_trial *trial_ret);

/*
 * 0, or -UNI_ENOTSUP (the kernel cannot) or -UNI_EPERM (we may not) with all that is missing.
 * Without a trial of the sampler's own programs: about 10 ms.
 */
int uni_kvm_bpf_check(struct uni_err *err);

#endif
