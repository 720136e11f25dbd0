/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples as spans, for formats that have only spans. In each lane (thread or vCPU) a function
 * lasts from the first sample that has it to the last one after it without another. Each sample
 * lasts exactly as long as it stands for. A sample that was a little early or late is moved by less
 * than a period, so that neighbours touch.
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

/* Passes spans to fn by their beginnings, callers before callees, lane by lane. Returns 0 or
 * -UNI_ENOMEM; a value of fn other than 0 ends the walk and is returned. */
int uni_rows_spans(
	const struct uni_rows *r, int (*fn)(void *arg, const struct uni_row_span *span), void *arg);

#endif
