/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kvm target: samples made by programs in the kernel where that is permitted, else (and for
 * snapshots) registers by KVM's synchronized registers; memory of the VMM process by copying. No
 * code is put into the VMM and no system call is made in it.
 *
 * snap() and release() are called by one and the same thread (ptrace's rule); attach() and detach()
 * may be another's while nothing is held.
 */
#ifndef UNI_BACKEND_KVM_KVM_H
#define UNI_BACKEND_KVM_KVM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/kvm/kernel.h"
#include "backend/kvm/vcpu.h"
#include "backend/kvm/watchdog.h"
#include "backend/target.h"
#include "backend/vmm/cmdline.h"
#include "backend/vmm/ram.h"

enum uni_kvm_via {
	UNI_KVM_VIA_AUTO, /* the kernel side if it can be had */
	UNI_KVM_VIA_BPF,  /* it or nothing */
	UNI_KVM_VIA_STOP, /* without it */
};

/* For the others to stop, while some vCPUs stand already. */
#define UNI_KVM_PATIENCE_NS (400 * UNI_NSEC_PER_USEC)

struct uni_kvm {
	struct uni_target base; /* first */
	int pid, pidfd;
	bool restart;	 /* VMMs not known to expect EINTR, and those that do all in one thread */
	bool keep_valid; /* ... or that may use synchronized registers itself */
	const struct uni_kvm_kernel_ops *side;
	struct uni_kvm_kernel *kernel; /* NULL: vCPUs have to be stopped for samples */
	bool prepared;		       /* for stopping vCPUs */
	struct uni_err unprepared;     /* why not, after it was tried */
	bool rests; /* paused by its VMM: nothing is stopped, nothing of it is known but */
	struct uni_regs rest; /* ... these, of every vCPU */
	enum uni_kvm_method method;
	uint64_t patience_ns; /* how long snap() waits for vCPUs to stop; 0: for as long as it takes
			       */
	uint32_t nr;
	struct uni_kvm_vcpu *vcpu; /* nr; pages of their own, as this */
	struct uni_hold **wait;	   /* nr, behind them: for those that are asked to stop */
	size_t room;		   /* bytes of both */
	struct uni_kvm_watchdog watchdog;
	struct uni_kvm_late late; /* from looking for the vCPUs' threads */
	sigset_t old_signals;	  /* of the attaching thread */
	struct uni_gmem *gmem;	  /* owned */
	struct uni_vmm_ram_info ram;
	struct uni_target_info info;
};

/* attach.c */
int uni_kvm_no_vm(int pid, struct uni_err *err); /* an error: that process is no VMM */
int uni_kvm_attach_pid(struct uni_kvm *k, const struct uni_attach_opts *opts, enum uni_kvm_via via,
	const char *qmp, struct uni_err *err);
/* Makes ready what stops vCPUs, once a snapshot is asked for after all. */
int uni_kvm_prepare(struct uni_kvm *k, struct uni_err *err);
void uni_kvm_count_left_off(struct uni_kvm *k, const struct uni_vmm_fds *fds);

/* write.c */
int uni_kvm_write_text(struct uni_target *t, struct uni_patch_job *job);

/* snap.c */
bool uni_kvm_is_prepared(struct uni_kvm *k); /* tries once */
int uni_kvm_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags);
int uni_kvm_release(struct uni_target *t);
/* The vCPUs go on; and those that were asked to stop and have not yet, once they did. */
void uni_kvm_let_all_go(struct uni_kvm *k);
bool uni_kvm_any_held(const struct uni_kvm *k);
bool uni_kvm_alive(struct uni_target *t);

#endif
