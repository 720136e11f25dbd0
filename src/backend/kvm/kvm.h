/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kvm target. If permitted, programs in the kernel make the samples. Otherwise, and for
 * snapshots, registers come from KVM's synchronized registers. Memory is copied from the VMM
 * process. No code is put into the VMM, and no system call is made in it. One and the same thread
 * calls snap() and release() (ptrace's rule). Another thread may call attach() and detach(), while
 * nothing is held.
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
	UNI_KVM_VIA_AUTO, /* the kernel side, if it works */
	UNI_KVM_VIA_BPF,  /* the kernel side, or fail */
	UNI_KVM_VIA_STOP, /* without the kernel side */
};

/* Time for the other vCPUs to stop, while some have stopped already. */
#define UNI_KVM_PATIENCE_NS (400 * UNI_NSEC_PER_USEC)

struct uni_kvm {
	struct uni_target base; /* first */
	int pid, pidfd;
	bool restart;	 /* for VMMs not known to expect EINTR, and those with one thread for all */
	bool keep_valid; /* ... or that may use synchronized registers itself */
	const struct uni_kvm_kernel_ops *side;
	struct uni_kvm_kernel *kernel; /* NULL: vCPUs must be stopped for samples */
	bool prepared;		       /* for stopping vCPUs */
	struct uni_err unprepared;     /* why it could not be prepared */
	bool rests; /* paused by its VMM: nothing is stopped, and nothing of it is known but */
	struct uni_regs rest; /* ... these registers, for every vCPU */
	enum uni_kvm_method method;
	uint64_t patience_ns; /* how long snap() waits for vCPUs to stop; 0: without limit */
	uint32_t nr;
	struct uni_kvm_vcpu *vcpu; /* nr; on pages of their own, like this struct */
	struct uni_hold **wait;	   /* nr, after the vCPUs: those that are asked to stop */
	size_t room;		   /* bytes for both */
	struct uni_kvm_watchdog watchdog;
	struct uni_kvm_late late;	    /* from the search for the vCPUs' threads */
	sigset_t old_signals;		    /* of the attaching thread */
	const struct uni_attach_opts *wish; /* while it is being attached; else NULL */
	struct uni_gmem *gmem;		    /* owned */
	struct uni_vmm_ram_info ram;
	struct uni_target_info info;
};

/* attach.c */
int uni_kvm_no_vm(int pid, struct uni_err *err); /* reports the error: that process is no VMM */
int uni_kvm_attach_pid(struct uni_kvm *k, const struct uni_attach_opts *opts, enum uni_kvm_via via,
	const char *qmp, struct uni_err *err);
/* Prepares the means to stop vCPUs, when a snapshot is requested after all. */
int uni_kvm_prepare(struct uni_kvm *k, struct uni_err *err);
void uni_kvm_count_left_off(struct uni_kvm *k, const struct uni_vmm_fds *fds);

/* write.c */
int uni_kvm_write_text(struct uni_target *t, struct uni_patch_job *job);

/* snap.c */
bool uni_kvm_is_prepared(struct uni_kvm *k); /* tries once */
int uni_kvm_snap(
	struct uni_target *t, const struct uni_vcpuset *set, struct uni_regs *ret, unsigned flags);
int uni_kvm_release(struct uni_target *t);
/*
 * Resumes the vCPUs. Those that were asked to stop, and have not stopped yet, go on after their
 * stop.
 */
void uni_kvm_let_all_go(struct uni_kvm *k);
bool uni_kvm_any_held(const struct uni_kvm *k);
bool uni_kvm_alive(struct uni_target *t);
bool uni_kvm_settled(struct uni_target *t);

#endif
