/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a guest under QEMU's TCG with our plugin, which counts executions of each instruction, and
 * makes a session from the counts. */
#ifndef UNI_APP_EXACT_H
#define UNI_APP_EXACT_H

#include "app/qemu.h"
#include "app/record.h"
#include "uniscope/exact.h"

/* Path of the plugin: beside the program, or where it is installed. -UNI_ENOENT: the message has
 * these places. */
int uni_exact_plugin(char *ret, size_t cap, struct uni_err *err);

/* "counts", "tree", "calls". -UNI_EUSAGE: none of these. */
int uni_exact_mode_of(const char *name, enum uni_exact_mode *ret);

/* Does that program have the functions that the plugin calls? */
bool uni_exact_can_load(const char *qemu);

struct uni_exact_args {
	struct uni_qemu_args qemu; /* without the plugin */
	const char *symbols;	   /* ELF with the symbols, or NULL: the image */
	enum uni_exact_mode mode;
	const char *begin_at, *end_at; /* functions, or NULL */
	bool follow;		       /* uni_exact_read(): until QEMU ends, or the duration */
	int pid;		       /* of that QEMU; 0: known by its records of calls alone */
	bool repeatable;	       /* the same image gives the same counts again */
	/* The file with what a disk answered and when: recorded if it is not there, else given to
	 * the guest again. NULL: none. */
	const char *inputs;
	/* For UNI_EXACT_TRACE. Functions whose names match a glob are recorded, all if there is
	 * none. Calls deeper than `depth` are not; 0: all are. */
	const char *const *filter;
	size_t nr_filter;
	uint64_t depth;
	const struct uni_record_args *rec; /* output, overwrite, duration, debug_dirs, quiet */
};

#define UNI_EXACT_CALLS_FILE ".calls" /* behind the name of the counts */

/* Addresses of begin_at and end_at, if they are given. */
struct uni_exact_places {
	uint64_t begin, end;
};
int uni_exact_places(const struct uni_exact_args *args, const struct uni_image *image,
	struct uni_exact_places *ret, struct uni_err *err);
/* The value of QEMU's option -plugin; the caller's to free. NULL: see err. */
char *uni_exact_option(const struct uni_exact_args *args, const struct uni_exact_places *at,
	const char *counts, const char *table, struct uni_err *err);

/* The value of QEMU's option -icount. A new file of args->inputs is made empty. The caller's to
 * free. NULL: see err. */
char *uni_exact_icount(const struct uni_exact_args *args, struct uni_err *err);
/* extra and what makes a run repeatable, ended by NULL; the caller's to free, the words are not. */
char **uni_exact_repeatable(char **extra, char *icount);
/* Says which input of that command line no option fixes. */
void uni_exact_note_inputs(const struct uni_qemu_args *args);

/* Boots, waits for the guest's end, the time or Ctrl-C, ends the guest, writes the session. */
int uni_exact_run(const struct uni_exact_args *args, struct uni_err *err);

/* For a guest that the user starts. `counts` is the file that the plugin will write;
 * COUNTS.functions is beside it. Writes the option for QEMU's command line to stdout. */
int uni_exact_print(const struct uni_exact_args *args, const char *counts, struct uni_err *err);
/* Makes the session from the counts in that file, also while the guest runs. */
int uni_exact_read(const struct uni_exact_args *args, const char *counts, struct uni_err *err);

/* The process that TARGET (a name, a pid, or as ls prints it) means; 0: it is no QEMU that counts
 * with our plugin. counts_ret: the plugin's file, a path of ours. */
int uni_exact_find(const char *target, char *counts_ret, size_t cap);
/* A hint, if the guest's QEMU counts, and samples are taken nevertheless. */
void uni_exact_note_counts(const struct uni_target_info *info);
/* The session of that QEMU, until it ends or the duration is over. symbols NULL: the image on
 * QEMU's command line. */
int uni_exact_record(int pid, const char *counts, const char *symbols, const char *target,
	const struct uni_record_args *rec, struct uni_err *err);

#endif
