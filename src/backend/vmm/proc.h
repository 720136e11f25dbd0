/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes of this host are VMMs, and what their command lines say about the guest.
 * Everything here comes from /proc and needs no rights beyond reading it.
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
 * Fills *ret with what is known of the VMM process: vmm, accel, name, image, nr_vcpus, mem_bytes;
 * unknown parts stay empty or 0. `image` is a path that this process can open: a relative path is
 * joined to the VMM's working directory, and goes through /proc/PID/root when the VMM lives in
 * another root. 0; -UNI_EGONE no such process; -UNI_ENOENT the process is no VMM that we know and
 * holds no KVM VM (then only pid is set).
 */
int uni_vmm_describe(int pid, struct uni_target_info *ret);

/*
 * Every VMM on this host that can be seen, by rising pid: processes that hold a kvm-vm file, and
 * known VMM executables (a TCG guest has no such file). *ret is owned by the caller: free() it.
 */
int uni_vmm_list(struct uni_target_info **ret, size_t *nr_ret, struct uni_err *err);

/* The command line alone, its paths resolved as above. 0 or -UNI_EGONE. */
int uni_vmm_cmdline_read(int pid, struct uni_vmm_cmdline *ret);

/* The process' name, cleaned; "" when it is gone. */
void uni_vmm_comm(int pid, char *out, size_t cap);

#endif
