/* SPDX-License-Identifier: BSD-2-Clause */
/* Recordings that a user gives as several: one of them twice would count as two. */
#ifndef UNI_APP_GIVEN_TWICE_H
#define UNI_APP_GIVEN_TWICE_H

#include <stddef.h>

#include "base/err.h"

/* -UNI_EUSAGE: two of them are one file, or copies of one session. */
int uni_given_twice(const char *const *path, size_t nr, struct uni_err *err);

#endif
