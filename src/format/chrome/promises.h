/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the exporter for Chrome: threads and promises as a process of their own. */
#ifndef UNI_FORMAT_CHROME_PROMISES_H
#define UNI_FORMAT_CHROME_PROMISES_H

#include <stdbool.h>

#include "base/sink.h"
#include "promise/model.h"

/* any: an event was written before. Returns that it was by now. */
bool uni_chrome_promises(const struct uni_promise_model *m, struct uni_sink *out, bool any);

#endif
