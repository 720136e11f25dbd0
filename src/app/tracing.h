/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared code of `trace start`, `stop`, `record` and `dump`: attaching, choosing functions,
 * messages. */
#ifndef UNI_APP_TRACING_H
#define UNI_APP_TRACING_H

#include <regex.h>
#include <sys/types.h>

#include "app/attach.h"
#include "app/images.h"
#include "app/options.h"
#include "app/symbols.h"
#include "tracing/tracer.h"

#define UNI_TRIGGERS_MAX 16
#define UNI_REGEXES_MAX	 16

struct uni_tracing_args {
	const char *qmp, *head;
	struct uni_opt_list images; /* -e: what the guest runs, then programs that it loads */
	struct uni_opt_list debug_dirs;
	double wait;
	bool rest_ok;			  /* a guest that is stopped is enough */
	bool await_run;			  /* one that does not run yet is waited for */
	struct uni_target_shared *shared; /* with other looks at this guest; NULL: none */
	bool may_give_up;		  /* rights may be given up before the image is read */
	bool reads_only;		  /* nothing is switched on or off */
	/*
	 * Excludes other tracers until it is closed: functions are chosen. -UNI_EBUSY: another one
	 * has the guest.
	 */
	bool owns;
	bool guarded; /* with owns: they are switched off if this process dies (app/unpatch.h) */
	/* Which functions, and how: */
	struct uni_opt_list filter, regex, exclude, args, trigger;
	const char *mode;
	double min_us;
	uint64_t depth;
	bool pieces, threads;
};

/* The options of all four commands; `a` is a struct uni_tracing_args. */
#define UNI_TRACING_OPTIONS(a)                                                                 \
	UNI_IMAGE_OPTION((a).images, UNI_IMAGE_RUNNING), UNI_DEBUG_DIR_OPTION((a).debug_dirs), \
		{ 0, "head", UNI_OPT_STR, &(a).head, "ADDRESS",                                \
			"where the guest's uni_trace_head is (default: its symbol, else all "  \
			"memory is searched for it)",                                          \
			NULL, NULL },                                                          \
		{ 0, "qmp", UNI_OPT_STR, &(a).qmp, "PATH",                                     \
			"QMP socket of the VMM: finds guest memory exactly", "FILE", NULL },   \
	{                                                                                      \
		0, "wait", UNI_OPT_DOUBLE, &(a).wait, "SECONDS",                               \
			"keep trying for this time while the guest still boots, "              \
			"and has not yet set up its trace ring (default 0)",                   \
			NULL, NULL                                                             \
	}

/* The options of those that switch functions on. */
#define UNI_CHOICE_OPTIONS(a)                                                                    \
	{ 0, "filter", UNI_OPT_LIST, &(a).filter, "GLOB",                                        \
		"trace functions whose name matches; * and ? stand for any text; may be given "  \
		"several times (default: all that can be)",                                      \
		NULL, NULL, 'f' },                                                               \
		{ 0, "regex", UNI_OPT_LIST, &(a).regex, "REGEX",                                 \
			"the same by extended regular expression", NULL, NULL },                 \
		{ 'x', "exclude", UNI_OPT_LIST, &(a).exclude, "GLOB",                            \
			"but not these; may be given several times", NULL, NULL },               \
		{ 'm', "mode", UNI_OPT_STR, &(a).mode, "graph|lite|function|callers",            \
			"graph: entry and exit of each call (default graph). lite: the "         \
			"same, cheaper, without the end of calls that make none. "               \
			"function: entries only. callers: entries and their callers",            \
			"graph lite function callers", NULL },                                   \
		{ 0, "min-duration", UNI_OPT_DOUBLE, &(a).min_us, "US",                          \
			"drop calls shorter than this many microseconds, in the "                \
			"guest. Calls that made a kept call, and those of "                      \
			"--args, are kept; not with mode function or callers",                   \
			NULL, NULL },                                                            \
		{ 0, "depth", UNI_OPT_U64, &(a).depth, "N",                                      \
			"drop calls deeper than N, in the guest; 0: none (default 0); not with " \
			"mode function or callers",                                              \
			NULL, NULL },                                                            \
		{ 0, "args", UNI_OPT_LIST, &(a).args, "GLOB",                                    \
			"also record argument registers and the value of these "                 \
			"functions; 'open(path:s)' copies the text behind an argument, "         \
			"'tcp_input(len>1000)' records such calls alone. "                       \
			"'tcp_input(@heap.used)' reads a variable with each call, "              \
			"'malloc(return)' records the value alone",                              \
			NULL, NULL },                                                            \
		{ 0, "trigger", UNI_OPT_LIST, &(a).trigger, "FUNCTION:start|stop|freeze",        \
			"when this function is called: begin to record, stop, or "               \
			"keep the content of the rings; may be given several "                   \
			"times",                                                                 \
			NULL, NULL },                                                            \
		{ 0, "threads", UNI_OPT_FLAG, &(a).threads, NULL,                                \
			"record events of threads and promises, if the guest "                   \
			"reports them; functions only with --filter, --regex or "                \
			"--args",                                                                \
			NULL, NULL },                                                            \
	{                                                                                        \
		0, "pieces", UNI_OPT_FLAG, &(a).pieces, NULL,                                    \
			"also patch functions that begin with several "                          \
			"instructions. Use it only if no thread can be "                         \
			"interrupted among them",                                                \
			NULL, NULL                                                               \
	}

struct uni_tracing {
	struct uni_guest g; /* first: it may not move */
	struct uni_tracer *tracer;
	struct uni_target_shared *shared; /* its own; NULL: none */
	int owner;			  /* -1: not ours alone */
	int guard;			  /* to its guardian (app/unpatch.h); -1: there is none */
	pid_t guardian;
};

/* Close it whenever this returned 0. */
int uni_tracing_open(struct uni_tracing *t, const char *target, const struct uni_tracing_args *args,
	struct uni_err *err);
void uni_tracing_close(struct uni_tracing *t);

/* The options as a choice, and in words; borrows their strings. */
struct uni_choice {
	struct uni_trace_choice c;
	regex_t regex[UNI_REGEXES_MAX];
	size_t nr_regexes;
	struct uni_trace_trigger trigger[UNI_TRIGGERS_MAX];
	char name[UNI_TRIGGERS_MAX][128];
	UNI_VEC(struct uni_trace_want) want;
	char text[256]; /* "tcp_* -ip_*" */
	char only[256]; /* struct uni_record_trace */
	const char *mode;
};
int uni_choice_make(
	struct uni_choice *ret, const struct uni_tracing_args *args, struct uni_err *err);
void uni_choice_free(struct uni_choice *c);
/* Was anything of it asked for? */
bool uni_choice_given(const struct uni_tracing_args *args);

/* One line on stderr: the traced functions, the time for which the guest was stopped, the functions
 * left out. */
void uni_tracing_say(const struct uni_trace_done *done);
#define UNI_STOOD_MAX 80
/* "; the guest was stopped for 60 us", or "" if it was not. */
void uni_tracing_stood(const struct uni_trace_done *done, char ret[UNI_STOOD_MAX]);

#endif
