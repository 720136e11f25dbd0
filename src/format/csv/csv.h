/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for other writers of comma-separated values. */
#ifndef UNI_FORMAT_CSV_CSV_H
#define UNI_FORMAT_CSV_CSV_H

#include "base/sink.h"

/* A field, quoted if it needs it (RFC 4180). */
void uni_csv_text(struct uni_sink *out, const char *s);

#endif
