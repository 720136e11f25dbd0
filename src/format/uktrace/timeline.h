/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tracepoints in the form that all exporters show. A tracepoint X that X_ret or X_err follows (as
 * in vfscore and posix-socket) is a call; any other is an instant. Records name neither a CPU nor a
 * thread, so all are on one row. A tracepoint of the scheduler changes this, if there is one. Its
 * name contains "switch"; its last integer or text is the thread that runs from then on.
 */
#ifndef UNI_FORMAT_UKTRACE_TIMELINE_H
#define UNI_FORMAT_UKTRACE_TIMELINE_H

#include "trace/timeline.h"
#include "format/uktrace/order.h"

struct uni_ukt_timeline; /* opaque */

/* t must outlive it. NULL: out of memory. */
struct uni_ukt_timeline *uni_ukt_timeline_open(const struct uni_ukt_trace *t);
void uni_ukt_timeline_close(struct uni_ukt_timeline *tl); /* NULL-safe */
struct uni_timeline uni_ukt_timeline_get(struct uni_ukt_timeline *tl);

/* How a tracepoint is part of a call. */
enum uni_ukt_role { UNI_UKT_INSTANT, UNI_UKT_CALL, UNI_UKT_RETURN, UNI_UKT_SWITCH };

/* For each definition: its role, and for a return the definition of its call. NULL: out of memory;
 * the caller frees the result. */
struct uni_ukt_part {
	enum uni_ukt_role role;
	bool failed; /* X_err */
	uint32_t call;
	/* The call that it ends if that one is not open; UINT32_MAX: none. vfscore's writev ends
	 * with pwritev's. */
	uint32_t other;
};
struct uni_ukt_part *uni_ukt_parts(const struct uni_ukt_defs *d);

/* The thread that runs after a record of a switch: the last integer is its id. A text beside it, or
 * alone, is its name. */
struct uni_ukt_who {
	bool has_id;
	uint64_t id;
	char name[256 * 3]; /* clean; "": not known */
};
void uni_ukt_who(const struct uni_ukt_record *r, struct uni_ukt_who *ret);

#endif
