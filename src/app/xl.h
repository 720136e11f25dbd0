/* SPDX-License-Identifier: BSD-2-Clause */
/* Domains by way of Xen's own command, xl. */
#ifndef UNI_APP_XL_H
#define UNI_APP_XL_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * A process of its own that destroys the domain when this one dies: uni-guardian in ps. Start it
 * before the domain is created; it finds one of that name that comes up meanwhile.
 */
struct uni_xl_keeper {
	int sock; /* -1: none */
	pid_t pid;
};

/* Call before threads exist. There must be no domain of that name yet. */
int uni_xl_keeper_start(struct uni_xl_keeper *k, const char *name, struct uni_err *err);
/* The domain is gone, or there never was one; idempotent, fine on { .sock = -1 }. */
void uni_xl_keeper_end(struct uni_xl_keeper *k);

/* `xl create` of a domain of that name, which does not exist yet. If it fails, err has its last
 * words, and a domain that it had started by then is destroyed. */
int uni_xl_create(const char *config, const char *name, struct uni_err *err);
/* Number of the domain with exactly that name; -UNI_ENOENT. */
int uni_xl_domid(const char *name, uint64_t *ret, struct uni_err *err);
int uni_xl_destroy(uint64_t domid, struct uni_err *err);

#endif
