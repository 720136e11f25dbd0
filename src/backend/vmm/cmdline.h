/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts about a guest from its VMM's command line. Parsers of hostile bytes: (data, size) in. */
#ifndef UNI_BACKEND_VMM_CMDLINE_H
#define UNI_BACKEND_VMM_CMDLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNI_VMM_PATH_MAX 4096
#define UNI_VMM_PASSED	 "fd:" /* and a number: the VMM was given the socket open */

/* Strings are cleaned text, and "" if unknown. Paths are those that the VMM would open. */
struct uni_vmm_cmdline {
	char vmm[32];	  /* "qemu", "firecracker", ...; "": no VMM that we know */
	char accel[16];	  /* as requested; the first of several */
	char machine[64]; /* QEMU's machine type */
	char name[128];
	char image[UNI_VMM_PATH_MAX];
	char config[UNI_VMM_PATH_MAX]; /* a file with more options (Firecracker's --config-file) */
	char gdb_unix[200];	       /* QEMU's gdb stub, as requested with -gdb or -s */
	char gdb_tcp[200];	       /* HOST:PORT */
	char qmp[200];		       /* QMP on a unix socket: its path, or UNI_VMM_PASSED */
	char qmp_tcp[64];	       /* QMP on a TCP port: "127.0.0.1:4444" */
	char api[200];		       /* HTTP on a unix socket: Firecracker, Cloud Hypervisor */
	char exact[UNI_VMM_PATH_MAX];  /* the file of our plugin for QEMU (uniscope/exact.h) */
	uint32_t nr_vcpus;
	uint64_t mem_bytes;
	uint32_t default_vcpus;	    /* its default if the command line says nothing; 0 unknown */
	uint64_t default_mem_bytes; /* the same */
	uint64_t max_below_4g;	    /* QEMU's max-ram-below-4g, 0 = the machine's default */
	bool confidential; /* requests SEV, TDX or another guest that hides its registers */
	bool only_kvm;	   /* it runs this guest under KVM, or not at all */
	bool opaque;	   /* names a file of further options, which was not read */
};

/*
 * data: the contents of /proc/PID/cmdline, with a NUL after each argument. exe: the executable's
 * path; if it is "" (unknown), the first argument is used. Never fails: unknown options leave
 * things unknown.
 */
void uni_vmm_cmdline_parse(
	const void *data, size_t size, const char *exe, struct uni_vmm_cmdline *ret);

#endif
