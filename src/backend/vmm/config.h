/* SPDX-License-Identifier: BSD-2-Clause */
/* A VMM's facts about its guest as JSON: configuration files, and the replies of its API. */
#ifndef UNI_BACKEND_VMM_CONFIG_H
#define UNI_BACKEND_VMM_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/vmm/cmdline.h"

/*
 * Parses Firecracker's configuration (--config-file, or its API's reply to GET /vm/config), or
 * Cloud Hypervisor's (vm.info). Fills in what is still unknown in ret. False if it is neither. A
 * parser of hostile bytes.
 */
bool uni_vmm_config_parse(const void *data, size_t size, struct uni_vmm_cmdline *ret);

#endif
