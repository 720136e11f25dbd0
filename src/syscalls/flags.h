/* SPDX-License-Identifier: BSD-2-Clause */
/* Constants and flags of system calls' arguments, by the letter of their kind. */
#ifndef UNI_SYSCALLS_FLAGS_H
#define UNI_SYSCALLS_FLAGS_H

#include "base/strbuf.h"

/* "O_RDWR|O_CREAT"; what has no name in hex, of kinds that have none at all, too. */
void uni_sysc_put_flags(char kind, uint64_t v, struct uni_strbuf *out);

#endif
