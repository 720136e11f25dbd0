/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Synchronized registers of one vCPU. Once kvm_valid_regs requests it, KVM copies them into struct
 * kvm_run at each return of KVM_RUN. That word is written only after uni_kvm_allow() permitted it:
 * if the registers are protected, KVM_RUN would fail and the VMM would die. kvm_dirty_regs and
 * immediate_exit belong to the VMM, and are never written.
 *
 * To distinguish an old copy from a new one, rip in the copy is marked once, while only KVM uses
 * it. KVM only writes there, unless the VMM sets kvm_dirty_regs.
 */
#ifndef UNI_BACKEND_KVM_SYNC_H
#define UNI_BACKEND_KVM_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/kvm.h>

#include "base/err.h"

enum uni_kvm_method {
	UNI_KVM_AUTO,	 /* MAPPED if possible, else PROCMEM */
	UNI_KVM_MAPPED,	 /* kvm_run is mapped here, too: "sync" */
	UNI_KVM_PROCMEM, /* kvm_run is read in the VMM: "procmem" */
};

struct uni_kvm_sync {
	int pid;
	volatile struct kvm_run *run; /* NULL: PROCMEM */
	size_t run_size;
	uint64_t run_hva; /* in the VMM */
	uint64_t before;  /* kvm_valid_regs as it was before */
	bool unused;	  /* nobody has ever used synchronized registers of this vCPU */
	bool marked;	  /* rip was marked: another value is a new copy */
};

/* vcpu_fd and run_hva are the VMM's. Writes nothing yet. */
int uni_kvm_sync_open(struct uni_kvm_sync *s, int pid, int pidfd, int vcpu_fd, uint64_t run_hva,
	enum uni_kvm_method method, struct uni_err *err);
/* Requests the registers from KVM. vmm_never: this VMM is known not to use them itself. */
int uni_kvm_sync_start(struct uni_kvm_sync *s, bool vmm_never);
/*
 * Reads the registers of the last return of KVM_RUN. *fresh_ret: there certainly was a return since
 * start(); if false, only the caller may know. Returns 0; -UNI_EAGAIN: no return yet; -UNI_EGONE;
 * -UNI_EIO; or -UNI_ESTALE: the VMM took the request back. It is then renewed, and nothing is known
 * until the next return.
 */
int uni_kvm_sync_read(struct uni_kvm_sync *s, struct kvm_regs *regs_ret,
	struct kvm_sregs *sregs_ret, bool *fresh_ret);
/* Takes the request back. keep: the VMM may use the feature itself, so restores the old value. */
void uni_kvm_sync_close(struct uni_kvm_sync *s, bool keep);

#endif
