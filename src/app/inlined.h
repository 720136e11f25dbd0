/* SPDX-License-Identifier: BSD-2-Clause */
/* The function in whose code an inlined one is: that has instructions, and the inlined one has
 * none. */
#ifndef UNI_APP_INLINED_H
#define UNI_APP_INLINED_H

#include "base/err.h"
#include "profile/build.h"

struct uni_inlined {
	size_t nr;	/* functions that have it inlined, in these samples; 0: none */
	uint64_t addr;	/* begin of the one with most of its samples, in the running guest */
	double here;	/* that many of its samples are there, with its callees */
	double samples; /* all of them */
	char name[512];
};

/* name: as `report` prints it. */
int uni_inlined_find(struct uni_recording *rec, const struct uni_build_opts *opts, const char *name,
	struct uni_inlined *ret, struct uni_err *err);

#endif
