/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracepoints as a trace of the Common Trace Format 1.8: an event class for each, its arguments as
 * fields of their own width and sign. */
#ifndef UNI_FORMAT_UKTRACE_CTF_H
#define UNI_FORMAT_UKTRACE_CTF_H

#include "format/uktrace/order.h"

/* Makes the folder; it must not be there yet. */
int uni_ukt_ctf_write(const struct uni_ukt_trace *t, const char *folder, struct uni_err *err);

#endif
