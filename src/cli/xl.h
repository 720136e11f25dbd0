/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains by way of Xen's own command, xl. */
#ifndef UNI_CLI_XL_H
#define UNI_CLI_XL_H

#include <stdint.h>

#include "base/err.h"

/* `xl create`; its last words are in err when it fails. */
int uni_xl_create(const char *config, struct uni_err *err);
/* Number of the domain with exactly that name; -UNI_ENOENT. */
int uni_xl_domid(const char *name, uint64_t *ret, struct uni_err *err);
int uni_xl_destroy(uint64_t domid, struct uni_err *err);

#endif
