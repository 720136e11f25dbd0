/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.csv: a row a call, "function,tid,latency_us,latency_us_self", as Nanos' parse-trace.py
 * writes it, and `uniscope export -f csv`.
 */
#ifndef UNI_FORMAT_CSV_CALLS_H
#define UNI_FORMAT_CSV_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calltable.h"

struct uni_callcsv_stats {
	uint64_t rows;		 /* that were added */
	uint64_t bad_lines;	 /* skipped */
	uint64_t first_bad_line; /* from 1, 0: none */
	uint64_t negative;	 /* times below 0, which older tools computed: they count as 0 */
};

/* Does it begin with that header? */
bool uni_callcsv_is(const char *data, size_t size);
/* Adds to t. -UNI_EFORMAT only without one good row or header. */
int uni_callcsv_read(const char *data, size_t size, struct uni_call_table *t,
	struct uni_callcsv_stats *stats_ret, struct uni_err *err);

#endif
