/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the HTTP interface of a VMM (Firecracker, Cloud Hypervisor; a unix socket) about its guest,
 * if the command line does not say it. It sends one GET, which changes nothing. The other side is
 * hostile: sizes are limited, and there is a deadline.
 */
#ifndef UNI_BACKEND_VMM_API_H
#define UNI_BACKEND_VMM_API_H

#include <stddef.h>

#include "backend/vmm/cmdline.h"

#define UNI_VMM_API_MAX 262144 /* bytes of a reply */

/*
 * Fills in what c does not know yet. Nothing is sent unless that very process listens at the
 * socket: a path in a container's files may lead anywhere. Returns 0, -UNI_ENOENT (nobody listens),
 * -UNI_EPERM, -UNI_ETIMEDOUT or -UNI_EPROTO.
 */
int uni_vmm_api_read(int pid, struct uni_vmm_cmdline *c);

/*
 * Finds the body in an HTTP reply. Returns 0; -UNI_EAGAIN: incomplete; -UNI_EPROTO: no reply with
 * status 200 and a known length.
 */
int uni_vmm_http_parse(const char *data, size_t size, size_t *body_ret, size_t *body_size_ret);

#endif
