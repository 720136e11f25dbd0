/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How x86 machines lay out RAM around the PCI hole below 4 GiB: one block in the VMM, two ranges in
 * the guest.
 */
#ifndef UNI_BACKEND_VMM_SPLIT_H
#define UNI_BACKEND_VMM_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/vmm/cmdline.h"

/*
 * *below_ret: bytes of RAM below the hole under 4 GiB. True: the rest is known to go on at 4 GiB,
 * and follows directly in the same block of the VMM. False: this is not known.
 */
bool uni_vmm_ram_split(const struct uni_vmm_cmdline *c, uint64_t *below_ret);

#endif
