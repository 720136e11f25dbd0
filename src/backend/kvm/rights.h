/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May this user look into a VMM's process? Both ways of the kvm target read its list of files and
 * its memory. That is the right to trace it, and the list is besides a folder of its owner's.
 */
#ifndef UNI_BACKEND_KVM_RIGHTS_H
#define UNI_BACKEND_KVM_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Who asks, and for what; tests make up their own. */
struct uni_kvm_rights {
	int pid;
	uint32_t mine, theirs; /* effective users */
	uint64_t caps;	       /* effective */
	char scope;	       /* kernel.yama.ptrace_scope; 0: there is no yama */
	bool files, trace;     /* what it was found to permit */
};

/* 0; -UNI_EPERM and which capability or sysctl is missing. */
int uni_kvm_rights_judge(const struct uni_kvm_rights *r, struct uni_err *err);

/* The same of this process and that one, which is neither stopped nor changed. -UNI_EGONE. */
int uni_kvm_rights_check(int pid, struct uni_err *err);

/* What a user without a capability can do about it: root of a container cannot become root. */
const char *uni_kvm_rights_advice(uint32_t uid);

/* Of a capability mask: may it trace everybody; and also see their files? */
bool uni_kvm_rights_trace_all(uint64_t caps);
bool uni_kvm_rights_read_all(uint64_t caps);
uint64_t uni_kvm_rights_caps(void); /* our own effective ones */

#endif
