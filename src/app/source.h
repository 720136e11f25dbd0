/* SPDX-License-Identifier: BSD-2-Clause */
/* A file that a user names, made a profile: a session of ours, or a format we import. */
#ifndef UNI_APP_SOURCE_H
#define UNI_APP_SOURCE_H

#include "base/err.h"
#include "base/only.h"
#include "app/input.h"
#include "app/options.h"
#include "app/part.h"
#include "format/import.h"
#include "profile/build.h"
#include "recording/recording.h"

struct uni_source {
	struct uni_input in;
	struct uni_recording *rec;	     /* NULL: it was imported */
	struct uni_profile *profile;	     /* NULL: args.no_profile, of a session */
	struct uni_symtab *symtab;	     /* of --symbols, or NULL */
	struct uni_thread_set *threads;	     /* of --thread, or NULL */
	const struct uni_importer *importer; /* NULL: a session */
	struct uni_import_stats stats;
};

struct uni_source_args {
	const char *path;
	struct uni_input *in; /* path, opened already; NULL: it is not */
	const char *format;   /* importer's name, NULL: look at the content */
	const char *symbols;  /* ELF, .usym or text table for raw addresses, or NULL */
	struct uni_opt_list debug_dirs;
	bool diff;
	bool keep_log;	/* of the profile: the order in which stacks came */
	bool unordered; /* of an import: children need no order, it goes on from here */
	bool walked; /* of an import: its tree is only walked down, the numbers of nodes may be any
		      */
	bool quiet;  /* the caller reports data of an import that a profile cannot hold */
	bool piled;  /* with walked: a pile will do (profile/pile.h) */
	/* An import that has only names (uni_source_is_open()) is added to this unfinished profile.
	 * Its values become the second column. Other imports get a profile of their own. */
	struct uni_profile *into;
	bool no_profile;	   /* only the recording is wanted, if it is one */
	const char *exits;	   /* NULL: samples; "" or "count", "time": VM exits */
	const char *guest;	   /* number or name of the only one to show, NULL: all */
	const char *thread;	   /* glob of the names of threads to show, NULL: all */
	struct uni_opt_list rules; /* for the calls of a trace (app/call_rules.h) */
	/*
	 * If no sample has the chosen thread, none is shown (`threads` is an empty set), provided
	 * the session has a trace. The caller then also looks at its calls
	 * (uni_call_source_open()); that fails if they do not have it either. If the session is
	 * only a trace, this is always so.
	 */
	bool calls_too;
	struct uni_part part;
	bool on_cpu, all_time, off_cpu; /* the time that counts; none: the guest's time on a CPU */
	bool every;			/* like all_time, for a caller that selects parts itself */
	struct uni_build_opts build;	/* of its filter, what the above chooses is set */
};

/* How a file that is no session is read. */
#define UNI_INPUT_FORMAT_OPTION(format, ...)                                              \
	{                                                                                 \
		0, "input-format", UNI_OPT_STR, &(format), "FORMAT",                      \
			"the format of FILE, if it is not a session (default: detected)", \
			UNI_WORDS_IMPORTERS, NULL, __VA_ARGS__                            \
	}

/* Option entries of all commands that show a session; `a` is a struct uni_source_args. */
#define UNI_SOURCE_OPTIONS(a)                                                                     \
	{ 0, "guest", UNI_OPT_STR, &(a).guest, "N|NAME",                                          \
		"only this guest, of a session with several", NULL, NULL },                       \
		{ 0, "on-cpu", UNI_OPT_FLAG, &(a).on_cpu, NULL,                                   \
			"only the guest's time on a CPU (the default)", NULL, NULL },             \
		{ 0, "all-time", UNI_OPT_FLAG, &(a).all_time, NULL,                               \
			"also other time: of vCPUs [idle], [kvm], [vmm], [stolen]; of threads "   \
			"that were on no vCPU [ready], [blocked], [sleeping], [waiting]",         \
			NULL, NULL },                                                             \
		{ 0, "off-cpu", UNI_OPT_FLAG, &(a).off_cpu, NULL,                                 \
			"only threads that were on no vCPU: what each waits for, below its name " \
			"(record --threads)",                                                     \
			NULL, NULL },                                                             \
		UNI_PART_OPTIONS((a).part),                                                       \
		{ 0, "thread", UNI_OPT_STR, &(a).thread, "NAME",                                  \
			"only threads whose name matches; * and ? stand for any text", NULL,      \
			NULL },                                                                   \
	{                                                                                         \
		0, "per-thread", UNI_OPT_FLAG, &(a).build.per_thread, NULL,                       \
			"one tree below each thread's name", NULL, NULL                           \
	}

/* Can it be opened, according to a first look? */
int uni_source_check_input(
	const struct uni_source_args *args, const struct uni_input *in, struct uni_err *err);
/* Reports on stderr how much of the data could not be read, if any. */
void uni_source_note_damage(const struct uni_source_args *args, const struct uni_source *s,
	const struct uni_build_read *read);

/* Refuses options that need samples or a trace, if the file is no session. */
int uni_source_check_import(const struct uni_source_args *args, struct uni_err *err);

/* The part that the options choose; false: they choose none. Its strings are those of args. */
bool uni_source_part(const struct uni_source_args *args, struct uni_record_part *ret);

/* Has this guest, or with -1 any, a function trace? */
bool uni_source_was_traced(const struct uni_recording *rec, struct uni_only guest);

/* Does it hold a function trace and no sample? */
bool uni_source_is_trace(const struct uni_source *s);

/* Unordered, and only of names: the profile is not finished, so that another can be added. */
bool uni_source_is_open(const struct uni_source_args *args, const struct uni_source *s);

/* The profile is finished, or open. Close it whenever this returned 0. */
int uni_source_open(struct uni_source_args *args, struct uni_source *ret, struct uni_err *err);
void uni_source_close(struct uni_source *s);
/* Two profiles as one: an error if both have nothing. */
int uni_source_compared(
	const struct uni_profile *diff, const char *before, const char *after, struct uni_err *err);

#endif
