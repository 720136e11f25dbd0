/* SPDX-License-Identifier: BSD-2-Clause */
/* A trace file's records, whole and in the order of their time. */
#ifndef UNI_FORMAT_UKTRACE_ORDER_H
#define UNI_FORMAT_UKTRACE_ORDER_H

#include "format/uktrace/buffer.h"
#include "format/uktrace/tracefile.h"

struct uni_ukt_place {
	uint64_t ns;
	size_t at; /* in the buffer */
};

struct uni_ukt_trace {
	const struct uni_ukt_file *file; /* borrowed */
	struct uni_ukt_defs defs;
	struct uni_ukt_stats stats;
	UNI_VEC(struct uni_ukt_place) records;
	uint64_t unordered; /* records after a later one: several CPUs wrote */
};

/* Close it whenever this returned 0. */
int uni_ukt_trace_open(
	const struct uni_ukt_file *f, struct uni_ukt_trace *ret, struct uni_err *err);
void uni_ukt_trace_close(struct uni_ukt_trace *t);
/* Record i; its texts borrow the file's buffer. */
void uni_ukt_trace_record(const struct uni_ukt_trace *t, size_t i, struct uni_ukt_record *ret);

#endif
