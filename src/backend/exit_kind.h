/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Numbers that identify VM exits. Programs for the kernel include this file, so it includes
 * nothing.
 */
#ifndef UNI_BACKEND_EXIT_KIND_H
#define UNI_BACKEND_EXIT_KIND_H

/* The meaning of an exit reason's number. */
enum uni_exit_isa {
	UNI_EXIT_ISA_KVM, /* KVM_EXIT_* of its user interface */
	UNI_EXIT_ISA_VMX, /* SDM volume 3, appendix C; basic reason, without the flags above bit 15
			   */
	UNI_EXIT_ISA_SVM, /* APM volume 2, appendix C */
	UNI_EXIT_ISA_ARM, /* exception class of ESR_EL2 */
	UNI_EXIT_ISA_NR
};

/* The meaning of uni_stream_exit.info. */
enum uni_exit_info {
	UNI_EXIT_INFO_NONE,
	UNI_EXIT_INFO_PORT,	 /* I/O port */
	UNI_EXIT_INFO_MMIO,	 /* GPA */
	UNI_EXIT_INFO_HYPERCALL, /* its number */
	UNI_EXIT_INFO_MSR,
	UNI_EXIT_INFO_NR
};

enum uni_exit_access {
	UNI_EXIT_ACCESS_NONE, /* or not known */
	UNI_EXIT_ACCESS_READ, /* by the guest: in, rdmsr */
	UNI_EXIT_ACCESS_WRITE,
	UNI_EXIT_ACCESS_NR
};

#endif
