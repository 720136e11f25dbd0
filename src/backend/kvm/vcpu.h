/* SPDX-License-Identifier: BSD-2-Clause */
/* The vCPUs of a VMM: KVM's file, the mapping of kvm_run, and the thread that runs the vCPU. */
#ifndef UNI_BACKEND_KVM_VCPU_H
#define UNI_BACKEND_KVM_VCPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/kvm/hold.h"
#include "backend/kvm/sync.h"
#include "backend/target.h"
#include "backend/vmm/fds.h"

/* The state of a thread, from /proc/PID/task/TID/syscall. */
enum uni_kvm_doing {
	UNI_DOING_RUNNING, /* on a CPU or ready to be */
	UNI_DOING_IN_RUN,  /* asleep in KVM_RUN: the guest waits for an interrupt */
	UNI_DOING_ELSE,	   /* asleep in the VMM: must not be woken */
	UNI_DOING_GONE,
	UNI_DOING_DENIED, /* we may not read it */
};

struct uni_kvm_vcpu {
	uint32_t id;	/* KVM's number */
	int fd;		/* in the VMM */
	int syscall_fd; /* /proc/PID/task/TID/syscall; it stays with that thread, even if the number
			   is reused */
	int stat_fd;	/* /proc/PID/task/TID/stat */
	int schedstat_fd;     /* /proc/PID/task/TID/schedstat; -1: the kernel has none */
	struct uni_hold hold; /* hold.tid 0: the thread is not known, or has ended */
	struct uni_kvm_sync sync;
	uint8_t doing; /* enum uni_kvm_doing, at the last request to stop */
	bool synced;   /* sync is open */
	bool ended;    /* its thread was known, and has ended */
	bool primed;   /* KVM_RUN has returned since the registers were requested */
};

/* data: the file's text. Sets *fd_ret for IN_RUN. */
enum uni_kvm_doing uni_kvm_doing_parse(const void *data, size_t size, int *fd_ret);

/*
 * Has a thread that seems to sleep been woken already? "syscall" takes it for asleep until it has
 * got on a CPU's queue; so it does with a vCPU that we have just let go.
 */
bool uni_kvm_is_awake(int stat_fd);
bool uni_kvm_is_awake_parse(const void *data, size_t size);
/* Reads the file. One small system call, no allocation. */
enum uni_kvm_doing uni_kvm_doing(int syscall_fd, int *fd_ret);

/*
 * How long the thread has waited for a host CPU in its life, ns; 0: not known. It grows when the
 * thread gets a CPU. A small system call, no allocation.
 */
uint64_t uni_kvm_run_delay(int schedstat_fd);
/* data: the file's text, "on-CPU ns, waiting ns, slices". Returns 0 if it is no such text. */
uint64_t uni_kvm_run_delay_parse(const void *data, size_t size);

/* Both: also how long it had a host CPU, ns, at the last tick. False: not known. */
bool uni_kvm_times(int schedstat_fd, uint64_t *on_ret, uint64_t *ready_ret);

/* The vCPU of a thread with this name, as VMMs name them; false: the name does not say. */
bool uni_kvm_vcpu_of_comm(const char *comm, uint32_t *ret);

/* Is that thread of the VMM one of KVM's own? Its apparent system call is that of its creator. */
bool uni_kvm_is_worker(int pid, int tid);

#define UNI_KVM_LATE_MAX 16

/*
 * Threads that were examined and could not be let go yet: their stop is late, or their end is not
 * collected. If we forgot them, they would stop for nobody, or keep the VMM a zombie as long as we
 * live.
 */
struct uni_kvm_late {
	struct uni_hold hold[UNI_KVM_LATE_MAX];
	uint32_t nr;
};

/* Lets go of those that are ready by now; true: none is left. */
bool uni_kvm_late_end(struct uni_kvm_late *late);

/*
 * Finds the thread of each of nr vCPUs. Threads that sleep outside KVM_RUN are not touched. Busy
 * threads are stopped for an instant to see their system call. Returns 0 when at least one was
 * found. The caller ends *late, also after an error. wish: its over() ends the search; may be NULL.
 */
int uni_kvm_find_threads(int pid, struct uni_kvm_vcpu *v, uint32_t nr, struct uni_kvm_late *late,
	const struct uni_attach_opts *wish, struct uni_err *err);

/*
 * Does another process trace one of the vCPUs' threads, for longer than another uniscope would?
 * Returns 0 or -UNI_EBUSY.
 */
int uni_kvm_traced(int pid, const struct uni_kvm_vcpu *v, uint32_t nr, struct uni_err *err);
/*
 * Have all vCPUs left KVM, and their threads sleep? So they do when a guest has died and its VMM
 * lives on. Returns 0 or -UNI_EBUSY.
 */
int uni_kvm_left(int pid, const struct uni_kvm_vcpu *v, uint32_t nr, struct uni_err *err);

#endif
