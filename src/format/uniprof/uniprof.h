/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions for other writers of uniprof's text. */
#ifndef UNI_FORMAT_UNIPROF_UNIPROF_H
#define UNI_FORMAT_UNIPROF_UNIPROF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sink.h"

/* Writes the three header lines. For a Xen domain given by its number they are uniprof's own; for
 * others they name the target. */
void uni_uniprof_header(
	struct uni_sink *out, const char *target, uint64_t realtime_ns, bool local_time);

#endif
