/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of trace events in JSON: microseconds, which readers take into doubles. */
#ifndef UNI_FORMAT_CHROME_TIME_H
#define UNI_FORMAT_CHROME_TIME_H

#include <stdint.h>

#include "base/sink.h"

/* ,"KEY":1234.567 */
void uni_chrome_us(struct uni_sink *out, const char *key, uint64_t ns);
/*
 * ,"ts":...,"dur":... where dur, as a double, is just the difference of the doubles that "ts" of
 * the beginning and of a span from end_ns on are. Readers that add them, also after they took the
 * first time off all (speedscope), see a span end before the next begins, and not an ulp later.
 */
void uni_chrome_span(struct uni_sink *out, uint64_t begin_ns, uint64_t end_ns);

#endif
