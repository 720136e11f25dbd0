/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lines of a function_graph or function text as calls, in the form of a trace's calls
 * (trace/calls.h). Each thread has its stack; if no line names threads, each CPU is one. Depths
 * find the way back if lines are missing. A call without its closing brace ends at the line that
 * shows this (UNI_CALL_CUT). A call without its opening line is a LEAVE without an ENTER
 * (UNI_CALL_BEGAN), or a RETURN if it has no name.
 *
 * function_graph has no times. Each CPU's clock begins at 0, and calls follow each other at once:
 * durations are the text's own, gaps are not known. The time that a thread was switched away
 * (`off`) is at least what others did on that CPU meanwhile.
 */
#ifndef UNI_TRACE_FCALLS_H
#define UNI_TRACE_FCALLS_H

#include "format/ftrace/ftext.h"
#include "trace/timeline.h"

struct uni_fcalls_stats {
	uint64_t calls;	   /* whole ones: LEAVEs that are not cut, LEAFs, ENTRYs */
	uint64_t unopened; /* closing braces without an opening line */
	uint64_t unclosed; /* opening lines without a closing brace */
	uint64_t untimed;  /* calls with unreadable durations: those of the calls in them count */
	uint64_t repaired; /* durations that had lost digits, as the calls in them show */
	uint64_t overfull; /* calls shorter than those in them: their self time is 0 */
};

struct uni_fcalls; /* opaque */

/* t must outlive it. NULL: out of memory. */
struct uni_fcalls *uni_fcalls_open(const struct uni_ftext *t);
void uni_fcalls_close(struct uni_fcalls *c); /* NULL-safe */
/* Its events; functions are numbered as the text's strings. */
struct uni_timeline uni_fcalls_timeline(struct uni_fcalls *c);
const struct uni_fcalls_stats *uni_fcalls_stats(const struct uni_fcalls *c);

#endif
