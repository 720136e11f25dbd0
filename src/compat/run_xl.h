/* SPDX-License-Identifier: BSD-2-Clause */
/* `run --xl`: a domain is booted, recorded and destroyed. */
#ifndef UNI_COMPAT_RUN_XL_H
#define UNI_COMPAT_RUN_XL_H

#include "app/record.h"

struct uni_run_xl_args {
	struct uni_record_args *rec;
	const char *config; /* of the domain */
	const char *image;  /* ELF with symbols, or these; NULL: the configuration's kernel */
	const char *target; /* how it is reached; NULL: as xen:dom=N */
	bool five_files;
};

int uni_run_xl(const struct uni_run_xl_args *args, struct uni_err *err);

/* Time to wait for a domain that was just created. */
#define UNI_XL_BOOT_NS (20 * UNI_NSEC_PER_SEC)
/* "xen:dom=N", or `given` unless that is NULL. */
void uni_xl_target(const char *given, uint64_t domid, char *ret, size_t cap);

#endif
