/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `uniscope run`, and what follows from them. */
#ifndef UNI_CLI_RUN_OPTIONS_H
#define UNI_CLI_RUN_OPTIONS_H

#include "app/exact.h"
#include "app/options.h"
#include "app/record.h"

struct uni_bootable;

struct uni_run_options {
	struct uni_record_args rec;
	struct uni_opt_list images; /* -e: the booted one's symbols, then programs that it loads */
	const char *symbols;	    /* the first of them, or NULL */
	const char *disk, *accel, *machine, *cpu, *append, *console, *qemu;
	uint64_t mem, vcpus;
	double wait;
	bool repeatable;
	const char *begin_at, *end_at, *inputs;
	struct uni_opt_list filter;
	uint64_t depth;
	enum uni_exact_mode mode;
	const char *exact; /* NULL: no; "": tree */
	const char *xl, *target;
	bool five_files;
};

/* To open a guest whose image was booted; but for target, ended and settle_ns. */
struct uni_attach_args uni_run_attach_args(const struct uni_run_options *o, const char *image);
/* The session (also o->rec.output) and the console's file, unless they were given. The caller frees
 * both. */
int uni_run_name_outputs(struct uni_run_options *o, const char *named, char **session_ret,
	char **console_ret, struct uni_err *err);

/* Boots an image or a disk under QEMU, and records it. extra: arguments for QEMU, or NULL. */
int uni_run_qemu(struct uni_run_options *o, const char *path, const struct uni_bootable *image,
	char **extra, struct uni_err *err);

#endif
