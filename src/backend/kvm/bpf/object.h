/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The programs in the kernel, loaded once for all guests of a run. They disappear with the last
 * file descriptor, so a profiler that is killed leaves nothing behind.
 */
#ifndef UNI_BACKEND_KVM_BPF_OBJECT_H
#define UNI_BACKEND_KVM_BPF_OBJECT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/kvm/bpf/abi.h"

struct bpf_object;
struct bpf_program;
struct uni_kvm_exit_progs;

/* The object file, made by the build. */
extern const uint64_t uni_bpf_object[];
extern const size_t uni_bpf_object_size;
/*
 * The same without casts (port.bpf.h). A kernel that does not have them is asked for its modules,
 * where they might be, and permits that question to CAP_SYS_ADMIN alone.
 */
extern const uint64_t uni_bpf_plain_object[];
extern const size_t uni_bpf_plain_object_size;

struct uni_kvm_bpf {
	struct bpf_object *obj;
	bool plain; /* without casts: exit programs have to be, too */
	struct bpf_program *event, *files;
	int texts_fd, cfis_fd, chains_fd, counts_fd, rings_fd;
	struct uni_bpf_guest *guest; /* the map itself: UNI_BPF_GUESTS */
	struct uni_bpf_vcpu *vcpu;   /* UNI_BPF_VCPUS */
	pthread_mutex_t lock;	     /* for the members below */
	bool guest_used[UNI_BPF_GUESTS];
	bool vcpu_used[UNI_BPF_VCPUS];
	struct uni_kvm_exit_progs *exits; /* exit_progs.c; NULL: not used yet */
	int stats_fd; /* the kernel counts the programs' cost while this is open; -1: not permitted
		       */
};

/* Loads the programs: this takes about 0.1 s, and needs CAP_BPF and CAP_PERFMON. */
int uni_kvm_bpf_load(struct uni_kvm_bpf **ret, struct uni_err *err);
/*
 * May they be used by a process without any capability, from now on? Makes all that needs them
 * (exits: for VM exits, too). Since Linux 5.19 it may be so.
 */
int uni_kvm_bpf_hand_over(struct uni_kvm_bpf *b, int pid, bool exits, struct uni_err *err);
void uni_kvm_bpf_unload(struct uni_kvm_bpf *b); /* NULL-safe */

/*
 * Opens and loads one of our object files. Calls set_up (may be NULL) in between. NULL: err says
 * why, with the verifier's last line if it refused a program. Also used for other objects than this
 * one.
 */
struct bpf_object *uni_kvm_bpf_open(const void *data, size_t size, const char *name,
	int (*set_up)(struct bpf_object *obj, void *ctx), void *ctx, struct uni_err *err);

/* A number for a guest or a vCPU; -1: all are in use. Thread-safe. */
int uni_kvm_bpf_take_guest(struct uni_kvm_bpf *b);
int uni_kvm_bpf_take_vcpu(struct uni_kvm_bpf *b);
/* Also clears its entry. */
void uni_kvm_bpf_put_guest(struct uni_kvm_bpf *b, int guest);
void uni_kvm_bpf_put_vcpu(struct uni_kvm_bpf *b, int vcpu);

/* CPU time and runs of the sampling program since it was loaded; 0, 0: not counted. */
void uni_kvm_bpf_cost(const struct uni_kvm_bpf *b, uint64_t *ns_ret, uint64_t *runs_ret);

#endif
