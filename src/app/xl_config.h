/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a domain's configuration, as xl reads it, that uniscope needs. */
#ifndef UNI_APP_XL_CONFIG_H
#define UNI_APP_XL_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

struct uni_xl_config {
	char name[128];	   /* "" not stated */
	char kernel[4096]; /* path as stated; "" not stated */
};

/* If a name is assigned several times, the last one counts. Skips everything but strings. */
void uni_xl_config_parse(const char *data, size_t size, struct uni_xl_config *ret);
/* -UNI_EFORMAT: it names no domain. */
int uni_xl_config_load(const char *path, struct uni_xl_config *ret, struct uni_err *err);

/* A configuration of a PVH domain with one vCPU. extra: its command line, or NULL. */
void uni_xl_config_write(
	const struct uni_xl_config *c, const char *extra, uint64_t mem_mib, struct uni_strbuf *ret);

#endif
