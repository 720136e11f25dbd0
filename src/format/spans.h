/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples as spans, for formats that know only of those: of each lane (thread or vCPU) a function
 * lasts from the first sample that has it to the last one after it without another. Each sample
 * lasts exactly what it stands for; where it was a little early or late it is moved, so that
 * neighbours touch, and by less than a period.
 */
#ifndef UNI_FORMAT_SPANS_H
#define UNI_FORMAT_SPANS_H

#include "format/rows.h"

struct uni_row_span {
	uint32_t lane;
	uint32_t frame;
	uint32_t depth; /* 0: the outermost */
	uint64_t begin_ns, end_ns;
};

/* By their beginnings, callers before what they call, lane by lane. 0 or -UNI_ENOMEM; what fn
 * returns ends it, if not 0. */
int uni_rows_spans(
	const struct uni_rows *r, int (*fn)(void *arg, const struct uni_row_span *span), void *arg);

#endif
