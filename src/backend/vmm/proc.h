/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the processes of this host that are VMMs, and the facts in their command lines. All of it
 * comes from /proc, and needs no rights beyond reading that.
 */
#ifndef UNI_BACKEND_VMM_PROC_H
#define UNI_BACKEND_VMM_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "backend/target.h"
#include "backend/vmm/cmdline.h"

/*
 * Fills *ret for the VMM process: vmm, accel, name, image, nr_vcpus, mem_bytes; unknown fields stay
 * empty or 0. `image` is a path that this process can open. A relative path is joined to the VMM's
 * working directory. If the VMM has another root, the path goes through /proc/PID/root.
 * Returns 0; -UNI_EGONE: no such process; -UNI_ENOENT: it is no VMM that we know, and has no KVM VM
 * (then only pid is set).
 */
int uni_vmm_describe(int pid, struct uni_target_info *ret);

/* Returns 0; or -UNI_EBUSY, and what to do: a signal or a debugger has stopped the process. */
int uni_vmm_check_runs(int pid, struct uni_err *err);

/*
 * Lists every visible VMM on this host, by rising pid. These are processes with a kvm-vm file, and
 * known VMM executables (a TCG guest has no such file). The caller frees *ret with free().
 */
int uni_vmm_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);

/* Reads only the command line, with its paths resolved as above. Returns 0 or -UNI_EGONE. */
/* Its words alone: no other file, and no socket. */
int uni_vmm_cmdline_words(int pid, struct uni_vmm_cmdline *ret);
int uni_vmm_cmdline_read(int pid, struct uni_vmm_cmdline *ret);

/* A thread's time on a CPU and its time of waiting for one, since its begin; false: the kernel does
 * not say. */
bool uni_vmm_thread_times(int pid, int tid, uint64_t *run_ns_ret, uint64_t *wait_ns_ret);

/* Converts the path of a socket, as the VMM names it, to one that this process can connect to. */
void uni_vmm_resolve_socket(int pid, char *path, size_t cap);

/* The process' name, cleaned; "" if it is gone. */
void uni_vmm_comm(int pid, char *out, size_t cap);

#endif
