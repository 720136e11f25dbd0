/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can the sampler in the host's kernel run here? A trial decides: its programs are loaded and an
 * event is opened. The rest explains why a trial failed, and what would grant it.
 */
#ifndef UNI_BACKEND_KVM_BPFCHECK_H
#define UNI_BACKEND_KVM_BPFCHECK_H

#include <stdint.h>

#include "base/err.h"
#include "backend/hostway.h"

/* The source of the facts; tests make up their own. */
struct uni_kvm_bpf_host {
	const char *absent;	/* why this build has no sampler at all; NULL: it has one */
	const char *foreign;	/* why processes cannot be told by their numbers; NULL: they can */
	const char *root;	/* prefix of /proc and /sys; "" for this host's */
	const char *exe;	/* our own path, for the command that grants rights; "" unknown */
	const char *release;	/* the kernel's: "6.1.0-18-amd64" */
	uint32_t uid;		/* effective */
	uint64_t memlock_bytes; /* RLIMIT_MEMLOCK */
	int prog_errno; /* of loading a perf_event program of two instructions; 0: it was loaded */
	const char *refused; /* why the sampler's programs were refused; "": they were loaded; NULL:
				not tried */
	int event_errno;     /* of opening a cpu-clock event that also counts in the kernel */
};

/* Fills way: name, summary, facts, ok and advice. */
void uni_kvm_bpf_judge(const struct uni_kvm_bpf_host *host, struct uni_host_way *way_ret);

/*
 * The same for this host, with a trial made now. It takes about 0.05 s of CPU time, and as long
 * again for the programs that watch VM exits. exits_err says why those were refused; NULL: not
 * tried.
 */
void uni_kvm_bpf_way(struct uni_host_way *way_ret, struct uni_err *exits_err);

/*
 * Returns 0; -UNI_ENOTSUP: the kernel cannot; -UNI_EPERM: we may not. err has all that is missing.
 * It does not try the sampler's own programs: takes about 10 ms.
 */
int uni_kvm_bpf_check(struct uni_err *err);

/* Has this process the capabilities that programs need, and may not make perf events? */
bool uni_kvm_lacks_events(void);

#endif
