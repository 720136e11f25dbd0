/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources of system calls: a trace of functions, Unikraft's tracepoints, a console. */
#ifndef UNI_SYSCALLS_SOURCE_H
#define UNI_SYSCALLS_SOURCE_H

#include "syscalls/log.h"
#include "syscalls/value.h"
#include "trace/timeline.h"
#include "format/uktrace/order.h"

#define UNI_SYSC_PREFIXES_MAX 16

/* Prefixes, before the call's name, of functions that answer a system call. */
struct uni_sysc_prefixes {
	const char *v[UNI_SYSC_PREFIXES_MAX]; /* borrowed */
	size_t nr;
	/* Functions named as the call itself (a C library's), or sys_ and its name, count if their
	 * arguments were recorded: then a user chose them. */
	bool others;
};

/* Unikraft's, and others. */
extern const struct uni_sysc_prefixes uni_sysc_prefixes;

/* The system call that this function answers; NULL: none. *other_ret: by `others`. */
const struct uni_sysc_def *uni_sysc_of_function(
	const struct uni_sysc_prefixes *p, const char *function, bool *other_ret);

/* Reads the timeline to its end. memory may be NULL. 0 or -UNI_ENOMEM. */
int uni_sysc_from_calls(const struct uni_timeline *tl, const struct uni_sysc_prefixes *prefixes,
	const struct uni_sysc_memory *memory, struct uni_sysc_log *log);

/* The same for a timeline that grows. The callback gets each entry of the log when it begins, and
 * when it has ended. Ended entries are forgotten. */
struct uni_sysc_reader; /* opaque */
struct uni_sysc_told {
	void (*fn)(void *ctx, uint32_t entry, bool end);
	void *ctx;
};
/* Borrows all. NULL: out of memory. */
struct uni_sysc_reader *uni_sysc_reader_create(const struct uni_timeline *tl,
	const struct uni_sysc_prefixes *prefixes, const struct uni_sysc_memory *memory,
	struct uni_sysc_log *log, const struct uni_sysc_told *told);
void uni_sysc_reader_destroy(struct uni_sysc_reader *r); /* NULL-safe */
/* All that is there now. 0 or -UNI_ENOMEM. */
int uni_sysc_reader_read(struct uni_sysc_reader *r);

/* Takes tracepoints of vfscore and posix-socket that describe a whole call. Returns 0 or
 * -UNI_ENOMEM. */
int uni_sysc_from_tracepoints(const struct uni_ukt_trace *t, struct uni_sysc_log *log);

/*
 * Reads a guest's console output: Nanos' strace klib and its table of sums, its older
 * debugsyscalls, Unikraft's strace option, strace itself. Skips other lines. machine: for numbers
 * without names. Returns 0 or -UNI_ENOMEM.
 */
int uni_sysc_from_console(
	const char *data, size_t size, unsigned machine, struct uni_sysc_log *log);

#endif
