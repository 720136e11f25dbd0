/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of trace events in JSON: microseconds, which readers take into doubles. */
#ifndef UNI_FORMAT_CHROME_TIME_H
#define UNI_FORMAT_CHROME_TIME_H

#include <stdint.h>

#include "base/sink.h"

/* ,"KEY":1234.567 */
void uni_chrome_us(struct uni_sink *out, const char *key, uint64_t ns);
/*
 * Writes ,"ts":...,"dur":... As a double, dur is exactly the difference between the "ts" of end_ns
 * and the "ts" of begin_ns. A reader that adds them sees a span end before the next one begins, not
 * an ulp later. This holds even if the reader first subtracts the earliest time (speedscope
 * does).
 */
void uni_chrome_span(struct uni_sink *out, uint64_t begin_ns, uint64_t end_ns);

#endif
