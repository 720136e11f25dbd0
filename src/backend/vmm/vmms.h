/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of the known VMMs, and of the meaning of their command line options. */
#ifndef UNI_BACKEND_VMM_VMMS_H
#define UNI_BACKEND_VMM_VMMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The meaning of an option's value. */
enum uni_vmm_field {
	UNI_VMM_SKIP, /* has a value, which must not be mistaken for an option */
	UNI_VMM_NAME,
	UNI_VMM_ID, /* the guest's name, whole */
	UNI_VMM_IMAGE,
	UNI_VMM_FIRMWARE, /* the image, if there is no other */
	UNI_VMM_CONFIG,
	UNI_VMM_OPAQUE,
	UNI_VMM_MEM_MIB, /* a number without a suffix is MiB */
	UNI_VMM_MEM,	 /* a number without a suffix is bytes */
	UNI_VMM_CPUS,
	UNI_VMM_ACCEL,
	UNI_VMM_MACHINE,
	UNI_VMM_PLATFORM,
	UNI_VMM_GDB,
	UNI_VMM_QMP,
	UNI_VMM_PLUGIN,
	UNI_VMM_API,
	/* Without a value: */
	UNI_VMM_FLAG,
	UNI_VMM_FLAG_KVM,
	UNI_VMM_FLAG_GDB,    /* the stub's usual port */
	UNI_VMM_FLAG_HIDDEN, /* a guest whose state the host may not see */
	UNI_VMM_FLAG_NO_API,
};

struct uni_vmm_opt {
	const char *name; /* without dashes */
	enum uni_vmm_field field;
};

/* The place of the image, if it is no option's value. */
enum uni_vmm_positional {
	UNI_VMM_POS_NONE,
	UNI_VMM_POS_FIRST,  /* the first argument that is no option; the rest is the guest's */
	UNI_VMM_POS_BEHIND, /* the first argument after the word "run" */
};

struct uni_vmm_kind {
	const char *name;
	const char *exe;   /* start of the executable's name */
	const char *accel; /* "kvm": it can run a guest in no other way */
	const struct uni_vmm_opt *opts;
	size_t nr_opts;
	enum uni_vmm_positional image;
	bool values;	  /* options that are not in the table mostly have a value */
	const char *api;  /* default address of its API; NULL: none */
	uint32_t mem_mib; /* defaults of a guest without options; 0: varies, or unknown */
	uint32_t cpus;
};

/* The VMM of an executable, by the start of its name; NULL: not known. */
const struct uni_vmm_kind *uni_vmm_kind_of(const char *exe);

#endif
