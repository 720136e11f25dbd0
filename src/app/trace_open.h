/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of a session, and the selecting options of all commands that show them. */
#ifndef UNI_APP_TRACE_OPEN_H
#define UNI_APP_TRACE_OPEN_H

#include "app/call_rules.h"
#include "app/call_threads.h"
#include "app/input.h"
#include "app/options.h"
#include "app/part.h"
#include "recording/call_input.h"
#include "trace/calls.h"

struct uni_trace_args {
	const char *guest, *symbols, *function;
	struct uni_opt_list threads, debug_dirs, rules;
	struct uni_part part;
	const char *last; /* "10ms": only this time before its end */
	bool mangled;
};

#define UNI_TRACE_OPTIONS(a)                                                                    \
	{ 0, "guest", UNI_OPT_STR, &(a).guest, "N|NAME",                                        \
		"this guest, of a session with several (default: the first that was traced)",   \
		NULL, NULL },                                                                   \
		UNI_PART_OPTIONS((a).part),                                                     \
		{ 0, "last", UNI_OPT_STR, &(a).last, "TIME",                                    \
			"only this time before the last event: \"10ms\", "                      \
			"\"250us\", \"2s\"; what happened before a trigger froze "              \
			"the rings, or the guest died",                                         \
			NULL, NULL },                                                           \
		{ 0, "thread", UNI_OPT_LIST, &(a).threads, "NAME|NUMBER",                       \
			"only threads whose name matches (* and ? stand for any text), or of "  \
			"this number; may be given several times",                              \
			NULL, NULL },                                                           \
		UNI_RULE_OPTION((a).rules),                                                     \
		{ 0, "no-demangle", UNI_OPT_FLAG, &(a).mangled, NULL,                           \
			"C++, Rust and OCaml names as the linker has them", NULL, NULL },       \
		{ 's', "symbols", UNI_OPT_STR, &(a).symbols, "FILE",                            \
			"names from this ELF, .usym or table in text instead of the session's " \
			"own",                                                                  \
			"FILE", NULL },                                                         \
	{                                                                                       \
		0, "debug-dir", UNI_OPT_LIST, &(a).debug_dirs, "DIR",                           \
			"look for split-off debug files here, before /usr/lib/debug; may be "   \
			"given several times",                                                  \
			"FILE", NULL                                                            \
	}

struct uni_trace_open {
	struct uni_input input;
	struct uni_recording *rec;
	struct uni_tinput *tinput;
	uint32_t guest;			  /* of the recording */
	const struct uni_trace_input *in; /* tinput's */
	struct uni_symtab *symtab;	  /* of --symbols, or NULL */
	struct uni_funcs *funcs;
	struct uni_call_threads threads; /* of --thread */
	struct uni_trace_values values;
	struct uni_calls_rules rules; /* of --rule; they use the values */
	struct uni_calls_filter filter;
	uint64_t begin_ns; /* of the trace */
};

/* Close it whenever this returned 0. */
int uni_trace_open(const char *path, const struct uni_trace_args *args, struct uni_trace_open *ret,
	struct uni_err *err);
void uni_trace_close(struct uni_trace_open *t);

/* Reports on stderr if the trace has only ticks instead of time. */
void uni_trace_note_rate(const char *path, const struct uni_record_trace *trace);
/* Reports on stderr what the guest left out as it recorded: calls, or times. */
void uni_trace_note_only(const char *path, const struct uni_record_trace *trace);
/* Reports the trace's losses on stderr, if any, that nothing happened in the time window, and what
 * rules could not judge. */
void uni_trace_note(
	const struct uni_trace_open *t, const char *path, const struct uni_calls_stats *st);

#endif
