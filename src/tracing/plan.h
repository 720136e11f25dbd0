/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of a guest to trace, and the patches for that. Plain data: a reader supplies the
 * present bytes, and the result is a job for uni_patch_run(). */
#ifndef UNI_TRACING_PLAN_H
#define UNI_TRACING_PLAN_H

#include <regex.h>

#include "base/err.h"
#include "obj/sites.h"
#include "tracing/guest_memory.h"
#include "backend/patch.h"
#include "trace/ring.h"
#include "tracing/wants.h"

enum uni_trigger {
	UNI_TRIGGER_NONE,
	UNI_TRIGGER_START,  /* enables tracing when it is called */
	UNI_TRIGGER_STOP,   /* disables it */
	UNI_TRIGGER_FREEZE, /* keeps the present content of the rings */
};

struct uni_trace_trigger {
	const char *function; /* exact */
	enum uni_trigger what;
};

/* Names are as in the symbol table; globs are uni_glob_match()'s. */
struct uni_trace_choice {
	const char *const *glob; /* a function that matches any of these, or of regex; none: all */
	size_t nr_globs;
	const regex_t *regex;
	size_t nr_regexes;
	const char *const *not_glob; /* and none of these */
	size_t nr_not;
	const struct uni_trace_want *args; /* of these with arguments and value */
	size_t nr_args;
	const struct uni_trace_trigger *trigger;
	size_t nr_triggers;
	uint32_t mode;	    /* UNI_TRACE_GRAPH, _LITE, _FUNCTION, _CALLERS */
	uint64_t min_ns;    /* shorter calls are dropped; 0: none */
	uint32_t max_depth; /* deeper calls are dropped; 0: none */
	bool pieces;	    /* also functions whose start is several instructions while off */
	bool promises;	    /* events of threads and promises; functions only if some are named */
	bool disabled;	    /* begin with the tracer off: a trigger enables it */
};

/* -UNI_EUSAGE: the options contradict each other. */
int uni_trace_choice_check(const struct uni_trace_choice *choice, struct uni_err *err);
/* Does it ask for events of threads alone? No function is meant then. */
bool uni_trace_choice_is_threads(const struct uni_trace_choice *c);

struct uni_trace_patches {
	struct uni_patch *v; /* owned; by rising gpa: the bytes to change */
	size_t nr, cap;
};

struct uni_trace_plan {
	struct uni_trace_patches code;	 /* each of these places may change at a time of its own */
	struct uni_trace_patches keys;	 /* the rest decides what is recorded: all in one stop */
	bool is_live;			 /* before it, the guest records, or has patched places */
	uint32_t nr_functions, nr_sites; /* that will be traced */
	uint32_t nr_changed;		 /* places of code among the patches */
	bool calls_itself;		 /* and all that needs no patching will be, too */
	uint32_t sets;			 /* control.sets, then */
	uint32_t session;		 /* control.session, then */
	uint32_t nr_no_exits;		 /* left out: not all of their returns are known */
	uint32_t nr_pieces;		 /* left out: see above */
	uint32_t nr_unlike;		 /* left out: unknown bytes in the guest */
};

struct uni_trace_guest {
	struct uni_tmem *mem;
	const struct uni_image *image;
	uint64_t bias;
	const struct uni_sites *sites;
	bool calls_itself; /* code of it calls the tracer without being patched for it */
	const struct uni_ring_info *info;
	uint64_t head; /* address of struct uni_trace_head */
	const struct uni_ring *ring;
	/* it reports gaps by the word alone: the guest itself does the requested writes */
	bool inside;
	struct uni_trace_hooks hooks;
	uint64_t tsc_hz;	 /* for min_ns; 0: not known */
	struct uni_debug *debug; /* for names of parameters; NULL: none are given */
};

/*
 * choice NULL: stops all tracing, and each site becomes as in the file. -UNI_ENOENT: the choice has
 * no function, and the message lists those that exist. -UNI_EMISMATCH: places have unknown
 * bytes.
 */
int uni_trace_plan(const struct uni_trace_guest *g, const struct uni_trace_choice *choice,
	struct uni_trace_plan *ret, struct uni_err *err);
void uni_trace_plan_deinit(struct uni_trace_plan *p);
int uni_trace_by_gpa(const void *a, const void *b); /* two patches, for qsort() */
/* Its checks (plan_check.c): before anything is planned, and whether any function was found. */
int uni_trace_plan_check(
	const struct uni_trace_guest *g, const struct uni_trace_choice *c, struct uni_err *err);
int uni_trace_plan_check_found(const struct uni_trace_guest *g, const struct uni_trace_choice *c,
	const struct uni_trace_plan *r, struct uni_err *err);

/*
 * Patches that make each CPU report, before its next record, that open calls have no end in the
 * trace. They are at most UNI_TRACE_GAP_PATCHES(nr_cpus) words. *nr_ret is 0 if the guest cannot do
 * this. Returns 0 or -UNI_E*.
 */
#define UNI_TRACE_GAP_PATCHES(nr_cpus) ((size_t)(nr_cpus) + 1)
int uni_trace_plan_gap(
	const struct uni_trace_guest *g, uint32_t gaps, struct uni_patch *to, size_t *nr_ret);

#endif
