/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kvm target's ways to a guest, for doctor: by pausing it, by the sampler in the kernel, and to
 * its VM exits.
 */
#ifndef UNI_BACKEND_KVM_WAYS_H
#define UNI_BACKEND_KVM_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/target.h"

/* The source of the facts; tests make up their own. */
struct uni_kvm_pause_host {
	const char *root; /* prefix of /proc; "" for this host's */
	uint32_t uid;	  /* effective */
	bool privileged;  /* has CAP_SYS_PTRACE */
	bool withheld;	  /* nor can anybody here get it */
	bool inner;	  /* in a pid namespace of its own, whose processes /proc shows */
	bool asked;	  /* KVM could be asked, so sync_regs is known */
	int sync_regs;	  /* KVM_CAP_SYNC_REGS */
	int getfd_errno;  /* of pidfd_getfd() on ourselves */
};

/* Does the kernel have KVM, although a container may have no /dev/kvm? root is as above. */
bool uni_kvm_is_there(const char *root);

/* Adds facts to way. */
void uni_kvm_pause_facts(const struct uni_kvm_pause_host *host, struct uni_host_way *way);

/*
 * Fills way_ret with the needs of record --exits: the sampler, whose way is `bpf`, the trace points
 * of KVM, and its own programs. refused: why these were not loaded, or "". root is the prefix of
 * /sys; "" for this host's.
 */
void uni_kvm_exits_judge(const char *root, const struct uni_host_way *bpf, const char *refused,
	struct uni_host_way *way_ret);

/* With room for two, the programs that watch VM exits are not tried. */
uint32_t uni_kvm_host_ways(struct uni_host_way *ret, uint32_t cap);
int uni_kvm_choose(const struct uni_target_info *info, const struct uni_host_way *ways, uint32_t nr,
	char *why_ret, size_t cap);

#endif
