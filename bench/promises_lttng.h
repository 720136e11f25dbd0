/* SPDX-License-Identifier: BSD-2-Clause */
/* The same events as LTTng's tracepoints, for bench/promises.c. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER uniscope_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "promises_lttng.h"

#if !defined(UNI_BENCH_PROMISES_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define UNI_BENCH_PROMISES_LTTNG_H

#include <lttng/tracepoint.h>
#include <stdint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(uniscope_bench, create,
	LTTNG_UST_TP_ARGS(uint64_t, self, uint64_t, made, uint8_t, type),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint64_t, self, self)
		lttng_ust_field_integer(uint64_t, made, made)
		lttng_ust_field_integer(uint8_t, type, type)))

LTTNG_UST_TRACEPOINT_EVENT(uniscope_bench, resolve,
	LTTNG_UST_TP_ARGS(uint64_t, self, uint64_t, which),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint64_t, self, self)
		lttng_ust_field_integer(uint64_t, which, which)))

LTTNG_UST_TRACEPOINT_EVENT(uniscope_bench, change,
	LTTNG_UST_TP_ARGS(uint64_t, to),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint64_t, to, to)))
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
