/* SPDX-License-Identifier: BSD-2-Clause */
/* The open files of a process that matter here: KVM's, and those of hidden guests. */
#ifndef UNI_BACKEND_VMM_FDS_H
#define UNI_BACKEND_VMM_FDS_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/target.h"

struct uni_vmm_fds {
	int kvm_fd;		    /* its /dev/kvm; -1: none */
	uint32_t nr_vms;	    /* kvm-vm files */
	bool sev;		    /* has /dev/sev open */
	bool guest_memfd;	    /* has private guest memory */
	bool duplicate;		    /* two vCPUs with one number: more than one VM */
	uint32_t nr_vcpus;	    /* at most UNI_VCPU_MAX */
	uint32_t nr_vcpus_left_off; /* number of vCPUs beyond that */
	struct {
		uint32_t id; /* KVM's vCPU number, rising */
		int fd;	     /* in the VMM */
	} vcpu[UNI_VCPU_MAX];
};

/* Returns 0, -UNI_EGONE, or -UNI_EPERM (we may not read the list of open files). */
int uni_vmm_fds_read(int pid, struct uni_vmm_fds *ret);

/* N of "anon_inode:kvm-vcpu:N" (a link, or a mapping's name); false: it is none. */
bool uni_vmm_vcpu_of_link(const char *link, uint32_t *ret);

#endif
