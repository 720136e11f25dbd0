/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VM exits of the sampled guests. Programs at trace points of KVM add up equal exits in the kernel,
 * and this reads the sums. It belongs to a struct uni_kvm_stream, and to the same thread.
 */
#ifndef UNI_BACKEND_KVM_BPF_EXITS_H
#define UNI_BACKEND_KVM_BPF_EXITS_H

#include "backend/kvm/bpf/stream.h"

/* On failure, the caller still calls uni_kvm_exits_destroy(). */
int uni_kvm_exits_start(struct uni_kvm_stream *s, struct uni_err *err);
/* Call it after the threads of vCPUs became known. */
void uni_kvm_exits_follow(struct uni_kvm_stream *s);
/* Delivers the exits since the last time; after the stop also exits that did not end. */
void uni_kvm_exits_read(struct uni_kvm_stream *s);
void uni_kvm_exits_stop(struct uni_kvm_stream *s); /* idempotent */
void uni_kvm_exits_stats(const struct uni_kvm_stream *s, struct uni_stream_stats *ret);
uint64_t uni_kvm_exits_of(const struct uni_kvm_stream *s, uint32_t vcpu); /* so far */
void uni_kvm_exits_destroy(struct uni_kvm_stream *s);

#endif
