/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and loads the Xen module: beside the program (a build, a copy in dom0), else installed. */
#ifndef UNI_BACKEND_XEN_LOAD_H
#define UNI_BACKEND_XEN_LOAD_H

#include <stdbool.h>

#include "base/err.h"
#include "backend/xen/module.h"

struct uni_xen_lib {
	void *handle; /* NULL: not loaded */
	const struct uni_xen_module *m;
	char path[4096];
};

/* -UNI_ENOTSUP: err says what is missing. */
int uni_xen_lib_open(struct uni_xen_lib *ret, struct uni_err *err);
void uni_xen_lib_close(struct uni_xen_lib *lib); /* idempotent; may be zeroed */

/*
 * Are we under Xen, and does this kernel pass hypercalls on? -UNI_ENOTSUP, -UNI_EPERM; err says
 * why.
 */
int uni_xen_host_check(struct uni_err *err);
bool uni_xen_host_is_xen(void);

#endif
