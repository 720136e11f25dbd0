/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording of attached guests: what `record` and `run` share. */
#ifndef UNI_APP_RECORD_H
#define UNI_APP_RECORD_H

#include "app/attach.h"
#include "app/images.h"
#include "app/options.h"
#include "app/pace.h"
#include "app/symbols.h"
#include "recording/recording.h"

struct uni_workload;

struct uni_record_args {
	double frequency;
	bool frequency_given;
	double duration;
	bool duration_given;
	struct uni_workload *workload; /* runs meanwhile, and ends the recording; NULL: none */
	const char *output;
	bool overwrite;
	bool no_jitter;
	struct uni_pace pace;
	const char *method; /* auto, bpf, pause; NULL: auto */
	bool no_pause;
	bool aggregate;
	const char *save_replay;
	struct uni_opt_list sysroot;
	const char *exits;    /* NULL: none; "": every one; "N": one in N */
	bool never_exits;     /* of a command that has no --exits */
	uint32_t exits_every; /* the same as a number, by uni_record_check_args() */
	const char *unwind;
	bool accept_image; /* although the guest runs another build */
	bool threads;
	struct uni_opt_list watch; /* SYMBOL[:BYTES] */
	struct uni_opt_list debug_dirs;
	bool quiet;
	const struct uni_attach_args *follow; /* by what its only guest is opened again, when its
						 VMM has ended; target: its name. NULL: it is not */
	/* For `run`: has the guest ended, and is the recording worth keeping (0)? Otherwise the
	 * error, and the recording is removed. NULL: not asked. */
	bool (*ended)(void *ctx, bool settled); /* settled: as the target's op */
	bool (*awake)(void *ctx); /* does it run now? Whether it has ended is asked first */
	int (*judge)(void *ctx, const struct uni_record_stats *st, struct uni_err *err);
	void (*gone)(void *ctx); /* before: the only guest's vCPUs have ended by themselves */
	void *ctx;
};

#define UNI_RECORD_DEFAULTS                     \
	{                                       \
		.frequency = 99, .duration = 10 \
	}

/* Option entries for the fields above; `a` is a struct uni_record_args. */
#define UNI_RECORD_OPTIONS(a)                                                                      \
	{ 'F', "frequency", UNI_OPT_DOUBLE, &(a).frequency, "HZ",                                  \
		"samples per second of each vCPU (default 99)", NULL, &(a).frequency_given },      \
		{ 'd', "duration", UNI_OPT_DOUBLE, &(a).duration, "SECONDS",                       \
			"how long; 0 records until Ctrl-C (default 10)", NULL,                     \
			&(a).duration_given, 'T', "time" },                                        \
		{ 'o', "output", UNI_OPT_STR, &(a).output, "NAME",                                 \
			"session folder to write (default: the guest's name.uniscope, numbered)",  \
			"FILE", NULL },                                                            \
		{ 0, "overwrite", UNI_OPT_FLAG, &(a).overwrite, NULL,                              \
			"replace the session that --output names, if there is one", NULL, NULL },  \
		{ 0, "watch", UNI_OPT_LIST, &(a).watch, "SYMBOL[:BYTES]",                          \
			"copy the memory at this symbol at the first and at the last sample; may " \
			"be given several times",                                                  \
			NULL, NULL },                                                              \
		UNI_SYSROOT_OPTION((a).sysroot), UNI_DEBUG_DIR_OPTION((a).debug_dirs),             \
		UNI_UNWIND_OPTION((a).unwind), UNI_ACCEPT_IMAGE_OPTION((a).accept_image),          \
		{ 0, "method", UNI_OPT_STR, &(a).method, "auto|bpf|pause",                         \
			"how a kvm: guest is sampled: by the host's kernel, "                      \
			"which never stops it (bpf), or with a stop for each "                     \
			"sample (pause). auto is bpf where permitted (default "                    \
			"auto)",                                                                   \
			"auto bpf pause", NULL },                                                  \
		UNI_NO_PAUSE_OPTION((a).no_pause), UNI_PACE_OPTIONS((a).pace),                     \
		{ 0, "aggregate", UNI_OPT_FLAG, &(a).aggregate, NULL,                              \
			"with bpf, only count equal chains in the kernel: cheaper at high rates, " \
			"but samples lose their times",                                            \
			NULL, NULL },                                                              \
		{ 0, "exits", UNI_OPT_MAYBE, &(a).exits, "[=N]",                                   \
			"also record every VM exit, with its call chain and the "                  \
			"time that the host took. With N, one exit in N of each "                  \
			"kind is examined. Needs bpf. With -F 0, only exits are "                  \
			"recorded",                                                                \
			NULL, NULL },                                                              \
		{ 0, "threads", UNI_OPT_FLAG, &(a).threads, NULL,                                  \
			"sample every thread of the guest, running or not: where the time of "     \
			"each goes (report and export: --off-cpu, --thread). Stops the guest for " \
			"each sample",                                                             \
			NULL, NULL },                                                              \
		{ 0, "no-jitter", UNI_OPT_FLAG, &(a).no_jitter, NULL,                              \
			"sample at exact multiples of the period", NULL, NULL },                   \
		{ 0, "save-replay", UNI_OPT_STR, &(a).save_replay, "FILE",                         \
			"also save the registers and memory that were read, for replay:file=FILE", \
			"FILE", NULL },                                                            \
	{                                                                                          \
		'q', "quiet", UNI_OPT_FLAG, &(a).quiet, NULL,                                      \
			"no progress and no summary on stderr", NULL, NULL                         \
	}

/*
 * Samples all of them, 1 to UNI_GUEST_MAX, until the time is over, Ctrl-C, or their end; writes one
 * session; prints the summary on stderr. path_ret (may be NULL): the folder's name, owned by the
 * caller.
 */
int uni_record_guests(struct uni_guest *const *g, size_t nr, const struct uni_record_args *args,
	char **path_ret, struct uni_err *err);

/* The first of BASE.uniscope, BASE-2.uniscope, ... that does not exist; without BASE's ".elf". */
char *uni_session_name(const char *base);

/* The same for guests: by the name of the only one, else its image's. */
char *uni_record_default_output(const struct uni_guest *g, size_t nr);
/* Can VM exits of this guest be counted? */
bool uni_record_sees_exits(const struct uni_guest *g);
/* Fills in the session's facts about the guest, this host and this command. */
void uni_record_fill_meta(const struct uni_guest *g, const struct uni_record_args *args,
	struct uni_record_meta *meta);
/* From now on everything that is read from the guest is also kept for a replay file. This begins
 * with the code by which a reader of that file checks the image. */
int uni_record_tee_begin(struct uni_guest *g, const char *path, struct uni_err *err);
int uni_record_tee_end(
	struct uni_guest *g, const struct uni_record_args *args, struct uni_err *err);
/* Name of guest i of several; guests with the same name get their target as name. */
void uni_record_name_guest(
	struct uni_guest *const *g, size_t nr, size_t i, char ret[UNI_GUEST_NAME_MAX]);

/* The names of the guest's images go into the session. */
int uni_record_add_symbols(
	struct uni_recorder *rec, uint32_t number, const struct uni_guest *g, struct uni_err *err);
/* If the images have debug data, adds source positions for the addresses. */
void uni_record_add_places(
	const struct uni_guest *g, const struct uni_record_args *args, const char *path);

/* Frequency and duration make sense? -UNI_EUSAGE. */
int uni_record_check_args(struct uni_record_args *args, struct uni_err *err);

#endif
