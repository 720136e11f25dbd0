/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the files in a folder of uftrace. No content is trusted. */
#ifndef UNI_FORMAT_UFTRACE_DATA_READ_H
#define UNI_FORMAT_UFTRACE_DATA_READ_H

#include "format/stack.h"

struct uni_uftrace_symbol {
	uint64_t addr;
	uint32_t name; /* of strings */
};

struct uni_uftrace_map {
	uint64_t start, size;
	uint32_t path; /* of strings */
};

struct uni_uftrace_syms {
	struct uni_strtab *strings;
	UNI_VEC(struct uni_uftrace_map) maps;
	UNI_VEC(struct uni_uftrace_symbol) all;
	bool relative; /* addresses of symbols: to the beginning of their image */
};

/* The kernel's events of a thread. */
enum uni_uftrace_what {
	UNI_UFTRACE_ALIVE,     /* it began, was named, or ended */
	UNI_UFTRACE_IN,	       /* a CPU runs it */
	UNI_UFTRACE_OUT,       /* none does: it waits, */
	UNI_UFTRACE_PREEMPTED, /* or others were let run before it */
};

struct uni_uftrace_event {
	uint64_t ns;
	uint32_t tid;
	uint8_t what; /* enum uni_uftrace_what */
};

struct uni_uftrace_events {
	UNI_VEC(struct uni_uftrace_event) all;
};

/* perf-cpuN.dat. Invalid parts are counted. false: out of memory. */
bool uni_uftrace_perf(
	struct uni_uftrace_events *events, const char *data, size_t size, uint64_t *damaged);
/* After the last of them. */
void uni_uftrace_events_sort(struct uni_uftrace_events *events);
/* The index of the thread's first one, if it has any. */
size_t uni_uftrace_events_of(const struct uni_uftrace_events *events, uint32_t tid);

/* false: out of memory. Deinit in any case. */
bool uni_uftrace_syms_init(struct uni_uftrace_syms *s);
void uni_uftrace_syms_deinit(struct uni_uftrace_syms *s);
/* The file `info`: false if it is not uftrace's, or has another byte order or size. */
bool uni_uftrace_info(const char *data, size_t size, struct uni_uftrace_syms *s);
/* sid-*.map: lines as of /proc/PID/maps. false: out of memory. */
bool uni_uftrace_map(struct uni_uftrace_syms *s, const char *data, size_t size);
/* *.sym: "ADDRESS TYPE NAME" a line; base: where the image begins. false: out of memory. */
bool uni_uftrace_sym(struct uni_uftrace_syms *s, uint64_t base, const char *data, size_t size);
/* After the last of them. */
void uni_uftrace_syms_sort(struct uni_uftrace_syms *s);

/* The symbols for TID.dat, and the times at which the thread did not run. */
struct uni_uftrace_thread {
	const struct uni_uftrace_syms *syms;
	const struct uni_uftrace_events *events; /* sorted */
	uint32_t tid;
};

/*
 * Reads TID.dat: adds each function's self time to the stack's profile. Time in which the thread
 * did not run goes to `linux:schedule` below the function. Returns 0, -UNI_ENOMEM, or -UNI_EFORMAT
 * for bytes that are no records, from *at_ret on (records before them were added).
 */
int uni_uftrace_dat(struct uni_stack *stack, const struct uni_uftrace_thread *thread,
	const char *data, size_t size, struct uni_import_stats *stats, size_t *at_ret);

#endif
