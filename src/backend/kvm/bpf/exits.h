/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VM exits of the guests that are sampled: programs at trace points of KVM, which add up equal
 * exits in the kernel, and what is read from there. Beside a struct uni_kvm_stream, by the same
 * thread.
 */
#ifndef UNI_BACKEND_KVM_BPF_EXITS_H
#define UNI_BACKEND_KVM_BPF_EXITS_H

#include "backend/kvm/bpf/stream.h"

/* On failure uni_kvm_exits_destroy() is still the caller's. */
int uni_kvm_exits_start(struct uni_kvm_stream *s, struct uni_err *err);
/* After the threads of vCPUs became known. */
void uni_kvm_exits_follow(struct uni_kvm_stream *s);
/* What has gathered since the last time; after the stop also exits that did not end. */
void uni_kvm_exits_read(struct uni_kvm_stream *s);
void uni_kvm_exits_stop(struct uni_kvm_stream *s); /* idempotent */
void uni_kvm_exits_stats(const struct uni_kvm_stream *s, struct uni_stream_stats *ret);
uint64_t uni_kvm_exits_of(const struct uni_kvm_stream *s, uint32_t vcpu); /* so far */
void uni_kvm_exits_destroy(struct uni_kvm_stream *s);

#endif
