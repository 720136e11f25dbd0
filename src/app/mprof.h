/* SPDX-License-Identifier: BSD-2-Clause */
/* The trace ring that a MirageOS guest on Xen grants (mirage-profile). */
#ifndef UNI_APP_MPROF_H
#define UNI_APP_MPROF_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* TARGET is a Xen domain; *ring_ret is the caller's to free. The guest is not stopped. */
int uni_mprof_fetch(const char *target, uint8_t **ring_ret, size_t *size_ret, struct uni_err *err);

#endif
