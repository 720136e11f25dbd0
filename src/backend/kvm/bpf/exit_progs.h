/* SPDX-License-Identifier: BSD-2-Clause */
/* The programs at KVM's trace points: shared by all guests of a loaded sampler. */
#ifndef UNI_BACKEND_KVM_BPF_EXIT_PROGS_H
#define UNI_BACKEND_KVM_BPF_EXIT_PROGS_H

#include "backend/kvm/bpf/exit_abi.h"
#include "backend/kvm/bpf/object.h"

extern const uint64_t uni_bpf_exit_object[];
extern const size_t uni_bpf_exit_object_size;
extern const uint64_t uni_bpf_plain_exit_object[]; /* without casts, as in object.h */
extern const size_t uni_bpf_plain_exit_object_size;

#define UNI_KVM_EXIT_PROGS_MAX 8

struct bpf_link;

struct uni_kvm_exit_progs {
	struct bpf_object *obj;
	int by_thread_fd, sums_fd, lasts_fd;
	struct uni_bpf_exit *exit; /* the map itself: UNI_BPF_VCPUS */
	unsigned users;		   /* number of guests; attached while there are some */
	struct bpf_link *link[UNI_KVM_EXIT_PROGS_MAX];
};

/* Loads and attaches b->exits for one more user. Thread-safe. */
int uni_kvm_exit_progs_get(struct uni_kvm_bpf *b, struct uni_err *err);
void uni_kvm_exit_progs_put(struct uni_kvm_bpf *b);
void uni_kvm_exit_progs_unload(struct uni_kvm_exit_progs *p); /* NULL-safe */

#endif
