/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory was ever asked for and not given. Most code passes such a failure on; some goes on
 * without a name or a text. So main() asks here at the end, and a command that lacked memory never
 * succeeds.
 *
 * The program is linked with --wrap for the allocations of the C library that uniscope calls:
 * memory.c has them. Libraries that uniscope uses call the C library's own, and tell their failures
 * by themselves.
 */
#ifndef UNI_CLI_MEMORY_H
#define UNI_CLI_MEMORY_H

#include <stdbool.h>

/* Safe from any thread. */
bool uni_memory_lacked(void);

#endif
