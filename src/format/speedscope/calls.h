/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the exporter for speedscope: the calls of a trace, one by one. */
#ifndef UNI_FORMAT_SPEEDSCOPE_CALLS_H
#define UNI_FORMAT_SPEEDSCOPE_CALLS_H

#include "base/err.h"
#include "format/export.h"

/* The whole document: an "evented" profile of each thread, with its calls and their times. */
int uni_speedscope_calls(const struct uni_view *v, struct uni_sink *out, struct uni_err *err);

#endif
