/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text in which Nanos and Linux show a kernel's calls. The tracer function_graph shows calls with
 * their durations, nested by braces, a line "CPU) DURATION | name();". The tracer function shows
 * entries, each with a time. A text becomes a list of events, one a line, and the list becomes that
 * text again. format/ftrace/fcalls.h finds out who called whom, self time, and calls cut off.
 */
#ifndef UNI_TRACE_FTEXT_H
#define UNI_TRACE_FTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sink.h"
#include "base/strtab.h"
#include "base/vec.h"

#define UNI_FTEXT_CPUS_MAX  4096
#define UNI_FTEXT_DEPTH_MAX 4096

enum uni_ftext_kind {
	UNI_FTEXT_OPEN,	  /* "name() {": a call that made others */
	UNI_FTEXT_LEAF,	  /* "name();" */
	UNI_FTEXT_CLOSE,  /* the end of a call, with or without its name */
	UNI_FTEXT_SWITCH, /* of this CPU, from one thread to another */
	UNI_FTEXT_HIT,	  /* tracer function: an entry */
	UNI_FTEXT_LOST,	  /* ns: events that are missing here */
};

enum uni_ftext_flag {
	UNI_FTEXT_TIMED = 1u << 0, /* there was a duration, and it could be read */
	UNI_FTEXT_DAMAGED =
		1u << 1,	   /* the duration lost leading or trailing digits: ns is a guess */
	UNI_FTEXT_BARE = 1u << 2,  /* CLOSE: a brace without a name */
	UNI_FTEXT_OWNED = 1u << 3, /* the line itself names the thread */
};

struct uni_ftext_event {
	uint64_t ns;	 /* duration; HIT: time, as the trace counts it */
	uint32_t name;	 /* string; SWITCH: thread that left */
	uint32_t other;	 /* HIT: string, the caller; SWITCH: thread that came */
	uint32_t thread; /* OWNED */
	uint16_t cpu;
	uint16_t depth; /* calls around this one */
	uint8_t kind, flags;
};

struct uni_ftext_thread {
	uint32_t name; /* string */
	uint64_t id;
};

enum uni_ftext_tracer {
	UNI_FTEXT_GRAPH,
	UNI_FTEXT_FUNCTION,
	UNI_FTEXT_NOP,
};

struct uni_ftext {
	enum uni_ftext_tracer tracer;
	bool seconds; /* HIT times were seconds and are nanoseconds; else cycles */
	bool nested;  /* depths come from the lines' indentation, not only from braces */
	struct uni_strtab *strings;
	struct uni_strtab *thread_keys;
	UNI_VEC(struct uni_ftext_event) events;
	UNI_VEC(struct uni_ftext_thread) threads;
};

struct uni_ftext_stats {
	uint64_t lines;		 /* of the text */
	uint64_t headers;	 /* of these, comments */
	uint64_t bad_lines;	 /* of these, in no form that either tracer writes */
	uint64_t first_bad_line; /* of these and those outside; from 1, 0: none */
	uint64_t damaged;	 /* durations that had lost digits */
	uint64_t unreadable; /* durations that are no number, or years: the call is kept without one
			      */
	uint64_t outside;    /* CPU or depth beyond the limits above; skipped */
};

/* All three may be called on a struct that is all zeros. */
int uni_ftext_init(struct uni_ftext *t, enum uni_ftext_tracer tracer); /* -UNI_ENOMEM */
void uni_ftext_deinit(struct uni_ftext *t);
/* Number of this thread, added if it is new; UINT32_MAX without memory. */
uint32_t uni_ftext_thread(struct uni_ftext *t, const char *name, size_t len, uint64_t id);

/* How likely this is such a text: 0 no .. 100 certainly. */
int uni_ftext_sniff(const char *data, size_t size);

/* t is made here; the caller deinits it. Names are cleaned. Unreadable lines are counted and
 * skipped; -UNI_EFORMAT only if there is neither a header nor a good line. */
int uni_ftext_parse(const char *data, size_t size, struct uni_ftext *t,
	struct uni_ftext_stats *stats_ret, struct uni_err *err);

/* Nanos' columns, its header first. */
void uni_ftext_write(const struct uni_ftext *t, struct uni_sink *out);

#define UNI_FTEXT_DURATION     13 /* columns */
#define UNI_FTEXT_DURATION_MAX 32
/* Writes the column DURATION, such as "! 207.666 us ", without a NUL; returns its length. */
size_t uni_ftext_duration(uint64_t ns, char ret[UNI_FTEXT_DURATION_MAX]);

#endif
