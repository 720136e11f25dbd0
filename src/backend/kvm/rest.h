/* SPDX-License-Identifier: BSD-2-Clause */
/* A guest that its VMM has paused (QMP's `stop`): read without its registers. */
#ifndef UNI_BACKEND_KVM_REST_H
#define UNI_BACKEND_KVM_REST_H

#include "backend/kvm/kvm.h"

/*
 * Do all threads of the VMM sleep outside KVM_RUN now? A guest that only waits for interrupts
 * sleeps inside it. *running_ret: no; but only one running thread was seen, which need not run a
 * vCPU.
 */
bool uni_kvm_looks_paused(int pid, bool *running_ret);
/* The same for so long that a pause is likely. */
bool uni_kvm_is_paused(int pid);

/* Finds page tables for k->rest, in k->gmem, by the image. */
int uni_kvm_rest(struct uni_kvm *k, const struct uni_attach_opts *opts, struct uni_err *err);
/* The same for every vCPU; -UNI_EAGAIN: the guest runs, or may run. */
int uni_kvm_rest_snap(const struct uni_kvm *k, const struct uni_vcpuset *set, struct uni_regs *ret);

#endif
