/* SPDX-License-Identifier: BSD-2-Clause */
/* Linux capabilities of this process, as bits: 1 << CAP_... */
#ifndef UNI_BASE_CAPS_H
#define UNI_BASE_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Permitted ones; `effective_ret`: those that count now. False: the kernel does not tell. */
bool uni_caps_get(uint64_t *permitted_ret, uint64_t *effective_ret);
/* Limits what counts, until the next call; only permitted ones can. */
bool uni_caps_use(uint64_t effective);
/*
 * Keeps these at most, for good: programs do not gain others. With `inherited`, a program that this
 * process executes has the same.
 */
int uni_caps_keep(uint64_t keep, bool inherited, struct uni_err *err);
/* Gives up the rest, by one system call. */
bool uni_caps_give_up(void);

#endif
