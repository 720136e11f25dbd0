/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls of a guest, from any source, and printing them as strace does. */
#ifndef UNI_SYSCALLS_LOG_H
#define UNI_SYSCALLS_LOG_H

#include "base/sink.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "syscalls/filter.h"

#define UNI_SYSC_LOG_MAX (1u << 26) /* calls that are kept; the rest is counted */

enum uni_sysc_end {
	UNI_SYSC_OPEN, /* not seen to return */
	UNI_SYSC_OK,
	UNI_SYSC_FAILED,
	UNI_SYSC_NO_RESULT, /* it does not return, or its result is unknown */
};

struct uni_sysc_entry {
	uint64_t begin_ns, end_ns; /* 0 and the duration, if that is all that is known */
	int64_t value;		   /* OK: the result; FAILED: errno, 0: not known */
	uint32_t name, args;	   /* texts of the log */
	uint32_t result;	   /* text to be shown instead of the value; 0: none */
	uint32_t thread;	   /* text: "pid 5", or a name; 0: not known */
	uint8_t end;		   /* enum uni_sysc_end */
	char shown;		   /* how an OK one's value is shown: kind of the table */
	bool timed;		   /* when it began is known */
	bool has_duration;	   /* how long it took, too */
};

/* A row of a table of sums that the guest itself printed. */
struct uni_sysc_sum {
	uint32_t name;
	uint64_t calls, errors, ns;
};

#define UNI_SYSC_CACHE 256

struct uni_sysc_log {
	UNI_VEC(struct uni_sysc_entry) all;
	UNI_VEC(struct uni_sysc_sum) sums;
	struct uni_strtab *text;
	const struct uni_sysc_filter *filter; /* borrowed; NULL: everything */
	struct {
		uint32_t name;
		bool known, passes;
	} cache[UNI_SYSC_CACHE];  /* the filter's results for names */
	UNI_VEC(uint32_t) unused; /* entries of `all` that were forgotten */
	uint64_t dropped;	  /* calls beyond UNI_SYSC_LOG_MAX */
	uint64_t other_lines;	  /* of a text: lines that are no system calls */
	uint64_t unknown;	  /* results without their call */
};

int uni_sysc_log_init(struct uni_sysc_log *log, const struct uni_sysc_filter *filter);
void uni_sysc_log_deinit(struct uni_sysc_log *log); /* of a zeroed one nothing */
/* The number of a text; 0 for "". -1 as uint32_t: out of memory. */
uint32_t uni_sysc_log_text(struct uni_sysc_log *log, const char *s, size_t len);
/* Applies the part of the filter about names; printers apply the part about results. */
int uni_sysc_log_add(struct uni_sysc_log *log, const struct uni_sysc_entry *e);

/* The same; *index_ret: its place in `all`, UINT32_MAX if it is not printed. */
int uni_sysc_log_put(struct uni_sysc_log *log, const struct uni_sysc_entry *e, uint32_t *index_ret);
/* For callers that print a log while it grows: frees the entry's place for another one. */
int uni_sysc_log_forget(struct uni_sysc_log *log, uint32_t index);
/* Frees the texts of forgotten entries: all numbers of texts except those in entries become
 * invalid. */
int uni_sysc_log_shrink(struct uni_sysc_log *log);

struct uni_sysc_print {
	enum { UNI_SYSC_NO_TIME, UNI_SYSC_TIME, UNI_SYSC_TIME_US, UNI_SYSC_EPOCH } stamp; /* -t.. */
	bool relative;									  /* -r */
	bool duration;									  /* -T */
	unsigned column;	     /* -a: column of results */
	uint64_t realtime_offset_ns; /* wall clock minus the log's */
};

/* Prints in the order of beginnings; calls of threads at the same time are in pieces, as in strace.
 * If a filter selects calls by their end, prints whole calls, in the order of their ends. */
int uni_sysc_print(
	const struct uni_sysc_log *log, const struct uni_sysc_print *opts, struct uni_sink *out);

/* The same while calls come: the entry begins, or has ended. */
struct uni_sysc_printer; /* opaque */
struct uni_sysc_printer *uni_sysc_printer_create(const struct uni_sysc_log *log,
	const struct uni_sysc_print *opts, struct uni_sink *out); /* NULL: out of memory */
void uni_sysc_printer_destroy(struct uni_sysc_printer *p);	  /* NULL-safe */
void uni_sysc_printer_put(struct uni_sysc_printer *p, uint32_t entry, bool end);

void uni_sysc_json(const struct uni_sysc_log *log, struct uni_sink *out);

enum uni_sysc_order { UNI_SYSC_BY_TIME, UNI_SYSC_BY_CALLS, UNI_SYSC_BY_ERRORS, UNI_SYSC_BY_NAME };

/* The table of strace -c: the log's calls, and the guest's own sums. */
int uni_sysc_summary(
	const struct uni_sysc_log *log, enum uni_sysc_order order, struct uni_sink *out);

#endif
