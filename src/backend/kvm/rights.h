/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May this user look into a VMM's process? Both ways of the kvm target read its list of files and
 * its memory. That needs the right to trace it; the list of files also is a folder of the owner's.
 */
#ifndef UNI_BACKEND_KVM_RIGHTS_H
#define UNI_BACKEND_KVM_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The user who asks, and the process; tests make up their own. */
struct uni_kvm_rights {
	int pid;
	uint32_t mine, theirs; /* effective users */
	uint64_t caps;	       /* effective */
	bool withheld;	       /* nobody here can get CAP_SYS_PTRACE: a container's limit */
	char scope;	       /* kernel.yama.ptrace_scope; 0: there is no yama */
	bool files, trace;     /* whether reading files and tracing were found to be permitted */
};

/* Returns 0; -UNI_EPERM: err says which capability or sysctl is missing. */
int uni_kvm_rights_judge(const struct uni_kvm_rights *r, struct uni_err *err);

/* The same for this process and that one, which is neither stopped nor changed. -UNI_EGONE. */
int uni_kvm_rights_check(int pid, struct uni_err *err);

/* Advice for a user who lacks a capability: who is root already, or where it is withheld, needs
 * more than to become root. */
const char *uni_kvm_rights_advice(uint32_t uid, bool withheld);

/* Does this capability mask permit to trace everybody; and also to see their files? */
bool uni_kvm_rights_trace_all(uint64_t caps);
bool uni_kvm_rights_read_all(uint64_t caps);
uint64_t uni_kvm_rights_caps(void);   /* our own effective capabilities */
bool uni_kvm_rights_no_tracing(void); /* CAP_SYS_PTRACE is beyond our limit (bounding set) */

#endif
