/* SPDX-License-Identifier: BSD-2-Clause */
/* What a VMM says of its guest in JSON: configuration files and the answers of its API. */
#ifndef UNI_BACKEND_VMM_CONFIG_H
#define UNI_BACKEND_VMM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/vmm/cmdline.h"

/*
 * Firecracker's configuration (--config-file, or what its API answers to GET /vm/config), or Cloud
 * Hypervisor's (vm.info): fills what is still unknown in ret. False if it is neither. A parser of
 * hostile bytes.
 */
bool uni_vmm_config_parse(const void *data, size_t size, struct uni_vmm_cmdline *ret);

#endif
