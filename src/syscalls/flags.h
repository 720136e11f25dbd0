/* SPDX-License-Identifier: BSD-2-Clause */
/* Constants and flags of system calls' arguments, by the letter of their kind. */
#ifndef UNI_SYSCALLS_FLAGS_H
#define UNI_SYSCALLS_FLAGS_H

#include "base/strbuf.h"

/* "O_RDWR|O_CREAT"; bits without a name in hex, also for kinds without any names. */
void uni_sysc_put_flags(char kind, uint64_t v, struct uni_strbuf *out);

#endif
