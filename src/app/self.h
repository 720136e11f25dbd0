/* SPDX-License-Identifier: BSD-2-Clause */
/* The writer of a session: this program and its command line. */
#ifndef UNI_APP_SELF_H
#define UNI_APP_SELF_H

#include <stddef.h>

/* The command line of this process, one blank between the words, cleaned; "" if unknown. */
void uni_self_command(char *out, size_t cap);

#endif
